"""Limits of the server that clients run into."""

from collections.abc import Iterator
from typing import Final

from tenure.drivers.redis.doctor.facts import Facts, serious, warning
from tenure.operating import Finding

SHORTEST_IDLE: Final = 60
"""Seconds; a worker's quieter connections are used about once a second, an idle pusher's now and then."""
LEAST_LEFT: Final = 8
"""Connections: about what one worker opens."""
CROWDED: Final = 0.8
SHORTEST_SCRIPT: Final = 100
"""Milliseconds: well above what the longest call takes, on a busy host too."""


def check(facts: Facts) -> Iterator[Finding]:
    """Judge the limits on clients and scripts."""
    yield from _clients(facts)
    idle = facts.amount("timeout")
    if idle and idle < SHORTEST_IDLE:
        yield warning(
            "timeout",
            f"the server hangs up on clients that are idle for {idle} s",
            "connections are opened again and again; a push that meets a hang-up in flight has to be repeated",
            "set timeout 0 (tcp-keepalive finds dead clients), or 300 and more",
        )
    longest = facts.amount("lua-time-limit")
    if longest is not None and 0 < longest < SHORTEST_SCRIPT:
        yield warning(
            "scripts",
            f"the server calls a script slow after {longest} ms (lua-time-limit, busy-reply-threshold)",
            "others are refused with BUSY while an ordinary call of 500 jobs is at work",
            "set lua-time-limit 5000, the default",
        )


def _clients(facts: Facts) -> Iterator[Finding]:
    most = facts.number("maxclients")
    most = facts.amount("maxclients") if most is None else most
    connected = facts.number("connected_clients")
    if not most or connected is None:
        return
    left = most - connected
    if left >= LEAST_LEFT and connected / most < CROWDED:
        return
    say = serious if left < LEAST_LEFT else warning
    yield say(
        "clients",
        f"{connected:,} of {most:,} connections are taken (maxclients)",
        "new workers and pushers are turned away, and a worker that lost its connection cannot come back",
        "raise maxclients (and the server's limit of open files), or find out who holds so many",
    )

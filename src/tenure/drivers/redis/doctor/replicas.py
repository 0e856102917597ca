"""Replicas: what a failover may lose, and whether writes wait for them."""

import re
from collections.abc import Iterator
from typing import Final

from tenure.drivers.redis.doctor.facts import Facts, note, serious, warning
from tenure.operating import Finding

LONGEST_LAG: Final = 10
"""Seconds."""
_REPLICA: Final = re.compile(r"state=(\w+).*?lag=(\d+)")


def check(facts: Facts, durability: int, wanted: int) -> Iterator[Finding]:
    """Judge the replicas; ``wanted`` is how many a push of class 3 waits for."""
    if facts.text("role") != "master":
        return
    connected = facts.number("connected_slaves") or 0
    found = [_REPLICA.search(facts.text(f"slave{place}") or "") for place in range(connected)]
    lags = [int(replica[2]) for replica in found if replica is not None and replica[1] == "online"]
    good, least = facts.number("min_slaves_good_slaves"), facts.amount("min-replicas-to-write")
    if good is not None and least is not None and good < least:
        yield serious(
            "replicas",
            f"min-replicas-to-write is {least}, and {good} replicas keep up",
            "every push, claim and settlement is refused (NOREPLICAS)",
            "bring replicas back, or lower min-replicas-to-write",
        )
    if durability == 3:
        yield from _class_3(len(lags), wanted, least)
    elif connected and not least:
        yield note(
            "replicas",
            f"{connected} replicas are connected, and min-replicas-to-write is {'0' if least == 0 else 'not known'}",
            "a primary that is cut off goes on accepting jobs, all of which a failover discards",
            "set min-replicas-to-write 1 and min-replicas-max-lag 10, and push what matters with durability=3",
        )
    if lags and max(lags) > LONGEST_LAG:
        yield warning(
            "replicas",
            f"a replica is {max(lags)} s behind",
            "a failover to it loses as much",
            "look at the network between them, and at the replica's load",
        )


def _class_3(online: int, wanted: int, least: int | None) -> Iterator[Finding]:
    if online < wanted:
        yield serious(
            "replicas",
            f"{online} replicas are online, and pushes of durability 3 wait for {wanted}",
            "none of those pushes is ever confirmed",
            "connect more replicas, or ask for fewer",
        )
    elif not least:
        yield warning(
            "replicas",
            "min-replicas-to-write is 0" if least == 0 else "min-replicas-to-write is not known",
            "a primary that is cut off goes on accepting claims, settlements and pushes of class 1 and 2, all of which "
            "a failover discards",
            f"set min-replicas-to-write {wanted} and min-replicas-max-lag 10",
        )

"""Memory: whether the server may throw jobs away, and how much room there is."""

from collections.abc import Iterator
from typing import Final

from tenure.drivers.redis.doctor.facts import Facts, note, serious, warning
from tenure.operating import Finding

NEARLY_FULL: Final = 0.95
FILLING: Final = 0.8


def check(facts: Facts) -> Iterator[Finding]:
    """Judge the eviction policy and the headroom."""
    most = facts.number("maxmemory")
    most = facts.amount("maxmemory") if most is None else most
    policy = facts.text("maxmemory_policy") or facts.setting("maxmemory-policy")
    if policy not in {None, "noeviction"}:
        yield _evicting(facts, str(policy), most)
    used, total = facts.number("used_memory"), facts.number("total_system_memory")
    if used is None:
        return
    if most:
        yield from _headroom(used, most)
    elif most == 0:
        yield note(
            "memory",
            "maxmemory is not set",
            "when the host has no memory left, its kernel kills the server instead of a push being refused",
            "set maxmemory to what the host can spare (half of it where snapshots or rewrites fork); see docs/redis.md",
        )
        if total and used / total > FILLING:
            yield warning(
                "memory",
                f"the server uses {used / total:.0%} of the host's memory",
                "the kernel may kill it",
                "drain the queues, or give it more memory",
            )


def _evicting(facts: Facts, policy: str, most: int | None) -> Finding:
    found = f"maxmemory-policy is {policy}"
    gone = facts.number("evicted_keys")
    if gone:
        found += f", and {gone:,} keys were evicted since the server started"
    victims = (
        "whole queues, with every job in them, are thrown away when memory is full"
        if policy.startswith("allkeys")
        else "the records that tell a repeated push from a new one are thrown away when memory is full, so that a "
        "push whose answer was lost ends in OutcomeUnknown"
    )
    remedy = "set maxmemory-policy noeviction: then a push is refused, and workers drain the queue"
    if most == 0 and not gone:
        return warning("eviction", f"{found}, without effect as long as maxmemory is 0", victims, remedy)
    return serious("eviction", found, victims, remedy)


def _headroom(used: int, most: int) -> Iterator[Finding]:
    share = used / most
    if share < FILLING:
        return
    say = serious if share >= NEARLY_FULL else warning
    yield say(
        "memory",
        f"{share:.0%} of maxmemory is used",
        "pushes are refused (OOM) when it is full; claims and settlements go on",
        "start more workers, raise maxmemory, or prune failed jobs",
    )

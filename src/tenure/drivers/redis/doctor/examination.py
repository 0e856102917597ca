"""One look at a server: its facts, judged; then what has to be tried."""

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import chain

from tenure.drivers.redis.doctor import clock, contents, limits, memory, persistence, replicas, rights, server
from tenure.drivers.redis.doctor.facts import Ask, Facts, read, serious
from tenure.drivers.redis.keys import Keyspace
from tenure.errors import StoreRefused
from tenure.operating import Finding, Severity

_ORDER = {severity: place for place, severity in enumerate(Severity)}


async def diagnose(
    ask: Ask, keyspace: Keyspace, *, durability: int, replicas_wanted: int = 1, clustered: bool = False
) -> list[Finding]:
    """Return what was found, the serious first; see ``tenure.operating.Diagnosis``."""
    found: list[Finding] = []
    try:
        facts = await read(ask)
        found += _judged(facts, durability, replicas_wanted, clustered=clustered)
        tried: list[Callable[[], AsyncIterator[Finding]]] = [
            lambda: clock.check(ask),
            lambda: rights.check(ask, keyspace, durability),
            lambda: contents.check(ask, keyspace),
        ]
        for check in tried:
            found += [finding async for finding in check()]
    except StoreRefused as refusal:
        found.append(
            serious(
                "answers",
                f"the server refuses commands ({refusal.code}): {refusal.problem}",
                "nothing can be pushed, claimed or settled; what had not been looked at before is not known",
                "see to that first, then look again",
            )
        )
    return sorted(found, key=lambda finding: _ORDER[finding.severity])


def _judged(facts: Facts, durability: int, replicas_wanted: int, *, clustered: bool) -> Iterator[Finding]:
    return chain(
        server.check(facts, clustered=clustered),
        persistence.check(facts, durability),
        memory.check(facts),
        limits.check(facts),
        replicas.check(facts, durability, replicas_wanted),
        server.unread(facts),
    )

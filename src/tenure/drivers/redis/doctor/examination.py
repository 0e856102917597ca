"""One look at a server: its facts, judged; then what has to be tried."""

from collections.abc import Iterator, Mapping
from itertools import chain

import msgspec

from tenure.drivers.redis.doctor import clock, contents, limits, memory, nodes, persistence, replicas, rights, server
from tenure.drivers.redis.doctor.facts import Ask, Facts, read, serious
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.layout import Layout
from tenure.drivers.redis.scripts import Scripts
from tenure.errors import StoreRefused
from tenure.operating import Finding, Severity

_ORDER = {severity: place for place, severity in enumerate(Severity)}


async def diagnose(
    ask: Ask,
    keyspace: Keyspace,
    layout: Layout,
    scripts: Scripts,
    *,
    durability: int,
    replicas_wanted: int = 1,
    clustered: bool = False,
) -> list[Finding]:
    """Return what was found, the serious first; see ``tenure.operating.Diagnosis``."""
    found: list[Finding] = []
    try:
        servers: Mapping[str, bytes] = {"": b""}
        if clustered:
            cluster = await nodes.read(ask)
            found += cluster.check()
            servers = cluster.keys or servers
        for name, key in servers.items():
            facts = await read(ask, key)
            about = [*_judged(facts, durability, replicas_wanted, clustered=clustered)]
            about += [finding async for finding in clock.check(ask, key)]
            found += [_of(name, finding) for finding in about]
        found += [finding async for finding in rights.check(ask, keyspace, scripts, durability)]
        found += [finding async for finding in contents.check(ask, keyspace, layout)]
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


def _of(server: str, finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, found=f"{server}: {finding.found}") if server else finding


def _judged(facts: Facts, durability: int, replicas_wanted: int, *, clustered: bool) -> Iterator[Finding]:
    return chain(
        server.check(facts, clustered=clustered),
        persistence.check(facts, durability),
        memory.check(facts),
        limits.check(facts),
        replicas.check(facts, durability, replicas_wanted),
        server.unread(facts),
    )

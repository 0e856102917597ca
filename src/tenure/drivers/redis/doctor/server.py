"""Which server it is, and whether it is the one to talk to."""

from collections.abc import Iterator
from typing import Final

from tenure.drivers.redis.doctor.facts import Facts, note, serious, warning
from tenure.operating import Finding

OLDEST: Final = (6, 2)


def check(facts: Facts, *, clustered: bool) -> Iterator[Finding]:
    """Judge version, role and mode; ``clustered`` tells whether the driver speaks to a cluster."""
    if facts.version and facts.version < OLDEST:
        yield serious(
            "version",
            f"the server is {facts.server}",
            "commands that the scripts need are missing: nothing can be pushed or claimed",
            "use Redis 6.2 or newer, or Valkey",
        )
    if facts.text("role") == "slave":
        yield serious(
            "role",
            "the server is a replica",
            "it refuses every write (READONLY): nothing can be pushed, claimed or settled here",
            "point the URL at the primary, or at the Sentinels that know it",
        )
    if facts.text("loading") == "1":
        yield serious(
            "loading",
            "the server is loading its data",
            "it refuses everything until that is done; workers wait for it",
            "wait, and look again",
        )
    yield from _mode(facts, clustered=clustered)


def _mode(facts: Facts, *, clustered: bool) -> Iterator[Finding]:
    enabled = facts.text("cluster_enabled")
    if enabled == "1" and not clustered:
        yield serious(
            "cluster",
            "the server belongs to a cluster, and the URL names a single server",
            "queues whose slot lies on another node are refused (MOVED)",
            "use a redis+cluster:// URL, or REDIS_CLUSTER=true",
        )
    if enabled == "0" and clustered:
        yield serious(
            "cluster",
            "the URL names a cluster, and the server does not belong to one",
            "the driver cannot learn where queues live",
            "use a redis:// URL",
        )


def unread(facts: Facts) -> Iterator[Finding]:
    """Tell what could not be looked into."""
    if not facts.known:
        yield warning(
            "unknown",
            "this user may not read INFO",
            "version, role, persistence, memory and replicas could not be looked at",
            "run the doctor as a user with +info, or grant it: INFO changes nothing",
        )
    if facts.hidden:
        yield note(
            "unknown",
            "this user may not read these settings: " + ", ".join(facts.hidden),
            "what they say could not be judged",
            "run the doctor as a user with +config|get (+config before Redis 7); workers do not need it",
        )

"""What is done to recorded runs, by driver."""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.torture.proof.nemesis import on_databases, on_hosts, on_redis, on_topologies, on_workers
from tests.torture.proof.nemesis.act import Act

TABLE: Final[Mapping[str, Sequence[Act]]] = {
    "redis": [*on_workers.ACTS, *on_workers.WITH_A_NETWORK, *on_redis.ACTS, *on_hosts.ACTS],
    "redis-streams": [*on_workers.ACTS, *on_workers.WITH_A_NETWORK, *on_redis.ACTS, *on_hosts.ACTS],
    "sqlite": [*on_workers.ACTS, *on_databases.SQLITE],
    "postgresql": [*on_workers.ACTS, *on_workers.WITH_A_NETWORK, *on_databases.POSTGRESQL],
}
"""All faults of each driver on one server."""

SEVERAL: Final[Mapping[str, Sequence[Act]]] = {
    "redis-sentinel": [*on_topologies.SENTINEL, *on_workers.ACTS],
    "redis-cluster": [*on_topologies.CLUSTER, *on_workers.ACTS],
}
"""The same where several servers belong together: done by the longer tiers alone."""

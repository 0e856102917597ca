"""Every behaviour of the contract suite over TLS, as a user with the least rights, through Sentinel and on a cluster.

What races processes for seconds stands in ``test_topologies_racing.py``.
"""

from tenure.testing.contract import behaviours
from tests.contract.places import (  # noqa: F401 - fixtures
    acl_place,
    cluster_place,
    sentinel_place,
    store,
    tls_place,
)
from tests.contract.racing import races

DRIVERS = [
    *("redis-tls", "valkey-acl", "redis-sentinel", "valkey-cluster"),
    *("redis-sentinel-streams", "valkey-cluster-streams"),
]

globals().update({name: behaviour for name, behaviour in behaviours().items() if not races(behaviour)})

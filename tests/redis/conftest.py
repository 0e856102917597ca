"""Tests of the Redis driver run on every supported server."""

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tests.support import servers
from tests.support.absent import not_proven
from tests.support.servers import Server

SERVERS = ["redis7", "valkey", "redis62"]
BINARIES = {"redis7": servers.redis7_binary, "valkey": servers.valkey_binary, "redis62": servers.redis62_binary}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture in ("server", "own_server"):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, getattr(metafunc.module, "SERVERS", SERVERS), indirect=True)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Server:
    """A server that all tests share: what a test does to it must concern its own keys alone."""
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def own_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of the test's own, which it may fill, stop and configure."""
    binary = BINARIES[request.param]()
    if binary is None:
        not_proven(request.param, "see the fixtures of the same name")
    with servers.redis_like(
        binary, extra_args=["--enable-debug-command", "yes"] if request.param != "redis62" else []
    ) as server:
        yield server


@pytest.fixture
def client(server: Server, namespace: str) -> Iterator[redis.Redis]:
    """A plain client; what the test leaves under its namespace is removed."""
    with redis.Redis(unix_socket_path=server.socket, protocol=2) as client:
        yield client
        for key in client.scan_iter(match=f"*{namespace}*", count=1000):
            client.unlink(key)


@pytest.fixture
async def queue(client: redis.Redis, server: Server, namespace: str) -> AsyncIterator[RedisQueue]:
    """A driver on the shared server, in a namespace of its own."""
    queue = RedisQueue.from_url(server.url, namespace=namespace)
    yield queue
    await queue.aclose()

"""Tests of the Redis driver run on every supported server."""

from collections.abc import Iterator

import pytest
import redis

from tests.support.servers import Server

SERVERS = ["redis7", "valkey", "redis62"]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def client(server: Server, namespace: str) -> Iterator[redis.Redis]:
    """A plain client; what the test leaves under its namespace is removed."""
    with redis.Redis(unix_socket_path=server.socket, protocol=2) as client:
        yield client
        for key in client.scan_iter(match=f"*{namespace}*", count=1000):
            client.unlink(key)

"""An application with the jobs of ``tests.support.hostile``, on each kind of store."""

import pathlib
from collections.abc import AsyncIterator

import pytest
import redis.asyncio

from tenure import Tenure
from tests.support.hostile import Seen, equipped
from tests.support.servers import Server


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture(params=["memory", "sqlite", "valkey"])
async def app(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, namespace: str, seen: Seen
) -> AsyncIterator[Tenure]:
    """An application on each kind of store."""
    server: Server | None = request.getfixturevalue("valkey") if request.param == "valkey" else None
    if server is not None:
        url = server.url
    else:
        url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}"
    made = equipped(url, namespace, seen)
    yield made
    await made.aclose()
    if server is not None:
        async with redis.asyncio.Redis(unix_socket_path=server.socket) as client:
            async for key in client.scan_iter(match=f"*{namespace}*", count=1000):
                await client.unlink(key)


@pytest.fixture
def quick(namespace: str, seen: Seen) -> Tenure:
    """The same in memory only, for what is decided before the store."""
    return equipped("memory://", namespace, seen)

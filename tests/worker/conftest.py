"""Applications on each kind of store, for tests of a real worker."""

import asyncio
import pathlib
from collections.abc import AsyncIterator, Iterator

import pytest
import redis.asyncio

from tenure import Tenure
from tests.support.servers import Server
from tests.worker.office import Office
from tests.worker.program import Journal


@pytest.fixture(params=["memory", "sqlite", "valkey"])
async def app(request: pytest.FixtureRequest, tmp_path: pathlib.Path, namespace: str) -> AsyncIterator[Tenure]:
    """An application without jobs, on a store of its own."""
    if request.param == "valkey":
        server: Server = request.getfixturevalue("valkey")
        made = Tenure(server.url, namespace=namespace)
        yield made
        await made.aclose()
        await forget(server, namespace)
        return
    made = Tenure(
        "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}", namespace=namespace
    )
    yield made
    await made.aclose()


@pytest.fixture
async def quick(namespace: str) -> AsyncIterator[Tenure]:
    """The same in memory only, for what does not depend on the store."""
    made = Tenure("memory://", namespace=namespace)
    yield made
    await made.aclose()


async def forget(server: Server, namespace: str) -> None:
    """Remove a test's keys from a server that others use too."""
    async with redis.asyncio.Redis(unix_socket_path=server.socket) as client:
        async for key in client.scan_iter(match=f"*{namespace}*", count=1000):
            await client.unlink(key)


@pytest.fixture(params=["sqlite", "valkey"])
def office(request: pytest.FixtureRequest, namespace: str, tmp_path: pathlib.Path) -> Iterator[Office]:
    """A store for a supervisor and its children."""
    journal = Journal(tmp_path / "journal")
    if request.param == "sqlite":
        made = Office(f"sqlite:///{tmp_path / 'jobs.db'}", namespace, journal)
        yield made
        made.app.close_sync()
        return
    server: Server = request.getfixturevalue("valkey")
    made = Office(server.url, namespace, journal)
    yield made
    made.app.close_sync()
    asyncio.run(forget(server, namespace))

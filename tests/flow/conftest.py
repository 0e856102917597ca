"""An application with jobs on each kind of store that has compositions."""

import pathlib
from collections.abc import AsyncIterator, Iterator

import pytest

from tenure import Tenure
from tests.flow.shop import Shop
from tests.support.servers import Server
from tests.worker.conftest import forget


@pytest.fixture(params=["memory", "sqlite", "valkey"])
async def shop(request: pytest.FixtureRequest, tmp_path: pathlib.Path, namespace: str) -> AsyncIterator[Shop]:
    """The shop, on a store of its own."""
    server: Server | None = request.getfixturevalue("valkey") if request.param == "valkey" else None
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path / 'jobs.db'}"}
    made = Shop(Tenure(server.url if server is not None else urls[request.param], namespace=namespace))
    assert made.app.queue().capabilities.compositions
    yield made
    await made.app.aclose()
    if server is not None:
        await forget(server, namespace)


@pytest.fixture
async def quick(namespace: str) -> AsyncIterator[Shop]:
    """The same in memory only, for what does not depend on the store."""
    made = Shop(Tenure("memory://", namespace=namespace))
    yield made
    await made.app.aclose()


@pytest.fixture
def blocking_shop(namespace: str) -> Iterator[Shop]:
    """The same for what has no event loop."""
    made = Shop(Tenure("memory://", namespace=namespace))
    yield made
    made.app.close_sync()


@pytest.fixture
def inline(namespace: str) -> Shop:
    """The same where a push runs the jobs."""
    return Shop(Tenure("sync://", namespace=namespace))

"""Each test here runs on every kind of database server, with a namespace of its own."""

import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from tenure.queue import Queue
from tests.databases.support import Place, place_of
from tests.support.databases import Database

KINDS = ("postgresql", "mariadb")


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, namespace: str) -> Place:
    """Tenure's tables on a running server."""
    return place_of(request.getfixturevalue(request.param), namespace)


@pytest.fixture
def postgres_place(postgresql: Database, namespace: str) -> Place:
    return place_of(postgresql, namespace)


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[Queue], Queue]]:
    """Closes the drivers that it is given, after the test."""
    async with contextlib.AsyncExitStack() as stack:

        def keep(queue: Queue) -> Queue:
            stack.push_async_callback(queue.aclose)
            return queue

        yield keep

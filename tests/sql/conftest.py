"""A driver on a fresh file, and others on the same file."""

import contextlib
import pathlib
from collections.abc import AsyncIterator, Callable

import pytest

from tenure.drivers.sql import SqliteQueue

Open = Callable[..., SqliteQueue]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "jobs.sqlite"


@pytest.fixture
async def opened(path: pathlib.Path) -> AsyncIterator[Open]:
    """Opens another driver on the test's file, as another process would have; all are closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        def another(**options: object) -> SqliteQueue:
            queue = SqliteQueue(path, namespace="test", **options)  # type: ignore[arg-type]
            stack.push_async_callback(queue.aclose)
            return queue

        yield another


@pytest.fixture
def queue(opened: Open) -> SqliteQueue:
    return opened()

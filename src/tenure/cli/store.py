"""The store that an operator's command works on; no user code is needed for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

import msgspec

from tenure.app import Tenure
from tenure.cli.target import find_app
from tenure.errors import NotSupported
from tenure.operations import Retried
from tenure.queue import Counts, FailedJobs, feature

T = TypeVar("T")


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about the store; what it leaves out, the environment says."""

    url: str | None
    namespace: str | None
    connection: str
    app: str | None


class Store:
    """One store as operators see it. What its driver cannot do is ``NotSupported``."""

    def __init__(self, app: Tenure, connection: str) -> None:
        self._app = app
        self._connection = connection
        self._queue = app.queue(connection)
        able = self._queue.capabilities
        if not able.shared:
            raise NotSupported(able.driver, "operating it from here", "its jobs are known to their own process only")

    async def queues(self, named: Sequence[str] | None) -> Sequence[str]:
        """Return the queues that were named, or all that the store knows."""
        return named if named is not None else await self._app.queues(connection=self._connection)

    async def counts(self, queue: str) -> Counts:
        """Count the queue's jobs by state."""
        return await self._queue.counts(queue)

    async def retry(self, queue: str, ids: Sequence[str] | None) -> Sequence[Retried]:
        """Make failed jobs ready again; all that have failed so far if ``ids`` is None."""
        return await self._app.retry(queue, ids, connection=self._connection)

    @property
    def failures(self) -> FailedJobs:
        """The store of failed jobs."""
        if not feature(self._queue, FailedJobs):
            raise NotSupported(self._queue.capabilities.driver, "a store of failed jobs")
        return cast("FailedJobs", self._queue)


def operate(where: Where, action: Callable[[Store], Awaitable[T]]) -> T:
    """Run the action on the store, and close what was opened."""

    async def run() -> T:
        try:
            return await action(Store(app, where.connection))
        finally:
            await app.aclose()

    app = find_app(where.app) if where.app else Tenure(where.url, namespace=where.namespace)
    return asyncio.run(run())

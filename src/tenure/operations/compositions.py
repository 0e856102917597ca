"""What operators read and change of compositions."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, cast

from tenure.compositions import CompositionPage, Compositions, CompositionStatus
from tenure.config import DEFAULT
from tenure.connections import Connections
from tenure.errors import NotSupported
from tenure.naming import check_job_id, check_queue
from tenure.operations.numbers import age, at_least
from tenure.portal import blocking
from tenure.queue import feature

FEATURE: Final = "compositions"
PAGE: Final = 100


class CompositionOperations:
    """Reads, cancels and forgets compositions; each change is one atomic step, and asking again does no harm.

    A composition is kept with one queue, its home: that of its first job. Where it is not given, all of the store's
    queues are looked through. Raises what ``Operations`` does. Nothing here reads a payload.
    """

    def __init__(self, connections: Connections, queues: Callable[..., Awaitable[Sequence[str]]]) -> None:
        self._connections = connections
        self._queues = queues

    def store(self, connection: str = DEFAULT) -> Compositions:
        """Return what keeps them; raises ``NotSupported``."""
        queue = self._connections.get(connection).queue
        if not queue.capabilities.compositions or not feature(queue, Compositions):
            raise NotSupported(queue.capabilities.driver, FEATURE)
        return cast("Compositions", queue)

    def spanning(self, connection: str = DEFAULT) -> bool:
        """Tell whether the jobs of one composition may be in several queues."""
        return self._connections.get(connection).capabilities.spanning

    async def status(
        self, composition_id: str, *, queue: str | None = None, connection: str = DEFAULT
    ) -> CompositionStatus | None:
        """Return how far a composition has come; None for one that is unknown or forgotten."""
        store, wanted = self.store(connection), check_job_id(composition_id)
        for home in await self._homes(queue, connection):
            status = await store.composition(home, wanted)
            if status is not None:
                return status
        return None

    async def listed(
        self, queue: str, *, limit: int = PAGE, cursor: str | None = None, connection: str = DEFAULT
    ) -> CompositionPage:
        """Return the compositions that are kept with a queue, in no particular order, a page at a time."""
        at_least("limit", limit, 1)
        return await self.store(connection).compositions(check_queue(queue), limit=limit, cursor=cursor)

    async def cancel(self, composition_id: str, *, queue: str | None = None, connection: str = DEFAULT) -> bool:
        """Cancel what has not ended of a composition; False for one that is unknown or over."""
        store, wanted = self.store(connection), check_job_id(composition_id)
        for home in await self._homes(queue, connection):
            if await store.cancel_composition(home, wanted):
                return True
        return False

    async def prune(
        self,
        *,
        older_than: float | timedelta | None = None,
        hours: float | None = None,
        queue: str | None = None,
        connection: str = DEFAULT,
    ) -> int:
        """Forget compositions that were over that long ago, and return their exact number.

        Say it in seconds, as a timedelta, or in hours; the clock is the store's.
        """
        store, seconds = self.store(connection), age(older_than, hours)
        homes = await self._homes(queue, connection)
        return sum([await store.prune_compositions(home, older_than=seconds) for home in homes])

    async def _homes(self, queue: str | None, connection: str) -> Sequence[str]:
        return [check_queue(queue)] if queue is not None else await self._queues(connection=connection)

    def status_sync(
        self, composition_id: str, *, queue: str | None = None, connection: str = DEFAULT
    ) -> CompositionStatus | None:
        """Do what ``status`` does, blocking."""
        return blocking("status", lambda: self.status(composition_id, queue=queue, connection=connection))

    def listed_sync(
        self, queue: str, *, limit: int = PAGE, cursor: str | None = None, connection: str = DEFAULT
    ) -> CompositionPage:
        """Do what ``listed`` does, blocking."""
        return blocking("listed", lambda: self.listed(queue, limit=limit, cursor=cursor, connection=connection))

    def cancel_sync(self, composition_id: str, *, queue: str | None = None, connection: str = DEFAULT) -> bool:
        """Do what ``cancel`` does, blocking."""
        return blocking("cancel", lambda: self.cancel(composition_id, queue=queue, connection=connection))

    def prune_sync(
        self,
        *,
        older_than: float | timedelta | None = None,
        hours: float | None = None,
        queue: str | None = None,
        connection: str = DEFAULT,
    ) -> int:
        """Do what ``prune`` does, blocking."""
        return blocking(
            "prune", lambda: self.prune(older_than=older_than, hours=hours, queue=queue, connection=connection)
        )

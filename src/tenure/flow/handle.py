"""What the push of a composition gives back: how far it has come, and what became of its jobs."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, Protocol

from tenure.compositions import CompositionStatus
from tenure.errors import InvalidOption
from tenure.portal import blocking
from tenure.queue import JobState
from tenure.sensitive import Discreet

FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.5
"""Seconds between two looks of one that waits, at first and at most."""
GROWTH: Final = 1.5
PAGE: Final = 500
"""Members whose ends are read in one call."""


class Member(Discreet, frozen=True, kw_only=True):
    """What became of one counted job of a composition."""

    number: int
    """From 0, in the order in which the calls were given."""
    id: str
    state: JobState
    """``gone``: it has ended and nothing of that is kept (``result_ttl``), or its turn has not come, or never did."""
    result: Any = None
    """What it returned, if that is kept: restored from the job's annotation by the handle that the push gave back,
    plain JSON values by others."""
    reason: str = ""
    type: str = ""
    """Of a failure: why, and the class of the exception."""


class Source(Protocol):
    """Where a handle looks."""

    async def status(self) -> CompositionStatus | None:
        """Return how far the composition has come."""
        ...

    async def cancel(self) -> bool:
        """Cancel what has not ended."""
        ...

    async def members(self, first: int, number: int) -> Sequence[Member]:
        """Return what became of so many members, from this one on; fewer at the end."""
        ...


class CompositionHandle:
    """One composition. Every question is one look into the store."""

    __slots__ = ("_source", "connection", "held", "home", "id")

    def __init__(self, source: Source, composition_id: str, *, home: str, connection: str, held: bool = False) -> None:
        self.id: str = composition_id
        self.home: str = home
        """The queue that its record is kept with: that of its first job."""
        self.connection: str = connection
        self.held: bool = held
        """A composition with this id existed before the push, which changed nothing."""
        self._source = source

    async def status(self) -> CompositionStatus | None:
        """Return how far it has come; None for one that is unknown, or was forgotten when its retention was over."""
        return await self._source.status()

    async def cancel(self) -> bool:
        """Cancel what has not ended; False when it is over or unknown, and True again when it is being cancelled.

        What waits does not begin any more. What runs is told to stop, and what it has done stays done.
        """
        return await self._source.cancel()

    async def wait(self, *, timeout: float | timedelta | None = None) -> CompositionStatus | None:
        """Wait until all its counted jobs have ended, and return its status; None for one that is unknown.

        Raises ``TimeoutError`` after ``timeout`` seconds. Callbacks may still run.
        """
        async with asyncio.timeout(_timeout(timeout)):
            pause = FIRST_PAUSE
            while True:
                status = await self.status()
                if status is None or status.finished:
                    return status
                await asyncio.sleep(pause)
                pause = min(pause * GROWTH, LONGEST_PAUSE)

    async def results(self, *, page: int = PAGE) -> AsyncIterator[Member]:
        """Yield what became of its counted jobs, in order, as far as that is known now; ``page`` of them in one call.

        Results are there for jobs that were pushed with a ``result_ttl``, their own or the batch's.
        """
        page = _page(page)
        first = 0
        while members := await self._source.members(first, page):
            for member in members:
                yield member
            first += len(members)

    def status_sync(self) -> CompositionStatus | None:
        """Return what ``status`` does, blocking."""
        return blocking("status", self.status)

    def cancel_sync(self) -> bool:
        """Do what ``cancel`` does, blocking."""
        return blocking("cancel", self.cancel)

    def wait_sync(self, *, timeout: float | timedelta | None = None) -> CompositionStatus | None:
        """Do what ``wait`` does, blocking."""
        return blocking("wait", lambda: self.wait(timeout=timeout))

    def results_sync(self, *, page: int = PAGE) -> Iterator[Member]:
        """Yield what ``results`` does, blocking."""
        page = _page(page)
        first = 0
        while members := blocking("results", partial(self._source.members, first, page)):
            yield from members
            first += len(members)

    def __repr__(self) -> str:
        return f"<composition {self.id}>"


def _page(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given <= PAGE:
        raise InvalidOption(f"page must be a whole number from 1 to {PAGE}")
    return given


def _timeout(given: float | timedelta | None) -> float | None:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if seconds is not None and not seconds >= 0:  # NaN fails this too
        raise InvalidOption("timeout must be 0 or more seconds, or a timedelta")
    return seconds

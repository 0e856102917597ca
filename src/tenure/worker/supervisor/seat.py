"""One place in the crew, which always has a child in it that works.

A child that died is replaced, after a while if that happens again and again. One that has reached a limit goes on until
its replacement claims, and is told to retire then: there is no gap.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tenure.outage import pause
from tenure.worker.options import ExitReason
from tenure.worker.supervisor.backoff import Backoff
from tenure.worker.supervisor.child import Child
from tenure.worker.supervisor.reports import SupervisorReports
from tenure.worker.waits import first


class Seat:
    """Keeps one child at work until the crew is closed or there is nothing left to do."""

    def __init__(
        self,
        start: Callable[[], Awaitable[Child | None]],
        reports: SupervisorReports,
        *,
        relieving: asyncio.Semaphore,
        closed: asyncio.Event,
    ) -> None:
        """``relieving`` bounds how many seats have two children at a time; once ``closed``, nobody is started.

        ``start`` returns None when the crew was closed before a child could be started.
        """
        self._start = start
        self._reports = reports
        self._relieving = relieving
        self._closed = closed
        self._backoff = Backoff()

    async def run(self) -> None:
        """Return when the crew is closed, or a child found nothing left to do."""
        while not self._closed.is_set():
            newcomer = await self._start()
            if newcomer is None:
                return
            child = await self._last(newcomer)
            if child.ending is not None and child.ending.reason is ExitReason.EMPTY:
                return
            await self._pause_after(child)

    async def _last(self, child: Child) -> Child:
        """Return the child that has ended with nobody in its place."""
        while True:
            await first(child.ended.wait(), child.tired.wait())
            successor = None if child.ended.is_set() else await self._relieve(child)
            if successor is None:
                await child.ended.wait()
                return child
            child = successor

    async def _relieve(self, child: Child) -> Child | None:
        """Return who has taken the place of a child that is tired; None when it ended first, or the crew is closed."""
        turn = asyncio.ensure_future(self._relieving.acquire())
        await first(turn, child.ended.wait(), self._closed.wait())
        if not turn.done():
            return None
        try:
            await self._pause_after(child)
            while not child.ended.is_set() and not self._closed.is_set():
                successor = await self._start()
                if successor is None:
                    return None
                await first(successor.started.wait(), successor.ended.wait(), child.ended.wait(), self._closed.wait())
                if not successor.ended.is_set():
                    child.retire()
                    return successor
                await self._pause_after(successor)
        finally:
            self._relieving.release()
        return None

    async def _pause_after(self, child: Child) -> None:
        delay = self._backoff.after(child.age)
        if delay and not self._closed.is_set():
            self._reports.replacing(child, delay)
            await pause(delay, self._closed)

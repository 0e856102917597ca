"""When a child asks to be replaced, seen from inside it."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from tenure.worker import platform
from tenure.worker.marker import RestartMarker
from tenure.worker.options import ExitReason

TICK: Final = 0.5


class RecycleAt(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of each child; None: no such limit."""

    max_jobs: int | None = None
    max_time: float | None = None
    memory: int | None = None


class Recycling:
    """Looks twice a second whether a child has done enough."""

    def __init__(self, at: RecycleAt, marker: RestartMarker, finished: Callable[[], int]) -> None:
        """``finished``: how many jobs it has done so far."""
        self._at = at
        self._marker = marker
        self._finished = finished
        self._since = time.monotonic()

    async def reached(self) -> ExitReason:
        """Return which limit was reached, as soon as one is, or that a restart was asked for."""
        while True:
            reason = await self._look()
            if reason is not None:
                return reason
            await asyncio.sleep(TICK)

    async def _look(self) -> ExitReason | None:
        at = self._at
        if at.max_jobs is not None and self._finished() >= at.max_jobs:
            return ExitReason.MAX_JOBS
        if at.max_time is not None and time.monotonic() - self._since >= at.max_time:
            return ExitReason.MAX_TIME
        if at.memory is not None and (platform.resident_memory() or 0) > at.memory:
            return ExitReason.MEMORY
        if self._marker.due and await self._marker.changed():
            return ExitReason.RESTART
        return None

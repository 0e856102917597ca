"""What handlers tell of their progress, on its way to the store.

``tell`` is called wherever a handler runs and only notes the latest; one loop sends all that is new in one call, at
most every ``PAUSE``. The store takes a report only under the job's current lease, so one that comes late does no harm.
"""

import asyncio
import logging
import threading
from typing import Final

from tenure.errors import NotSupported, StoreError
from tenure.queue import Lease
from tenure.results import Progress, ProgressReport, Results

PAUSE: Final = 0.5
"""Seconds between two calls, at least."""
LONGEST_PAUSE: Final = 10.0
"""Seconds between two calls while the store cannot take them, at most."""

logger: logging.Logger = logging.getLogger("tenure.worker")


class ProgressBoard:
    """The latest progress of each running attempt that the store does not have yet."""

    def __init__(self, results: Results | None) -> None:
        self._results = results
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._latest: dict[tuple[str, str, int], ProgressReport] = {}
        self._news = asyncio.Event()

    def tell(self, lease: Lease, progress: Progress) -> None:
        """Note how far an attempt has come. Safe from any thread; never waits for the store."""
        if self._results is None:
            return
        with self._lock:
            first = not self._latest
            self._latest[_key(lease)] = ProgressReport(lease, progress)
        if first:
            try:
                self._loop.call_soon_threadsafe(self._news.set)
            except RuntimeError:  # an abandoned thread that tells when the worker has ended
                return

    async def run(self) -> None:
        """Send what is new, for ever."""
        pause = PAUSE
        while True:
            await self._news.wait()
            self._news.clear()
            pause = PAUSE if await self._send() else min(pause * 2, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _send(self) -> bool:
        with self._lock:
            reports, self._latest = self._latest, {}
        if self._results is None or not reports:
            return True
        try:
            await self._results.report(list(reports.values()))
        except (StoreError, NotSupported) as error:
            logger.debug("progress of %d jobs could not be reported, and will be again: %s", len(reports), error)
            with self._lock:
                self._latest = reports | self._latest
            self._news.set()
            return False
        return True


def _key(lease: Lease) -> tuple[str, str, int]:
    return lease.queue, lease.id, lease.fence

"""How a worker ends: it finishes what runs, gives the rest back, and lets the outcomes reach the store."""

import asyncio
import logging
from typing import Final

from tenure.worker.line import Line
from tenure.worker.options import DRAIN_GRACE
from tenure.worker.orders import Orders
from tenure.worker.reports import Reports
from tenure.worker.settler import Settler
from tenure.worker.waits import first

logger: logging.Logger = logging.getLogger("tenure.worker")

LAST_SETTLE: Final = 5.0
"""Seconds that the last outcomes have to reach the store."""
LAST_CLAIM: Final = 5.0
"""Seconds that a claim under way has to come back."""
AT_ONCE_GRACE: Final = 0.1


class Ending:
    """Ends one worker whose claim loop has stopped."""

    def __init__(
        self,
        line: Line,
        orders: Orders,
        settler: Settler,
        reports: Reports,
        *,
        stopping: asyncio.Event,
        at_once: asyncio.Event,
        drain: float,
    ) -> None:
        self._line = line
        self._orders = orders
        self._settler = settler
        self._reports = reports
        self._stopping = stopping
        self._at_once = at_once
        self._drain_time = drain

    async def run(self, claiming: asyncio.Task[None], settling: asyncio.Task[None]) -> None:
        """Return when nothing runs and nothing is left to settle, or the times for that are over."""
        await self._drain()
        # A claim under way may still bring leases, which go back; a store that does not answer holds up nothing.
        await asyncio.wait((claiming,), timeout=LAST_CLAIM)
        claiming.cancel()
        if await self._settler.drained(LAST_SETTLE):
            self._settler.stop()
        else:
            self._reports.unsettled(self._settler.open)
            settling.cancel()

    async def _drain(self) -> None:
        self._orders.give_back_waiting()
        # After a limit, running jobs have all their time; a signal, then or later, leaves them the drain time.
        await first(self._line.empty(), self._stopping.wait())
        if self._line.running:
            logger.info("draining: %d jobs run, for %g s at most", self._line.running, self._drain_time)
            await first(self._line.empty(), self._at_once.wait(), seconds=self._drain_time)
        if self._line.running:
            grace = AT_ONCE_GRACE if self._at_once.is_set() else DRAIN_GRACE
            logger.warning("%d jobs still run: they are stopped and given back", self._line.running)
            self._orders.stop_running(grace)
            await first(self._line.empty(), seconds=grace + 1.0)

"""Gives back what a dead child held: at once, so that only the death of a host waits for a lease.

Whatever was claimed under the child's holder is found in the store, also by a claim whose answer it never got. A last
command of it may still lie in a socket when it is dead; so there is a second look a moment later.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final, cast

from tenure.errors import StoreError
from tenure.operating import Holdings
from tenure.outage import Outage
from tenure.queue import Lease, Queue, Release, Settled, feature
from tenure.worker.supervisor.child import Child
from tenure.worker.supervisor.reports import SupervisorReports

SECOND_LOOK: Final = 0.2
"""Seconds until what a dead process has sent is certain to have arrived on one host or within one site."""
LAST_RELEASE: Final = 5.0
"""Seconds that the supervisor waits for, when it ends itself."""


class Releases:
    """Gives back leases of children that have ended."""

    def __init__(self, queue: Queue, queues: Sequence[str], lease: float, reports: SupervisorReports) -> None:
        """``queues``: what children claim from that never told it; ``lease``: seconds after which all lapse anyway."""
        self._queue = queue
        self._queues = tuple(queues)
        self._lease = lease
        self._reports = reports
        self._ending = asyncio.Event()

    def hurry(self) -> None:
        """From now on, give up on a store that does not answer after some seconds."""
        self._ending.set()

    async def give_back(self, child: Child, *, crashed: bool) -> None:
        """Give back all that the child held; never raises for a store that does not answer."""
        if not feature(self._queue, Holdings):
            self._reports.cannot_give_back(self._queue.capabilities.driver)
            return
        queues = tuple(dict.fromkeys((*child.queues, *self._queues)))
        outage = Outage(f"giving back what worker process {child.pid} held")
        until = time.monotonic() + self._lease
        left, looks = list(queues), 2
        error: StoreError | None = None
        while looks:
            for queue in tuple(left):
                try:
                    await self._release(child, queue, crashed=crashed)
                except StoreError as failure:
                    error = failure
                else:
                    left.remove(queue)
            if not left:
                outage.succeeded()
                left, looks, error = list(queues), looks - 1, None
                if looks:
                    await asyncio.sleep(SECOND_LOOK)
            else:
                assert error is not None
                delay = outage.failed(error)
                if self._ending.is_set():
                    until = min(until, time.monotonic() + LAST_RELEASE)
                if time.monotonic() + delay > until:
                    self._reports.not_given_back(child, error)
                    return
                await asyncio.sleep(delay)

    async def _release(self, child: Child, queue: str, *, crashed: bool) -> None:
        holdings = cast("Holdings", self._queue)
        cursor: str | None = None
        while True:
            page = await holdings.held_by(queue, child.holder, cursor=cursor)
            if page.leases:
                answers = await self._queue.settle([Release(lease, crashed=crashed) for lease in page.leases])
                given: list[Lease] = [
                    lease for lease, answer in zip(page.leases, answers, strict=True) if answer is not Settled.STALE
                ]
                if given:
                    self._reports.given_back(child, given)
            cursor = page.cursor
            if cursor is None:
                return

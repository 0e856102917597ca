"""The children of one supervisor, and what it does for each of them when it ends."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tenure.outage import pause
from tenure.worker import platform
from tenure.worker.supervisor.child import Child, Launch
from tenure.worker.supervisor.releasing import Releases
from tenure.worker.supervisor.reports import SupervisorReports
from tenure.worker.supervisor.seat import Seat
from tenure.worker.supervisor.tally import Tally
from tenure.worker.waits import first

RETRY: Final = 5.0
"""Seconds after which a process that the system refused to start is tried again."""


class Crew:
    """So many children at work, until they are told to stop or have nothing left to do."""

    def __init__(self, launch: Launch, size: int, releases: Releases, reports: SupervisorReports) -> None:
        self._launch = launch
        self._size = size
        self._releases = releases
        self._reports = reports
        self._children: list[Child] = []
        self._tasks = asyncio.TaskGroup()
        self._closed = asyncio.Event()
        self._quiet = False
        self._proven = False
        """Whether any child has ever begun to claim."""
        self.failed: bool = False
        """No child could begin to claim, and none is started any more."""
        self.departed: Callable[[Child], object] = lambda _: None
        """Called with each child that has ended, when nothing more is heard of it."""

    @property
    def tally(self) -> Tally:
        """What has happened to its children so far."""
        return self._reports.tally

    @property
    def children(self) -> Sequence[Child]:
        """The children that have not ended."""
        return tuple(self._children)

    async def run(self) -> None:
        """Return when all children have ended and what they held was given back."""
        # While one child of a seat is replaced there are two: at most half the crew is, at a time.
        relieving = asyncio.Semaphore(max(1, self._size // 2))
        async with self._tasks:
            for number in range(self._size):
                start = partial(self._start, number)
                seat = Seat(start, self._reports, relieving=relieving, closed=self._closed)
                self._tasks.create_task(seat.run())

    def close(self) -> None:
        """Start nobody any more."""
        self._closed.set()

    def quiet(self) -> None:
        """Let all claim no more; nobody is replaced."""
        self._quiet = True
        self.close()
        self._signal_quiet(self._children)

    def signal(self, number: signal.Signals) -> None:
        """Pass a signal on, once to each."""
        for child in self._children:
            child.signal(number)

    def kill(self) -> bool:
        """End all at once that have not ended; False when there are none."""
        for child in self._children:
            self._reports.killed(child)
            child.kill()
        return bool(self._children)

    # ------------------------------------------------------------------------------------------------ a child's life

    async def _start(self, seat: int) -> Child | None:
        while (child := await self._tried(seat)) is None:
            await pause(RETRY, self._closed)
            if self._closed.is_set():
                return None
        self._reports.started(child)
        self._children.append(child)
        self._tasks.create_task(self._life(child))
        self._tasks.create_task(self._beginning(child))
        if self._closed.is_set() and not self._quiet:
            child.signal(signal.SIGTERM)  # the others had theirs while this one was being started
        return child

    async def _tried(self, seat: int) -> Child | None:
        try:
            return await Child.start(self._launch, seat)
        except OSError as error:
            self._reports.cannot_start(error)
            return None

    async def _beginning(self, child: Child) -> None:
        await first(child.started.wait(), child.ended.wait())
        self._proven = self._proven or child.started.is_set()
        # It may have been too young for it.
        if self._quiet:
            self._signal_quiet((child,))

    async def _life(self, child: Child) -> None:
        await child.follow()
        self._children.remove(child)
        self.departed(child)
        if child.ending is not None:
            self._reports.ended(child)
            if child.ending.held:
                await self._releases.give_back(child, crashed=False)
            return
        if self._closed.is_set() and not child.started.is_set():
            self._reports.left(child)
        else:
            self._reports.died(child)
        if not self._proven and not child.started.is_set() and not self._closed.is_set():
            self._reports.never_started(child)
            self.failed = True
            self.close()
            self.signal(signal.SIGTERM)
            return
        await self._releases.give_back(child, crashed=True)

    @staticmethod
    def _signal_quiet(children: Sequence[Child]) -> None:
        if platform.QUIET is not None:
            for child in children:
                child.signal(platform.QUIET)

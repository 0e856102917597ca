"""Who runs next: the slots of a worker, and the few leases that were claimed ahead of them.

Claiming ahead keeps a worker busy while the next claim is under way. It goes no further than what the worker finished
in the last twentieth of a second, and never beyond its concurrency, so a lease waits here about 50 ms; one that has
waited a second is given back free of charge.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from tenure.worker.held import Held, HeldLeases, Stage

AHEAD_SECONDS: Final = 0.05
"""How much work, at the pace of late, may be claimed ahead."""
LONGEST_WAIT: Final = 1.0
"""Seconds after which a lease that was claimed ahead is given back."""
GATHER: Final = 0.002
"""Seconds that a claim waits for more slots to become free, so that it brings several jobs and not one."""
_WHATEVER: Final = -(10**9)
"""Less room than there can be."""
_PACE_SECONDS: Final = 0.25
"""Over how long the pace is measured."""


class Line:
    """The slots, and the leases that wait for one."""

    def __init__(self, size: int, leases: HeldLeases) -> None:
        self.size = size
        self.running: int = 0
        self.finished: int = 0
        """Jobs that have left a slot."""
        self._start: Callable[[Held], bool] = _nobody
        self._leases = leases
        self._ahead: deque[Held] = deque()
        self._wanted = 0
        self._waiter: asyncio.Future[None] | None = None
        self._ahead_limit = 0
        self._paced_at = time.monotonic()
        self._paced_finished = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._closed = False

    def feeds(self, start: Callable[[Held], bool]) -> None:
        """Name what runs a lease; it answers whether the lease took a slot."""
        self._start = start

    def offer(self, held: Held) -> None:
        """Run a lease now, or as soon as a slot is free."""
        if self.running < self.size and not self._ahead:
            self._run(held)
        else:
            self._ahead.append(held)

    def freed(self) -> None:
        """Take note that a job has left its slot, and give it to the next."""
        self.running -= 1
        self.finished += 1
        while self._ahead and self.running < self.size and not self._closed:
            self._run(self._ahead.popleft())
        if not self.running:
            self._empty.set()
        if self._waiter is not None and self.room() >= self._wanted:
            self.wake()

    def settled(self, _: int) -> None:
        """Take note that outcomes were answered, which also makes room."""
        if self._waiter is not None and self.room() >= self._wanted:
            self.wake()

    def room(self) -> int:
        """Return how many leases may be claimed now."""
        want = self.size + self._ahead_limit - self.running - len(self._ahead)
        # Outcomes that the store does not take must not pile up behind an ever running claim.
        return min(want, 3 * self.size - len(self._leases))

    @property
    def due(self) -> bool:
        """Whether slots are free that a claim should fill; claiming ahead is never due."""
        return self.running + len(self._ahead) < self.size and self.room() > 0

    async def wait_for_room(self) -> int:
        """Return how many leases to claim, once it is worth a call; 0 when woken for another reason."""
        self._pace()
        worth = max(1, (self.size + self._ahead_limit) // 2)
        if self.room() >= worth:
            return self.room()
        if self.due:
            # Some slots are free: more may follow in a moment, and one call for all of them is cheaper.
            await self._wait(worth, GATHER)
            return max(0, self.room())
        await self._wait(1 if self._ahead_limit == 0 else min(worth, self._ahead_limit), None)
        return 0

    async def begun(self) -> None:
        """Return when no lease waits for a slot, or nothing is started any more."""
        while self._ahead and not self._closed:
            await self._wait(_WHATEVER, None)

    def wake(self) -> None:
        """Let the waiter look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """Start nothing more, whatever becomes free."""
        self._closed = True
        self.wake()

    async def empty(self) -> None:
        """Return when nothing runs."""
        await self._empty.wait()

    def give_up(self, waited: float = 0.0) -> list[Held]:
        """Take out, and return, the leases that wait for a slot and have done so for that long."""
        limit = time.monotonic() - waited
        given_up = [held for held in self._ahead if held.since <= limit]
        self._ahead = deque(held for held in self._ahead if held.since > limit)
        return given_up

    def take_out(self, held: Held) -> bool:
        """Take one lease out of those that wait; False when it is not there."""
        try:
            self._ahead.remove(held)
        except ValueError:
            return False
        return True

    def _run(self, held: Held) -> None:
        if held.stage is Stage.AHEAD and self._start(held):
            self.running += 1
            self._empty.clear()

    async def _wait(self, wanted: int, seconds: float | None) -> None:
        self._wanted = wanted
        self._waiter = asyncio.get_running_loop().create_future()
        timer = None
        if seconds is not None:
            timer = self._waiter.get_loop().call_later(seconds, self.wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _pace(self) -> None:
        now = time.monotonic()
        seconds = now - self._paced_at
        if seconds < AHEAD_SECONDS:
            return
        pace = (self.finished - self._paced_finished) / seconds
        self._ahead_limit = min(self.size, int(pace * AHEAD_SECONDS))
        if seconds >= _PACE_SECONDS:
            self._paced_at, self._paced_finished = now, self.finished


def _nobody(held: Held) -> bool:
    raise RuntimeError(f"nothing was named that runs {held.lease.id}")

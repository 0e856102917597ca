"""What is looked at each second: leases that lapsed, leases that wait too long, and whether the worker still works.

A loop that should progress and does not ends the process with an error. The watch itself awaits nothing but its next
tick, so it stands still only when the event loop does: that is seen from the keeper's thread, and the log names the
handler that blocks it.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final

from tenure.context import attempt_in
from tenure.effects import Effects
from tenure.worker.failures import stack_of
from tenure.worker.held import Held, HeldLeases, Stage, Stop
from tenure.worker.line import LONGEST_WAIT, Line
from tenure.worker.stall import Judged

logger: logging.Logger = logging.getLogger("tenure.worker")

TICK: Final = 1.0
BLOCKED_SECONDS: Final = 3.0


def interval(lease: float) -> float:
    """Return the seconds between two ticks of a worker whose leases are that long."""
    return min(TICK, lease / 6)


class Heartbeat:
    """Whether the event loop turns. Beats in the loop, is looked at from the keeper's thread."""

    def __init__(self, leases: HeldLeases, interval: float = TICK) -> None:
        self._leases = leases
        self._interval = interval
        self._loop = asyncio.get_running_loop()
        self._beat = time.monotonic()
        self._looked = self._beat
        self._told = False
        self._thread = threading.get_ident()
        self._lag = 0.0
        self.late: float = 0.0
        """Seconds by which all beats together came late."""

    def beat(self) -> None:
        """Note that the loop turns."""
        if self._told:
            logger.warning("the event loop turns again")
            self._told = False
        now = time.monotonic()
        self._lag = max(0.0, now - self._beat - self._interval)
        self.late += self._lag
        self._beat = now

    @property
    def lag(self) -> float:
        """Seconds by which the last beat came late, or by which the next one is late already. Safe from any thread."""
        return max(self._lag, self.age - self._interval)

    @property
    def age(self) -> float:
        """Seconds since the last beat. Safe from any thread."""
        return time.monotonic() - self._beat

    def look(self) -> None:
        """Say once, and where, when the loop has not turned for some seconds."""
        now = time.monotonic()
        since_look, self._looked = now - self._looked, now
        blocked = now - self._beat
        # Not looked for as long: the whole process stood still, and no handler is to blame.
        if self._told or blocked < TICK + BLOCKED_SECONDS or since_look > BLOCKED_SECONDS:
            return
        self._told = True
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - its documented name
        where = stack_of(traceback.extract_stack(frame)) if frame is not None else "unknown"
        logger.warning(
            "%s has blocked the event loop for %.0f s; leases are kept; at %s", self._blocking(), blocked, where
        )

    def _blocking(self) -> str:
        """Name the job whose task the loop is in, as far as that can be told from another thread."""
        task = asyncio.current_task(self._loop)
        for held in self._leases.snapshot():
            if task is not None and held.task is task:
                return f"job {held.lease.id} ({held.name})"
        # A task that a handler has made carries its attempt in its context; Python 3.11 does not show that.
        context: Any = getattr(task, "get_context", None)
        attempt = None if context is None else attempt_in(context())
        return "a handler" if attempt is None else f"job {attempt.id} ({attempt.name})"


class Watch:
    """The ticking loop."""

    def __init__(
        self,
        leases: HeldLeases,
        line: Line,
        loops: Sequence[Judged],
        heartbeat: Heartbeat,
        *,
        lease: float,
        told: Callable[[Held, Stop], None],
        give_back: Callable[[Held], None],
    ) -> None:
        self._leases = leases
        self._line = line
        self._loops = loops
        self._heartbeat = heartbeat
        self._interval = interval(lease)
        self._told = told
        self._give_back = give_back

    async def run(self) -> None:
        """Tick until cancelled; raises ``Stalled``."""
        while True:
            await asyncio.sleep(self._interval)
            self._heartbeat.beat()
            self._lapsed()
            for held in self._line.give_up(LONGEST_WAIT):
                self._give_back(held)
            for loop in self._loops:
                loop.tick(self._interval)

    def _lapsed(self) -> None:
        now = time.monotonic()
        for held in self._leases.snapshot():
            running = held.stage <= Stage.RUNNING and held.effects < Effects.CLOSING
            if held.deadline < now and running and held.stop is None:
                self._told(held, Stop.LAPSED)


def dump_stacks(leases: HeldLeases) -> None:
    """Write the stacks of all running jobs and of all threads to the log: places in code, no values."""
    for held in leases.snapshot():
        task = held.task
        if held.stage is not Stage.RUNNING or task is None:
            continue
        seconds = time.monotonic() - held.since
        logger.warning(
            "job %s (%s) has run for %.1f s; awaiting at %s", held.lease.id, held.name, seconds, _awaiting(task)
        )
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 - its documented name
        where = stack_of(traceback.extract_stack(frame))
        logger.warning("thread %s is at %s", names.get(ident, ident), where)


def _awaiting(task: asyncio.Task[None]) -> str:
    """Follow a task through what it awaits; ``Task.get_stack`` ends at the first coroutine."""
    places: list[str] = []
    inner: object = task.get_coro()
    while inner is not None and len(places) < 12:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None) or getattr(inner, "ag_frame", None)
        if frame is not None:
            places.append(f"{frame.f_code.co_name} ({frame.f_code.co_filename}:{frame.f_lineno})")
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    return " > ".join(places) or "its end"

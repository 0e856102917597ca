"""Schedules, as a store sees them: a cursor for each, moved in the same step that pushes what was due.

A schedule's slots are points in time; which ones, its definition says, which no store reads. The cursor is the last
slot that was decided: fired, or skipped on purpose. Whoever finds a later slot due moves the cursor over it and pushes
its job in one atomic step, if the cursor is still where he saw it. So a slot fires once however many processes tick,
die and start again, and it is remembered however soon its job ends. The store's clock decides what is due: nothing
fires early because the clock of a process is fast.

A schedule lives in the queue that its jobs go to, so that the two can be one step.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from tenure.errors import InvalidOption
from tenure.queue import Push
from tenure.sensitive import Discreet

MOST_FIRED: Final = 100
"""Jobs that one step pushes at most (P6): catching up goes on with the next."""


class ScheduleRecord(Discreet, frozen=True, kw_only=True):
    """A stored schedule."""

    queue: str
    name: str
    definition: bytes
    """What says when its slots are and what is pushed then; opaque to the store (P13)."""
    cursor: float
    """The last slot that was decided, seconds since 1970; of a new schedule the time at which it was stored."""
    paused: bool = False
    last_job: str = ""
    """The id of the last job that it pushed; '' if there was none."""
    busy: bool = False
    """That job waits or runs."""


class ScheduleBook(msgspec.Struct, frozen=True, kw_only=True):
    """The schedules of a queue, and the store's time as they were read."""

    now: float
    """Seconds since 1970 by the store's clock."""
    schedules: Sequence[ScheduleRecord]


class Fired(StrEnum):
    """What became of an attempt to fire."""

    DONE = "done"
    """The cursor moved and the jobs are stored."""
    OVERLAPPED = "overlapped"
    """The cursor moved and nothing was pushed: the last job has not ended."""
    MISSED = "missed"
    """Nothing changed: somebody else was first, or the schedule is paused or gone, or the slot is not due yet."""


class Schedules(Protocol):
    """Keeps and fires schedules. For drivers whose ``capabilities.schedules`` is True."""

    async def schedules(self, queue: str) -> ScheduleBook:
        """Return the queue's schedules, sorted by name."""
        ...

    async def put_schedule(self, queue: str, name: str, definition: bytes) -> bool:
        """Store a schedule, or give one another definition; its cursor, and whether it is paused, stay. True if new."""
        ...

    async def fire(
        self, queue: str, name: str, *, seen: float, slot: float, jobs: Sequence[Push], overlap: bool
    ) -> Fired:
        """Move the cursor from ``seen`` to ``slot`` and push the jobs, ``MOST_FIRED`` at most, all in one step.

        Nothing happens unless the cursor is exactly what was ``seen`` and the slot is not ahead of the store's clock.
        Jobs without ``overlap`` are not pushed while the last one waits or runs. The last of them is remembered. With
        no jobs, the slots are skipped on purpose. A repeated call fires nothing again. Times are exact to the
        millisecond. Raises ``InvalidOption`` before anything is sent.
        """
        ...

    async def pause_schedule(self, queue: str, name: str, *, paused: bool) -> bool:
        """Let nothing fire, or let it fire again from now on; False when it is unknown, or so already.

        Resuming moves the cursor to the store's now: what was missed meanwhile was meant to be.
        """
        ...

    async def remove_schedule(self, queue: str, name: str) -> bool:
        """Forget a schedule; its jobs stay. False when it is unknown."""
        ...


def check_fire(queue: str, *, seen: float, slot: float, jobs: Sequence[Push]) -> None:
    """Raise ``InvalidOption`` for an attempt to fire that cannot be meant."""
    if not (math.isfinite(seen) and math.isfinite(slot) and round(seen * 1000) < round(slot * 1000)):
        raise InvalidOption(f"a schedule's cursor moves forward, not from {seen} to {slot}; nothing was sent")
    if len(jobs) > MOST_FIRED:
        raise InvalidOption(
            f"a schedule fires at most {MOST_FIRED} jobs in one step, not {len(jobs)}; nothing was sent"
        )
    if any(job.queue != queue or job.durability != 1 for job in jobs):
        raise InvalidOption("a schedule fires jobs of its own queue, of durability 1; nothing was sent")

"""What a job is in memory, and lines of them: in order of a key, any one removable, readable from anywhere."""

import sys
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Final

from tenure.drivers.memory.members import Member
from tenure.queue import MAX_DELIVERIES, Doom

Key = tuple[float, int]
"""What a line is sorted by (a rank, a time), then the place of entry, which no two jobs of a queue share.

A lease keeps its job's place: leases that lapse at the same moment go back in the order that their jobs had.
"""

BLOCK: Final = 512
"""About how many keys are moved for one that comes or goes."""


@dataclass(slots=True)
class Hold:
    """What the store knows of a lease. Its token is the job's current one as long as the job has this hold."""

    token: str = field(repr=False)
    fence: int
    length: float
    deadline: float


@dataclass(slots=True, kw_only=True)
class Job:
    """One stored job: one incarnation of its id."""

    id: str
    incarnation: int
    envelope: bytes = field(repr=False)
    priority: int
    crash_limit: int | None
    expires: float | None
    """The clock's monotonic time from which on it is leased doomed."""
    keep: float
    """Seconds for which its end is kept; 0: it is not."""
    unique: str = field(default="", repr=False)
    member: Member | None = None
    """What it is in its composition, if it is in one."""
    input: bytes | None = field(default=None, repr=False)
    entry: int = 0
    """Its place in the order in which jobs began to wait."""
    deliveries: int = 0
    free: int = 0
    crashes: int = 0
    hold: Hold | None = None
    cancel_requested: bool = False

    def limit(self, default: int) -> int:
        """Return how many of its leases may end in a crash."""
        return default if self.crash_limit is None else self.crash_limit

    def expired(self, now: float) -> bool:
        """Tell whether its time to run has passed."""
        return self.expires is not None and self.expires <= now

    def suspect(self, default: int) -> bool:
        """Tell whether it is one crash short of its limit. A job that never crashed is no suspect, whatever it is."""
        return self.crashes >= 1 and self.crashes == self.limit(default) - 1

    def doom(self, default: int, now: float) -> Doom | None:
        """Tell why the job must not run any more when it is leased next, if it must not (P4)."""
        if self.cancel_requested or (self.member is not None and self.member.called_off):
            return Doom.CANCELLED
        if self.crashes >= self.limit(default):
            return Doom.CRASHED
        if self.expired(now):
            return Doom.EXPIRED
        return Doom.DELIVERIES if self.deliveries >= MAX_DELIVERIES else None


class Line:
    """Jobs sorted by key: any one removable, and readable from any place on.

    The keys stand in blocks of bounded length: a step searches, and moves the keys of one block. No two jobs of a line
    have the same key.
    """

    def __init__(self) -> None:
        self._blocks: list[list[Key]] = []
        self._lasts: list[Key] = []
        """The last key of each block."""
        self._jobs: dict[Key, Job] = {}
        self._keys: dict[str, Key] = {}

    def __len__(self) -> int:
        """Return how many jobs stand in the line."""
        return len(self._keys)

    def __contains__(self, job: Job) -> bool:
        """Tell whether the job stands in the line."""
        return job.id in self._keys

    def add(self, job: Job, key: Key) -> None:
        """Put the job into the line, or to another place in it."""
        if job.id in self._keys:
            self.remove(job)
        self._keys[job.id] = key
        self._jobs[key] = job
        number = bisect_left(self._lasts, key)
        if number < len(self._blocks):
            self._insert(number, key)
        elif self._blocks and len(self._blocks[-1]) < BLOCK:
            self._blocks[-1].append(key)
            self._lasts[-1] = key
        else:
            self._blocks.append([key])
            self._lasts.append(key)

    def _insert(self, number: int, key: Key) -> None:
        block = self._blocks[number]
        insort(block, key)
        if len(block) > 2 * BLOCK:
            self._blocks[number : number + 1] = [block[:BLOCK], block[BLOCK:]]
            self._lasts.insert(number, block[BLOCK - 1])

    def remove(self, job: Job) -> None:
        """Take the job out of the line."""
        key = self._keys.pop(job.id)
        del self._jobs[key]
        number = bisect_left(self._lasts, key)
        block = self._blocks[number]
        del block[bisect_left(block, key)]
        if block:
            self._lasts[number] = block[-1]
        else:
            del self._blocks[number], self._lasts[number]

    def first(self) -> tuple[Key, Job] | None:
        """Return the first job and its key, or None."""
        if not self._blocks:
            return None
        key = self._blocks[0][0]
        return key, self._jobs[key]

    def behind(self, key: Key | None, limit: int) -> list[tuple[Key, Job]]:
        """Return the first jobs behind a key that need not be there, or of the whole line, and their keys."""
        number = 0 if key is None else bisect_right(self._lasts, key)
        start = 0 if key is None or number == len(self._blocks) else bisect_right(self._blocks[number], key)
        return self._part(number, start, limit)

    def beyond(self, count: int, limit: int) -> list[tuple[Key, Job]]:
        """Return the first jobs after so many others, and their keys."""
        number = 0
        while number < len(self._blocks) and count >= len(self._blocks[number]):
            count -= len(self._blocks[number])
            number += 1
        return self._part(number, count, limit)

    def _part(self, number: int, start: int, limit: int) -> list[tuple[Key, Job]]:
        keys: list[Key] = []
        while number < len(self._blocks) and len(keys) < limit:
            keys += self._blocks[number][start : start + limit - len(keys)]
            number, start = number + 1, 0
        return [(key, self._jobs[key]) for key in keys]

    def count_until(self, rank: float) -> int:
        """Count the jobs with at most this rank."""
        end = (rank, sys.maxsize)
        number = bisect_right(self._lasts, end)
        count = sum(map(len, self._blocks[:number]))
        return count if number == len(self._blocks) else count + bisect_right(self._blocks[number], end)

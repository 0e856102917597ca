"""What a job is in memory, and lines of them: in order of a key, and any one removable without a search."""

import heapq
from dataclasses import dataclass

from tenure.queue import MAX_DELIVERIES, Doom

Key = tuple[float, int]
"""What a line is sorted by (a rank, a time), then the place of entry, which no two jobs of a queue share.

A lease keeps its job's place: leases that lapse at the same moment go back in the order that their jobs had.
"""


@dataclass(slots=True)
class Hold:
    """What the store knows of a lease. Its token is the job's current one as long as the job has this hold."""

    token: str
    fence: int
    length: float
    deadline: float


@dataclass(slots=True, kw_only=True)
class Job:
    """One stored job: one incarnation of its id."""

    id: str
    incarnation: int
    envelope: bytes
    priority: int
    crash_limit: int | None
    expires: float | None
    """The clock's monotonic time from which on it is leased doomed."""
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
        if self.cancel_requested:
            return Doom.CANCELLED
        if self.crashes >= self.limit(default):
            return Doom.CRASHED
        if self.expired(now):
            return Doom.EXPIRED
        return Doom.DELIVERIES if self.deliveries >= MAX_DELIVERIES else None


class Line:
    """Jobs sorted by key. A job that is removed leaves its entry behind; entries of the gone are dropped later.

    Every step takes time in the logarithm of the length, averaged over the steps: when the gone outnumber the
    present, the line is built anew.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[Key, int, Job]] = []
        self._present: dict[str, int] = {}
        self._added = 0

    def __len__(self) -> int:
        """Return how many jobs stand in the line."""
        return len(self._present)

    def __contains__(self, job: Job) -> bool:
        """Tell whether the job stands in the line."""
        return job.id in self._present

    def add(self, job: Job, key: Key) -> None:
        """Put the job into the line, or to another place in it."""
        self._added += 1
        self._present[job.id] = self._added
        heapq.heappush(self._heap, (key, self._added, job))
        self._tidy()

    def remove(self, job: Job) -> None:
        """Take the job out of the line."""
        del self._present[job.id]
        self._tidy()

    def first(self) -> tuple[Key, Job] | None:
        """Return the first job and its key, or None."""
        while self._heap and not self._stands(self._heap[0]):
            heapq.heappop(self._heap)
        if not self._heap:
            return None
        key, _, job = self._heap[0]
        return key, job

    def count_until(self, rank: float) -> int:
        """Count the jobs with at most this rank, in time that grows with their number alone."""
        count, places = 0, [0]
        while places:
            place = places.pop()
            if place < len(self._heap) and self._heap[place][0][0] <= rank:
                count += self._stands(self._heap[place])
                places += (2 * place + 1, 2 * place + 2)
        return count

    def _stands(self, entry: tuple[Key, int, Job]) -> bool:
        """Tell whether the entry is the job's latest, and the job not gone."""
        _, number, job = entry
        return self._present.get(job.id) == number

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._present) + 64:
            self._heap = [entry for entry in self._heap if self._stands(entry)]
            heapq.heapify(self._heap)

"""The failed store of one queue in memory."""

from tenure.drivers.memory.line import Job, Key, Line
from tenure.queue import Fail, FailedRecord

STEP = 100
"""How many failed jobs one step of a prune removes at most (P6)."""


class Failures:
    """Failed jobs, sorted by when they failed; each named by its id, guarded by its incarnation."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Job, FailedRecord]] = {}
        self._line = Line()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._kept)

    def __contains__(self, job_id: str) -> bool:
        """Tell whether a job with this id failed."""
        return job_id in self._kept

    def keep(self, job: Job, record: FailedRecord) -> None:
        """Take a job in, at the place that its entry says."""
        self._kept[job.id] = job, record
        self._line.add(job, (record.failed_at, job.entry))

    def records(self, limit: int, offset: int) -> list[FailedRecord]:
        """Return records, oldest first."""
        return [self._kept[job.id][1] for _, job in self._line.beyond(offset, limit)]

    def record(self, job_id: str) -> FailedRecord | None:
        """Return one record, or None."""
        kept = self._kept.get(job_id)
        return None if kept is None else kept[1]

    def job(self, record: FailedRecord) -> Job | None:
        """Return the job of this record; None when it is gone, or failed another time."""
        kept = self._kept.get(record.id)
        return None if kept is None or kept[0].incarnation != record.incarnation else kept[0]

    def take(self, record: FailedRecord) -> Job | None:
        """Remove the job of this record and return it; None when there is none."""
        job = self.job(record)
        if job is not None:
            self._remove(job)
        return job

    def prune(self, until: float, last: int) -> int:
        """Remove at most ``STEP`` jobs that failed by then and entered no later than the place ``last``."""
        removed = 0
        place: Key | None = None
        while removed < STEP and (found := self._line.behind(place, STEP - removed)):
            for place, job in found:
                if place[0] > until:
                    return removed
                # One that failed after the prune began is older than it only by a clock that went back.
                if place[1] <= last:
                    self._remove(job)
                    removed += 1
        return removed

    def _remove(self, job: Job) -> None:
        del self._kept[job.id]
        self._line.remove(job)


def recorded(queue: str, job: Job, settlement: Fail, failed_at: float) -> FailedRecord:
    """Return the record of a job that fails."""
    return FailedRecord(
        queue=queue,
        id=job.id,
        incarnation=job.incarnation,
        attempts=job.deliveries - job.free,
        failed_at=failed_at,
        failure=settlement.failure,
        envelope=job.envelope,
    )

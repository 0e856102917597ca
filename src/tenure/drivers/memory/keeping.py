"""What is kept of one queue's jobs in memory: the ends of those that have ended, the progress of those that run."""

import heapq

from tenure.clock import Clock
from tenure.drivers.memory.line import Job
from tenure.queue import Ack, Fail, JobState, Settlement
from tenure.results import Ending, Progress, failed_state

STEP = 100
"""How many ends whose time is over one step forgets at most (P6)."""


class Kept:
    """Ends by id, each until its time is over, and the progress of running jobs."""

    def __init__(self, clock: Clock) -> None:
        self.progress: dict[str, Progress] = {}
        self._clock = clock
        self._endings: dict[str, tuple[float, Ending]] = {}
        self._times: list[tuple[float, str]] = []

    def end(self, job: Job, settlement: Settlement | None = None) -> None:
        """Keep how a job ended, by a settlement or else by a cancel, for as long as it asked for."""
        if not job.keep:
            return
        until = self._clock.monotonic() + job.keep
        self._endings[job.id] = until, _ending(job, settlement, self._clock.time())
        heapq.heappush(self._times, (until, job.id))
        # Two for each that comes, so that they do not become more and more where nothing else sweeps.
        self.sweep(2)

    def ending(self, job_id: str) -> Ending | None:
        """Return how a job ended, or None."""
        until, ending = self._endings.get(job_id, (0.0, None))
        return ending if ending is not None and until > self._clock.monotonic() else None

    def forget(self, job_id: str) -> None:
        """Forget the end of a job whose id begins a new life."""
        self._endings.pop(job_id, None)

    def sweep(self, most: int = STEP) -> None:
        """Forget ends whose time is over."""
        now = self._clock.monotonic()
        for _ in range(most):
            if not self._times or self._times[0][0] > now:
                return
            until, job_id = heapq.heappop(self._times)
            if job_id in self._endings and self._endings[job_id][0] == until:
                del self._endings[job_id]


def _ending(job: Job, settlement: Settlement | None, ended_at: float) -> Ending:
    state, result, reason, kind = JobState.CANCELLED, None, "", ""
    if isinstance(settlement, Ack):
        state, result = JobState.SUCCEEDED, settlement.result
    elif isinstance(settlement, Fail):
        reason, kind = settlement.failure.reason, settlement.failure.type
        state = failed_state(reason)
    return Ending(state=state, incarnation=job.incarnation, ended_at=ended_at, result=result, reason=reason, type=kind)

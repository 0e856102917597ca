"""Counting, finding and cancelling: what is asked of a queue by name or id."""

from collections.abc import Sequence

from tenure import naming
from tenure.drivers.redis.session import Session
from tenure.queue import Cancelled, Counts, JobState

MOST = 1000
"""How many ids one call asks for at most."""

_STATES = {
    "d": JobState.DELAYED,
    "r": JobState.READY,
    "l": JobState.RUNNING,
    "f": JobState.FAILED,
    "e": JobState.EXPIRED,
    "s": JobState.SUCCEEDED,
    "c": JobState.CANCELLED,
    "g": JobState.GONE,
}
_CANCELLED = {"r": Cancelled.REMOVED, "q": Cancelled.REQUESTED, "n": Cancelled.NOT_FOUND}


class Desk:
    """What one event loop asks about queues."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def counts(self, queue: str) -> Counts:
        """Count the queue's jobs by state."""
        ready, delayed, leased, lapsed, failed, unreadable, age = await self._session.run(queue, "counts", ())
        return Counts(
            ready=max(0, ready),
            delayed=delayed,
            leased=leased,
            lapsed=lapsed,
            failed=failed,
            unreadable=unreadable,
            oldest_age=int(age) / 1000 if age else None,
        )

    async def queues(self) -> list[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        names = await self._session.command(b"SMEMBERS", self._session.keyspace.queues)
        return sorted(name.decode() for name in names)

    async def states(self, queue: str, ids: Sequence[str]) -> list[JobState]:
        """Tell where each job is, in order."""
        states: list[JobState] = []
        for start in range(0, len(ids), MOST):
            letters = await self._session.run(queue, "states", ids[start : start + MOST])
            states += [_STATES[letter] for letter in letters.decode()]
        return states

    async def cancel(self, queue: str, ids: Sequence[str]) -> list[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order."""
        answers: list[Cancelled] = []
        for start in range(0, len(ids), MOST):
            part = [naming.check_job_id(job_id) for job_id in ids[start : start + MOST]]
            _, letters = await self._session.write(queue, "cancel", part)
            answers += [_CANCELLED[letter] for letter in letters.decode()]
        return answers

    async def clear(self, queue: str) -> int:
        """Remove all waiting jobs, and return their exact number."""
        _, number = await self._session.write(queue, "clear", ())
        return int(number)

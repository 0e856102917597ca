"""What a push gives back: where the job is, and what became of it."""

import asyncio
from datetime import timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from tenure.errors import InvalidOption, JobFailed, JobGone
from tenure.portal import blocking
from tenure.queue import Cancelled, JobState

R_co = TypeVar("R_co", covariant=True)

FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.5
"""Seconds between two looks of a waiting handle, at first and at most."""

ENDED: Final = frozenset(
    {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED, JobState.GONE}
)  # fmt: skip


class Store(Protocol):
    """What a handle asks of the application."""

    async def states(self, queue: str, ids: list[str], *, connection: str) -> list[JobState]:
        """Tell where jobs are, in order."""
        ...

    async def cancel(self, queue: str, ids: list[str], *, connection: str) -> list[Cancelled]:
        """Cancel jobs, and answer for each in order."""
        ...


class Kept:
    """A result that is here already."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value


class JobHandle(Generic[R_co]):
    """One pushed job. Every question is one look into the store."""

    __slots__ = ("_kept", "_store", "connection", "held", "id", "queue")

    def __init__(
        self,
        store: Store,
        job_id: str,
        *,
        queue: str,
        connection: str,
        held: bool = False,
        kept: Kept | None = None,
    ) -> None:
        self.id: str = job_id
        self.queue: str = queue
        self.connection: str = connection
        self.held: bool = held
        """A job with this id existed before the push, which changed nothing."""
        self._store = store
        self._kept = kept

    async def status(self) -> JobState:
        """Return where the job is; ``gone`` once it has ended and nothing of it was kept."""
        if self._kept is not None:
            return JobState.SUCCEEDED
        [state] = await self._store.states(self.queue, [self.id], connection=self.connection)
        return state

    async def wait(self, *, timeout: float | timedelta | None = None) -> JobState:
        """Wait until the job has ended and return its state; raises ``TimeoutError`` after ``timeout`` seconds."""
        seconds = _timeout(timeout)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                pause = FIRST_PAUSE
                while (state := await self.status()) not in ENDED:
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, LONGEST_PAUSE)
                return state
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimeoutError(f"job {self.id} has not ended after {seconds:g} s; it goes on") from None

    async def result(self, *, timeout: float | timedelta) -> R_co:
        """Wait for the job and return its result.

        Raises ``TimeoutError`` after ``timeout`` seconds, ``JobFailed`` when it ended without a result, and
        ``JobGone`` when it ended and its result was not kept.
        """
        if self._kept is not None:
            return self._kept.value  # type: ignore[no-any-return] # what this very job returned
        state = await self.wait(timeout=timeout)
        if state in {JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED}:
            raise JobFailed(f"job {self.id} ended without a result: {state.value}")
        raise JobGone(f"job {self.id} has ended, and its result was not kept")

    async def cancel(self) -> Cancelled:
        """Remove the job if it waits, or ask its worker to stop it; what has ended is not found."""
        if self._kept is not None:
            return Cancelled.NOT_FOUND
        [answer] = await self._store.cancel(self.queue, [self.id], connection=self.connection)
        return answer

    def status_sync(self) -> JobState:
        """Return what ``status`` does, blocking."""
        return blocking("status", self.status)

    def wait_sync(self, *, timeout: float | timedelta | None = None) -> JobState:
        """Do what ``wait`` does, blocking."""
        return blocking("wait", lambda: self.wait(timeout=timeout))

    def result_sync(self, *, timeout: float | timedelta) -> R_co:
        """Do what ``result`` does, blocking."""
        return blocking("result", lambda: self.result(timeout=timeout))

    def cancel_sync(self) -> Cancelled:
        """Do what ``cancel`` does, blocking."""
        return blocking("cancel", self.cancel)

    def __repr__(self) -> str:
        return f"<job {self.id} of queue {self.queue}>"


def _timeout(given: float | timedelta | None) -> float | None:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if seconds is not None and not seconds >= 0:  # NaN fails this too
        raise InvalidOption("timeout must be 0 or more seconds, or a timedelta")
    return seconds

"""What a push gives back: where the job is, and what became of it."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Generic, TypeVar

from tenure.errors import InvalidOption, JobFailed, JobGone, NotSupported, ResultUnavailable
from tenure.lookout import Ended, Lookout
from tenure.portal import blocking
from tenure.queue import Cancelled, JobState
from tenure.results import Progress

R_co = TypeVar("R_co", covariant=True)


class Kept:
    """A result that is here already."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value


class JobHandle(Generic[R_co]):
    """One pushed job. Every question is one look into the store."""

    __slots__ = ("_kept", "_lookout", "_restore", "composition", "connection", "held", "id", "queue")

    def __init__(
        self,
        lookout: Lookout,
        job_id: str,
        *,
        queue: str,
        connection: str,
        held: bool = False,
        restore: Callable[[bytes], Any] | None = None,
        kept: Kept | None = None,
        composition: str = "",
    ) -> None:
        self.id: str = job_id
        self.queue: str = queue
        self.connection: str = connection
        self.held: bool = held
        """A job with this id existed before the push, which changed nothing; of a unique job, the one that has its
        place."""
        self.composition: str = composition
        """The id of the chain whose last job this is, for ``app.composition()``; empty if it was pushed alone."""
        self._lookout = lookout
        self._restore = restore
        self._kept = kept

    @property
    def _why_cancelled(self) -> str:
        return "or discarded by its handler"

    async def status(self) -> JobState:
        """Return where the job is; ``gone`` once it has ended and nothing of it is kept."""
        if self._kept is not None:
            return JobState.SUCCEEDED
        [state] = await self._lookout.store.states(self.queue, [self.id], connection=self.connection)
        return state

    async def wait(self, *, timeout: float | timedelta | None = None) -> JobState:
        """Wait until the job has ended and return its state; raises ``TimeoutError`` after ``timeout`` seconds."""
        if self._kept is not None:
            return JobState.SUCCEEDED
        return (await self._ended(timeout, wanted=False)).state

    async def _ended(self, timeout: float | timedelta | None, *, wanted: bool) -> Ended:
        seconds = _timeout(timeout)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._end(wanted=wanted)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimeoutError(f"job {self.id} has not ended after {seconds:g} s; it goes on") from None

    async def _end(self, *, wanted: bool) -> Ended:
        return await self._lookout.ended(self.queue, self.id, connection=self.connection, wanted=wanted)

    async def result(self, *, timeout: float | timedelta) -> R_co:
        """Wait for the job and return its result, as its annotation has it; it is kept only with ``result_ttl``.

        Raises ``TimeoutError`` after ``timeout`` seconds, ``JobFailed`` when the job failed, expired or was cancelled,
        ``JobGone`` when it ended and nothing of it is kept, and ``ResultUnavailable`` when it succeeded, and what it
        returned could not be kept. ``Undecodable``: what was kept does not fit the annotation any more.
        """
        if self._kept is not None:
            return self._kept.value  # type: ignore[no-any-return] # what this very job returned
        state, ending = await self._ended(timeout, wanted=True)
        if state is JobState.CANCELLED:
            raise JobFailed(f"job {self.id} was cancelled, {self._why_cancelled}", state=state.value)
        if state in {JobState.FAILED, JobState.EXPIRED}:
            reason, kind = (ending.reason, ending.type) if ending is not None else await self._failure()
            why = f": {reason}{kind and ', '}{kind}" if reason else ""
            raise JobFailed(f"job {self.id} {state.value}{why}", state=state.value, reason=reason, type=kind)
        if ending is None:
            raise JobGone(f"job {self.id} has ended, and its result was not kept, or no longer (result_ttl)")
        if ending.result is None:
            raise ResultUnavailable(
                f"job {self.id} has succeeded, and what it returned could not be kept: it has no wire form, is over "
                "the size limit (the worker's log says which), or was not known yet when transaction() acknowledged it"
            )
        return (self._restore or _plain)(ending.result)  # type: ignore[no-any-return] # what the annotation says

    async def _failure(self) -> tuple[str, str]:
        """Return the reason and the type that the failed store has, or empty texts."""
        try:
            record = await self._lookout.store.failed_record(self.queue, self.id, connection=self.connection)
        except NotSupported:
            record = None
        return ("", "") if record is None else (record.failure.reason, record.failure.type)

    async def progress(self) -> Progress | None:
        """Return how far the running attempt has come, as it told last; None when it told nothing, or none runs."""
        if self._kept is not None:
            return None
        [progress] = await self._lookout.store.progress(self.queue, [self.id], connection=self.connection)
        return progress

    async def cancel(self) -> Cancelled:
        """Remove the job if it waits, or ask its worker to stop it; what has ended is not found."""
        if self._kept is not None:
            return Cancelled.NOT_FOUND
        [answer] = await self._lookout.store.cancel(self.queue, [self.id], connection=self.connection)
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

    def progress_sync(self) -> Progress | None:
        """Return what ``progress`` does, blocking."""
        return blocking("progress", self.progress)

    def cancel_sync(self) -> Cancelled:
        """Do what ``cancel`` does, blocking."""
        return blocking("cancel", self.cancel)

    def __repr__(self) -> str:
        return f"<job {self.id} of queue {self.queue}>"


def _plain(result: bytes) -> Any:
    from tenure.returned import ResultCodec  # noqa: PLC0415 - keeps `import tenure` light

    return ResultCodec().decode(result)


def _timeout(given: float | timedelta | None) -> float | None:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if seconds is not None and not seconds >= 0:  # NaN fails this too
        raise InvalidOption("timeout must be 0 or more seconds, or a timedelta")
    return seconds

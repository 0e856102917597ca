"""The handle of a chain's last job, which is in the store only when its turn has come."""

from collections.abc import Callable
from typing import Any, TypeVar

from tenure.compositions import CompositionState
from tenure.flow.handle import CompositionHandle
from tenure.handle import JobHandle
from tenure.lookout import Ended, Lookout
from tenure.queue import Cancelled, JobState

R_co = TypeVar("R_co", covariant=True)


class LastHandle(JobHandle[R_co]):
    """The last job of a chain. What the store does not know of it, it knows of its chain.

    ``delayed`` until its turn has come; ``cancelled`` when it never came, because a job before it did not succeed.
    Cancelling it cancels what has not ended of the chain.
    """

    __slots__ = ("_chain",)

    def __init__(
        self, lookout: Lookout, job_id: str, *, queue: str, chain: CompositionHandle, restore: Callable[[bytes], Any]
    ) -> None:
        super().__init__(
            lookout,
            job_id,
            queue=queue,
            connection=chain.connection,
            held=chain.held,
            restore=restore,
            composition=chain.id,
        )
        self._chain = chain

    @property
    def _why_cancelled(self) -> str:
        return f"discarded by its handler, or a job before it in chain {self._chain.id} did not succeed"

    async def status(self) -> JobState:
        """Return where the job is."""
        state = await super().status()
        if state is not JobState.GONE:
            return state
        chain = await self._chain.status()
        if chain is not None and not chain.finished:
            return JobState.DELAYED
        return _unkept(None if chain is None else chain.state)

    async def _end(self, *, wanted: bool) -> Ended:
        chain = await self._chain.wait()
        state, ending = await super()._end(wanted=wanted)
        if state is JobState.GONE:
            state = _unkept(None if chain is None else chain.state)
        return Ended(state, ending)

    async def cancel(self) -> Cancelled:
        """Cancel what has not ended of the chain."""
        return Cancelled.REQUESTED if await self._chain.cancel() else Cancelled.NOT_FOUND


def _unkept(chain: CompositionState | None) -> JobState:
    """Return what a last job is of which the store has nothing, by what its chain is."""
    return JobState.GONE if chain in {None, CompositionState.COMPLETED} else JobState.CANCELLED

"""Waiting for jobs to end, by looking: for all handles of an application at once.

However many handles wait on a loop, one look at a queue is one call to its store, and no look follows another sooner
than ``FIRST_PAUSE``. A handle that waits long is looked for less often, down to every ``LONGEST_PAUSE``. Nothing is
subscribed to, and a store without waiting handles is not asked at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Final, NamedTuple, Protocol

from tenure.queue import Cancelled, FailedRecord, JobState
from tenure.results import Ending, Progress

FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.5
"""Seconds between two looks for a waiting handle, at first and at most."""
GROWTH: Final = 1.5
EARLY: Final = 0.25
"""The part of its pause by which a handle may be looked for earlier, together with others."""

ENDED: Final = frozenset(
    {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED, JobState.GONE}
)  # fmt: skip


class Ended(NamedTuple):
    """How a job ended, and what was kept of that."""

    state: JobState
    ending: Ending | None


class Store(Protocol):
    """What handles ask of a store."""

    async def states(self, queue: str, ids: Sequence[str], *, connection: str) -> list[JobState]:
        """Tell where jobs are, in order."""
        ...

    async def endings(self, queue: str, ids: Sequence[str], *, connection: str) -> list[Ending | None]:
        """Return how jobs ended, in order, as far as that is kept."""
        ...

    async def progress(self, queue: str, ids: Sequence[str], *, connection: str) -> list[Progress | None]:
        """Return how far running jobs have come, in order, as far as they told."""
        ...

    async def failed_record(self, queue: str, job_id: str, *, connection: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        ...

    async def cancel(self, queue: str, ids: Sequence[str], *, connection: str) -> list[Cancelled]:
        """Cancel jobs, and answer for each in order."""
        ...


class Lookout:
    """The waiting handles of one application."""

    def __init__(self, store: Store) -> None:
        self.store: Store = store
        """For questions that nobody waits for."""
        self._watches: dict[tuple[asyncio.AbstractEventLoop, str, str], _Watch] = {}

    async def ended(self, queue: str, job_id: str, *, connection: str, wanted: bool) -> Ended:
        """Wait until a job has ended; ``wanted``: what was kept of its end is, too. Raises what the store raises."""
        key = asyncio.get_running_loop(), connection, queue
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = _Watch(
                lambda ids: self.store.states(queue, ids, connection=connection),
                lambda ids: self.store.endings(queue, ids, connection=connection),
                lambda: self._watches.pop(key, None),
            )
        return await watch.ended(job_id, wanted=wanted)


class _Waiter:
    """One waiting handle."""

    __slots__ = ("due", "future", "id", "pause", "wanted")

    def __init__(self, job_id: str, wanted: bool, now: float, future: "asyncio.Future[Ended]") -> None:  # noqa: FBT001
        self.id = job_id
        self.wanted = wanted
        self.due = now
        self.pause = FIRST_PAUSE
        self.future = future

    def answer(self, ended: Ended) -> None:
        """End the waiting."""
        if not self.future.done():
            self.future.set_result(ended)

    def fail(self, error: BaseException) -> None:
        """End it with an error."""
        if not self.future.done():
            self.future.set_exception(error)


class _Watch:
    """The handles that wait, on one loop, for jobs of one queue. It lives as long as one does."""

    def __init__(
        self,
        states: Callable[[list[str]], Awaitable[list[JobState]]],
        endings: Callable[[list[str]], Awaitable[list[Ending | None]]],
        over: Callable[[], object],
    ) -> None:
        self._states = states
        self._endings = endings
        self._over = over
        self._waiting: set[_Waiter] = set()
        self._came = asyncio.Event()
        # Started by the first waiter, it must see nothing of that one's context.
        self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def ended(self, job_id: str, *, wanted: bool) -> Ended:
        loop = asyncio.get_running_loop()
        waiter = _Waiter(job_id, wanted, loop.time(), loop.create_future())
        self._waiting.add(waiter)
        self._came.set()
        try:
            return await waiter.future
        finally:
            self._waiting.discard(waiter)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                self._came.clear()
                now = loop.time()
                due = [waiter for waiter in self._waiting if waiter.due <= now + waiter.pause * EARLY]
                if due:
                    await self._look(due)
                    await asyncio.sleep(FIRST_PAUSE)
                else:
                    await self._until(min(waiter.due for waiter in self._waiting) - now)
        finally:
            self._over()
            for waiter in self._waiting:  # only when this task was cancelled: its loop is coming to an end
                waiter.future.cancel()

    async def _until(self, seconds: float) -> None:
        """Return when so much time has passed, or another handle begins to wait."""
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
        except TimeoutError:
            pass

    async def _look(self, due: Sequence[_Waiter]) -> None:
        try:
            states = await self._states([waiter.id for waiter in due])
            over = [(waiter, state) for waiter, state in zip(due, states, strict=True) if state in ENDED]
            wanted = [waiter for waiter, state in over if waiter.wanted and state is not JobState.GONE]
            found = await self._endings([waiter.id for waiter in wanted]) if wanted else []
        except Exception as error:  # noqa: BLE001 - whatever it is, it is for those who asked
            for waiter in due:
                waiter.fail(error)
                self._waiting.discard(waiter)
            return
        endings = dict(zip(wanted, found, strict=True))
        for waiter, state in over:
            waiter.answer(Ended(state, endings.get(waiter)))
            self._waiting.discard(waiter)
        now = asyncio.get_running_loop().time()
        for waiter in due:
            waiter.due = now + waiter.pause
            waiter.pause = min(waiter.pause * GROWTH, LONGEST_PAUSE)

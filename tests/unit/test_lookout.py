"""Waiting handles look together: how often the store is asked does not grow with their number."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from tenure.lookout import FIRST_PAUSE, LONGEST_PAUSE, Ended, Lookout
from tenure.queue import Cancelled, FailedRecord, JobState
from tenure.results import Ending, Progress
from tests.support.processes import eventually_async


class Store:
    """Jobs as a test has them; counts what is asked."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobState] = {}
        self.asked: list[tuple[str, int]] = []
        self.endings_asked: list[int] = []
        self.error: Exception | None = None
        self.looked = asyncio.Event()
        self.times: list[float] = []

    async def states(self, queue: str, ids: Sequence[str], *, connection: str) -> list[JobState]:
        self.asked.append((f"{connection}/{queue}", len(ids)))
        self.looked.set()
        self.times.append(time.monotonic())
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return [self.jobs.get(job_id, JobState.RUNNING) for job_id in ids]

    async def endings(self, queue: str, ids: Sequence[str], *, connection: str) -> list[Ending | None]:
        assert f"{connection}/{queue}" in {"default/q", "default/r"}
        self.endings_asked.append(len(ids))
        return [Ending(state=self.jobs[job_id], incarnation=1, ended_at=0.0, result=job_id.encode()) for job_id in ids]

    async def progress(self, queue: str, ids: Sequence[str], *, connection: str) -> list[Progress | None]:
        raise NotImplementedError

    async def failed_record(self, queue: str, job_id: str, *, connection: str) -> FailedRecord | None:
        raise NotImplementedError

    async def cancel(self, queue: str, ids: Sequence[str], *, connection: str) -> list[Cancelled]:
        raise NotImplementedError


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def lookout(store: Store) -> Lookout:
    return Lookout(store)


async def ended(lookout: Lookout, job_id: str, *, queue: str = "q", wanted: bool = True) -> Ended:
    async with asyncio.timeout(10):
        return await lookout.ended(queue, job_id, connection="default", wanted=wanted)


async def test_a_thousand_handles_are_one_question(lookout: Lookout, store: Store) -> None:
    names = [f"j{number}" for number in range(1000)]
    waiting = asyncio.gather(*(ended(lookout, name) for name in names))
    await store.looked.wait()
    store.jobs = dict.fromkeys(names, JobState.SUCCEEDED)
    found = await waiting
    assert [one.ending.result.decode() for one in found if one.ending and one.ending.result] == names
    assert {count for _, count in store.asked} == {1000}
    assert len(store.asked) <= 3
    assert store.endings_asked == [1000]


async def test_what_was_kept_is_read_only_by_those_who_want_it(lookout: Lookout, store: Store) -> None:
    store.jobs = {"a": JobState.SUCCEEDED, "b": JobState.FAILED, "c": JobState.GONE}
    found = await asyncio.gather(
        ended(lookout, "a"), ended(lookout, "b", wanted=False), ended(lookout, "c"), ended(lookout, "a", queue="r")
    )
    assert [(one.state.value, one.ending is not None) for one in found] == [
        ("succeeded", True), ("failed", False), ("gone", False), ("succeeded", True),
    ]  # fmt: skip
    assert sorted(store.asked) == [("default/q", 3), ("default/r", 1)]
    assert store.endings_asked == [1, 1]


async def test_looks_for_one_handle_become_rarer_and_a_new_handle_is_looked_for_at_once(
    lookout: Lookout, store: Store
) -> None:
    slow = asyncio.create_task(ended(lookout, "slow"))

    async def ninth_look() -> bool:
        return len(store.times) >= 9

    await eventually_async(ninth_look)
    # 5 ms, growing by a half each time.
    assert store.times[8] - store.times[7] > 10 * (0.75 * FIRST_PAUSE)
    store.jobs["quick"] = JobState.SUCCEEDED
    began = time.monotonic()
    await ended(lookout, "quick")
    assert time.monotonic() - began < LONGEST_PAUSE / 2
    store.jobs["slow"] = JobState.CANCELLED
    assert (await slow).state is JobState.CANCELLED


async def test_nobody_is_asked_about_when_nobody_waits(lookout: Lookout, store: Store) -> None:
    before = len(asyncio.all_tasks())
    waiting = [asyncio.create_task(ended(lookout, name)) for name in ("a", "b")]
    await store.looked.wait()
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    store.looked.clear()
    await store.looked.wait()
    assert store.asked[-1][1] == 1
    waiting[1].cancel()
    await asyncio.wait(waiting)

    async def nobody_looks() -> bool:
        return len(asyncio.all_tasks()) == before

    await eventually_async(nobody_looks)


async def test_an_error_of_the_store_reaches_everybody_who_waits_and_the_next_one_asks_anew(
    lookout: Lookout, store: Store
) -> None:
    store.error = ZeroDivisionError("broken")
    found = await asyncio.gather(*(ended(lookout, name) for name in "abc"), return_exceptions=True)
    assert [type(one) for one in found] == [ZeroDivisionError] * 3
    store.error, store.jobs["a"] = None, JobState.SUCCEEDED
    assert (await ended(lookout, "a")).state is JobState.SUCCEEDED


def test_each_event_loop_looks_for_itself(lookout: Lookout, store: Store) -> None:
    store.jobs["a"] = JobState.SUCCEEDED
    for _ in range(3):
        assert asyncio.run(ended(lookout, "a")).state is JobState.SUCCEEDED

    async def gives_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await ended(lookout, "never")

    asyncio.run(gives_up())
    assert asyncio.run(ended(lookout, "a")).state is JobState.SUCCEEDED

"""Operating the memory driver, where it differs from the others: steps between turns of a loop, and bounds."""

import asyncio
import math
import sys

import pytest

from tenure.drivers.memory import MemoryQueue
from tenure.errors import InvalidOption
from tenure.operating import Control, JobLister, Pruning, UnreadableStore
from tenure.queue import Fail, Failure, JobState, Push, SetAside, feature
from tests.sql.test_clock import Hands

WHY = Failure(reason="exception")
LISTED = [JobState.READY, JobState.DELAYED, JobState.RUNNING]


def jobs(count: int, *, name: str = "j", **options: float) -> list[Push]:
    return [Push(queue="q", id=f"{name}{n:06}", envelope=b"{}", **options) for n in range(count)]  # type: ignore[arg-type]


async def fail(queue: MemoryQueue, count: int, *, name: str = "j") -> None:
    await queue.push(jobs(count, name=name))
    claimed = await queue.claim(["q"], limit=count, lease=60, wait=0)
    await queue.settle([Fail(lease, WHY) for lease in claimed.leases])


@pytest.mark.parametrize("protocol", [JobLister, UnreadableStore, Pruning, Control])
def test_it_is_operated_by_every_protocol(protocol: type) -> None:
    assert feature(MemoryQueue(), protocol)


async def test_a_prune_gives_others_their_turn_between_its_steps() -> None:
    queue = MemoryQueue()
    await fail(queue, 1000)
    pruning = asyncio.create_task(queue.prune("q", older_than=0))
    seen: list[int] = []
    while not pruning.done():
        seen.append((await queue.counts("q")).failed)
        await asyncio.sleep(0)
    assert await pruning == 1000
    assert {900, 500, 100} <= set(seen)


async def test_a_job_that_fails_while_a_prune_runs_stays_though_the_clock_goes_back() -> None:
    clock = Hands()
    queue = MemoryQueue(clock=clock)
    await fail(queue, 250, name="old")
    pruning = asyncio.create_task(queue.prune("q", older_than=0))
    await asyncio.sleep(0)
    assert (await queue.counts("q")).failed == 150
    clock.wall -= 3600
    await fail(queue, 150, name="young")
    assert await pruning == 250
    assert {record.id[:5] for record in await queue.failed("q", limit=500)} == {"young"}


async def test_failures_are_listed_by_when_they_failed_though_the_clock_went_back() -> None:
    clock = Hands()
    queue = MemoryQueue(clock=clock)
    await fail(queue, 1, name="later")
    clock.wall -= 100
    await fail(queue, 1, name="earlier")
    assert [record.id for record in await queue.failed("q")] == ["earlier000000", "later000000"]
    clock.wall += 100
    assert await queue.prune("q", older_than=50) == 1
    assert [record.id for record in await queue.failed("q")] == ["later000000"]


@pytest.mark.parametrize("state", LISTED)
async def test_a_cursor_reads_on_in_its_own_listing_alone(state: JobState) -> None:
    queue = MemoryQueue()
    await queue.push([*jobs(9), *jobs(3, name="d", delay=60)])
    await queue.claim(["q"], limit=3, lease=60, wait=0)
    page = await queue.jobs("q", state, limit=2)
    assert page.cursor is not None
    assert len((await queue.jobs("q", state, cursor=page.cursor)).jobs) == (4 if state is JobState.READY else 1)
    for other in set(LISTED) - {state}:
        with pytest.raises(InvalidOption, match="no cursor of this listing"):
            await queue.jobs("q", other, cursor=page.cursor)


async def test_a_job_delayed_for_ever_is_listed_and_read_past() -> None:
    queue = MemoryQueue()
    await queue.push(jobs(3, delay=math.inf))
    page = await queue.jobs("q", JobState.DELAYED, limit=2)
    rest = await queue.jobs("q", JobState.DELAYED, cursor=page.cursor)
    assert [job.id for job in [*page.jobs, *rest.jobs]] == ["j000000", "j000001", "j000002"]


async def test_a_page_holds_a_thousand_jobs_at_most_and_the_cursor_reads_on() -> None:
    queue = MemoryQueue()
    await queue.push(jobs(1001))
    page = await queue.jobs("q", JobState.READY, limit=10**30)
    rest = await queue.jobs("q", JobState.READY, cursor=page.cursor)
    assert (len(page.jobs), len(rest.jobs), rest.cursor) == (1000, 1, None)


@pytest.mark.parametrize("state", LISTED)
async def test_a_listing_costs_what_its_page_costs_wherever_it_is_and_whatever_went(state: JobState) -> None:
    """Judged by the calls that Python makes, which depend on nothing but the work."""

    async def calls(count: int) -> int:
        queue = MemoryQueue()
        await queue.push(jobs(count, delay=60 if state is JobState.DELAYED else 0))
        if state is JobState.RUNNING:
            await queue.claim(["q"], limit=count, lease=60, wait=0)
        else:
            await queue.cancel("q", [f"j{n:06}" for n in range(1, count - 40, 2)])
        page = await queue.jobs("q", state, limit=20)
        while page.cursor is not None and count > 1000 and page.jobs[-1].id < f"j{count // 2:06}":
            page = await queue.jobs("q", state, limit=1000, cursor=page.cursor)
        made = 0

        def seen(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event in {"call", "c_call"}

        sys.setprofile(seen)
        try:
            await queue.jobs("q", state, limit=20)
            await queue.jobs("q", state, limit=20, cursor=page.cursor)
        finally:
            sys.setprofile(None)
        return made

    assert await calls(30_000) < await calls(100) * 1.5


async def test_dropped_records_leave_no_gap_in_the_reading() -> None:
    queue = MemoryQueue()
    await queue.push(jobs(50))
    claimed = await queue.claim(["q"], limit=50, lease=60, wait=0)
    await queue.settle([SetAside(lease, "no") for lease in claimed.leases])
    keys = [record.key for record in await queue.unreadable("q")]
    assert list(await queue.drop_unreadable("q", keys[::2])) == [True] * 25
    assert [record.key for record in await queue.unreadable("q", after=keys[10], limit=3)] == keys[11:17:2]
    assert (await queue.counts("q")).unreadable == 25


async def test_a_pause_and_a_marker_are_seen_from_every_thread() -> None:
    queue = MemoryQueue()

    def elsewhere() -> tuple[list[bool], str | None]:
        async def look() -> tuple[list[bool], str | None]:
            return list(await queue.paused(["q"])), await queue.restart_marker()

        return asyncio.run(look())

    assert await asyncio.to_thread(elsewhere) == ([False], None)
    await queue.pause("q")
    marker = await queue.request_restart()
    assert await asyncio.to_thread(elsewhere) == ([True], marker)

"""Higher priorities first, then by entry to the ready line (P9)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import pytest

from tenure.errors import NotSupported
from tenure.queue import Ack, Cancelled, Release
from tenure.testing.contract.steps import (
    LONG,
    SHORT,
    Q,
    claim,
    claim_one,
    done,
    drained,
    failed_jobs,
    failed_once,
    ids,
    job,
    lapsed,
    pass_time,
    push,
    pushed_and_claimed,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


def needs_priorities(store: StoreUnderTest) -> None:
    if not store.queue.capabilities.priorities:
        pytest.skip(f"the driver {store.queue.capabilities.driver!r} has no priorities")


async def test_a_driver_without_priorities_refuses_them_before_it_stores_anything(store: StoreUnderTest) -> None:
    if store.queue.capabilities.priorities:
        await push(store.queue, job(priority=1))
        assert await where(store.queue) == {"ready": 1}
        return
    with pytest.raises(NotSupported):
        await store.queue.push([job(), job(priority=1)])
    assert await where(store.queue) == {}


async def test_jobs_come_in_the_order_they_were_pushed(store: StoreUnderTest) -> None:
    order = [f"j{number}" for number in range(60)]
    for start in range(0, 60, 7):
        await push(store.queue, *map(job, order[start : start + 7]))
    assert ids(await claim(store.queue, 25)) + ids(await claim(store.queue, 35)) == order


async def test_a_higher_priority_comes_first(store: StoreUnderTest) -> None:
    needs_priorities(store)
    priorities = [0, 5, -5, 100, -100, 1, -1, 99, 10, 9]
    await push(store.queue, *(job(f"p{priority}", priority=priority) for priority in priorities))
    order = [f"p{priority}" for priority in sorted(priorities, reverse=True)]
    assert ids(await claim(store.queue, 3)) + ids(await claim(store.queue, 10)) == order


async def test_equal_priorities_come_in_the_order_they_were_pushed(store: StoreUnderTest) -> None:
    needs_priorities(store)
    await push(store.queue, *(job(f"j{n:02}", priority=(7, -7)[n % 2]) for n in range(30)))
    order = [f"j{n:02}" for n in range(0, 30, 2)] + [f"j{n:02}" for n in range(1, 30, 2)]
    assert ids(await drained(store.queue, 30, batch=4)) == order


async def test_a_higher_priority_overtakes_a_line_that_waits(store: StoreUnderTest) -> None:
    needs_priorities(store)
    await push(store.queue, *(job(f"low-{n}") for n in range(5)))
    assert ids(await claim(store.queue)) == ["low-0"]
    await push(store.queue, job("urgent", priority=3))
    assert ids(await claim(store.queue, 2)) == ["urgent", "low-1"]


async def test_a_priority_outlives_a_release(store: StoreUnderTest) -> None:
    needs_priorities(store)
    lease = await pushed_and_claimed(store.queue, job("urgent", priority=3))
    await push(store.queue, job("plain"))
    await done(store.queue, Release(lease))
    assert ids(await claim(store.queue, 2)) == ["urgent", "plain"]


async def test_a_priority_outlives_a_delay(store: StoreUnderTest) -> None:
    needs_priorities(store)
    await push(store.queue, job("low", priority=-3, delay=0.05), job("high", priority=3, delay=0.05), job("plain"))
    await pass_time(store.queue, 0.08)
    assert ids(await claim(store.queue, 3)) == ["high", "plain", "low"]


async def test_a_priority_outlives_a_lapse(store: StoreUnderTest) -> None:
    needs_priorities(store)
    await pushed_and_claimed(store.queue, job("urgent", priority=3), lease=SHORT)
    await push(store.queue, job("plain"))
    await lapsed(store.queue)
    assert ids(await claim(store.queue, 2)) == ["urgent", "plain"]


async def test_a_priority_outlives_a_failure(store: StoreUnderTest) -> None:
    needs_priorities(store)
    record = await failed_once(store.queue, job("urgent", priority=3))
    await push(store.queue, job("plain"))
    assert list(await failed_jobs(store.queue).retry([record])) == [True]
    assert ids(await claim(store.queue, 2)) == ["urgent", "plain"]


async def test_a_released_job_goes_to_the_tail_of_its_line(store: StoreUnderTest) -> None:
    await push(store.queue, job("a"), job("b"))
    lease = await claim_one(store.queue)
    await done(store.queue, Release(lease))
    await push(store.queue, job("c"))
    assert ids(await claim(store.queue, 3)) == ["b", "a", "c"]


async def test_a_reclaimed_job_goes_to_the_tail_of_its_line(store: StoreUnderTest) -> None:
    await pushed_and_claimed(store.queue, job("a"), lease=SHORT)
    await push(store.queue, job("b"), job("c"))
    await lapsed(store.queue)
    assert ids(await claim(store.queue, 3)) == ["b", "c", "a"]


async def test_jobs_with_priorities_are_counted_cancelled_and_cleared(store: StoreUnderTest) -> None:
    needs_priorities(store)
    await push(store.queue, *(job(f"p{n}", priority=n) for n in (-2, -1, 0, 1, 2)), job("d", priority=4, delay=60))
    assert await where(store.queue) == {"ready": 5, "delayed": 1}
    assert list(await store.queue.cancel(Q, ["p2", "p-2"])) == [Cancelled.REMOVED] * 2
    assert await where(store.queue) == {"ready": 3, "delayed": 1}
    assert await store.queue.clear(Q) == 4
    await push(store.queue, job("p1", priority=1))
    lease = await claim_one(store.queue, lease=LONG)
    assert (lease.id, lease.deliveries) == ("p1", 1)
    await done(store.queue, Ack(lease))
    assert await where(store.queue) == {}

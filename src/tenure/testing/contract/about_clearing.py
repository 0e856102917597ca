"""A clear removes what waits and tells its exact number."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio

from tenure.queue import Ack, Fail, Release
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    crashed,
    done,
    drained,
    ids,
    job,
    jobs,
    lapsed,
    numbered,
    push,
    suspected,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


# K4
async def test_a_clear_removes_ready_and_delayed_jobs_and_tells_their_number(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(7), *(job(delay=60) for _ in range(4)))
    assert await store.queue.clear(Q) == 11
    await assert_empty(store.queue)
    assert await store.another().clear(Q) == 0


async def test_a_clear_of_an_empty_queue_removes_nothing(store: StoreUnderTest) -> None:
    assert await store.queue.clear("never-seen") == 0


# K4
async def test_a_clear_leaves_what_is_leased_or_failed(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a", "b", "c", "d"))
    a, b = await claim(store.queue, 2)
    await done(store.queue, Fail(b, WHY))
    assert await store.queue.clear(Q) == 2
    assert await where(store.queue) == {"leased": 1, "failed": 1}
    await done(store.queue, Release(a))
    assert ids(await drained(store.queue, 1)) == ["a"]


async def test_a_clear_leaves_lapsed_leases_to_be_reclaimed(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a", "b"))
    await claim_one(store.queue, lease=SHORT)
    await lapsed(store.queue)
    assert await store.queue.clear(Q) == 1
    assert ids(await drained(store.queue, 1)) == ["a"]


async def test_a_clear_removes_released_jobs_and_suspects_too(store: StoreUnderTest) -> None:
    await suspected(store.queue, "suspect")
    await push(store.queue, *jobs("a", "b"))
    leases = await claim(store.queue, 2, suspects=False)
    await done(store.queue, Release(leases[0]), Release(leases[1], delay=60))
    assert await where(store.queue) == {"ready": 2, "delayed": 1}
    assert await store.queue.clear(Q) == 3
    await assert_empty(store.queue)


async def test_a_clear_touches_only_its_own_queue(store: StoreUnderTest) -> None:
    await push(store.queue, job(), job(queue="other"))
    assert await store.queue.clear(Q) == 1
    assert await where(store.queue, "other") == {"ready": 1}


async def test_a_cleared_queue_takes_the_same_ids_again(store: StoreUnderTest) -> None:
    await push(store.queue, *(job(f"j{n}", envelope=b"old", delay=0.02 * (n % 2)) for n in range(10)))
    assert await store.queue.clear(Q) == 10
    await push(store.queue, *(job(f"j{n}", envelope=b"new") for n in range(10)))
    leases = await drained(store.queue, 10)
    assert ids(leases) == [f"j{n}" for n in range(10)]
    assert {(lease.envelope, lease.deliveries) for lease in leases} == {(b"new", 1)}
    await assert_empty(store.queue)


async def test_a_cleared_job_that_ran_before_leaves_nothing_to_the_next_of_its_id(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", priority=0, crash_limit=9, expires_in=60, envelope=b"old"))
    await crashed(store.queue, 2)
    await done(store.queue, Release(await claim_one(store.queue), free=True))
    assert await store.queue.clear(Q) == 1
    await push(store.queue, job("x", envelope=b"new"))
    lease = await claim_one(store.queue)
    assert (lease.deliveries, lease.free, lease.crashes, lease.doomed) == (1, 0, 0, None)
    assert (lease.envelope, lease.suspect) == (b"new", False)
    await done(store.queue, Ack(lease))
    await assert_empty(store.queue)


async def test_a_clear_of_many_jobs_is_exact(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(1500))
    assert await store.queue.clear(Q) == 1500
    await push(store.queue, job("x"))
    assert ids(await drained(store.queue, 1)) == ["x"]


# K4
async def test_clears_that_race_pushes_and_claims_remove_each_job_once(store: StoreUnderTest) -> None:
    other, third = store.another(), store.another()
    pushed = cleared = claimed = 0
    for _ in range(15):
        pushes = [job() for _ in range(20)]
        half = asyncio.gather(other.push(pushes[:10]), other.push(pushes[10:]))
        got, number, again, _ = await asyncio.gather(claim(third, 5), store.queue.clear(Q), other.clear(Q), half)
        pushed, cleared, claimed = pushed + 20, cleared + number + again, claimed + len(got)
        await done(third, *map(Ack, got))
    assert pushed == claimed + cleared + await store.queue.clear(Q)
    await assert_empty(store.queue)

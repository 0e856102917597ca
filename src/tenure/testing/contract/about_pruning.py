"""A prune forgets old failures by the store's clock, and tells their exact number."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import time

import pytest

from tenure.errors import InvalidOption
from tenure.queue import Fail, Queue, Release
from tenure.testing.contract.operators import pruning
from tenure.testing.contract.steps import (
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    failed_jobs,
    failed_once,
    inspector,
    job,
    jobs,
    numbered,
    pass_time,
    push,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def many_failed(queue: Queue, count: int, *, name: str = Q) -> None:
    """Let so many jobs fail."""
    await push(queue, *numbered(count, queue=name))
    while leases := await claim(queue, 100, queues=[name]):
        await done(queue, *(Fail(lease, WHY) for lease in leases))
    assert await where(queue, name) == {"failed": count}


async def test_a_prune_removes_what_failed_long_enough_ago_and_nothing_younger(store: StoreUnderTest) -> None:
    for age in (0.3, 1.0, 3.0):
        await failed_once(store.queue, job("old"))
        await failed_once(store.queue, job("also-old"))
        await pass_time(store.queue, age)
        before = time.monotonic()
        await failed_once(store.queue, job("young"))
        removed = await pruning(store.queue).prune(Q, older_than=age)
        if time.monotonic() - before < age:
            break
        # The machine was too slow to tell the young from the old by this age: again, with a greater one.
        await pruning(store.queue).prune(Q, older_than=0)
    else:
        pytest.fail("three seconds were not enough for two calls")
    assert removed == 2
    assert [record.id for record in await failed_jobs(store.another()).failed(Q)] == ["young"]
    assert await where(store.queue) == {"failed": 1}


async def test_a_prune_of_nothing_old_removes_nothing(store: StoreUnderTest) -> None:
    await failed_once(store.queue)
    for age in (60, 3600.0, 1e9, 1e300):
        assert await pruning(store.queue).prune(Q, older_than=age) == 0
    assert await where(store.queue) == {"failed": 1}


async def test_two_hundred_and_fifty_failures_go_in_one_call(store: StoreUnderTest) -> None:
    await many_failed(store.queue, 250)
    assert await pruning(store.queue).prune(Q, older_than=0) == 250
    await assert_empty(store.queue)
    assert await pruning(store.another()).prune(Q, older_than=0) == 0
    assert list(await failed_jobs(store.queue).failed(Q)) == []


@pytest.mark.parametrize("count", [99, 100, 101])
async def test_a_prune_is_exact_around_the_length_of_its_steps(store: StoreUnderTest, count: int) -> None:
    await many_failed(store.queue, count)
    assert await pruning(store.queue).prune(Q, older_than=0) == count
    await assert_empty(store.queue)


async def test_a_prune_touches_only_failed_jobs_of_its_own_queue(store: StoreUnderTest) -> None:
    await failed_once(store.queue, job("x", queue="other"))
    await push(store.queue, *jobs("fails", "runs", "again"))
    fails, _, again = await claim(store.queue, 3)
    await done(store.queue, Fail(fails, WHY), Release(again))
    await push(store.queue, job("later", delay=60))
    elsewhere = store.elsewhere()
    await failed_once(elsewhere, job("x"))
    assert await pruning(store.queue).prune(Q, older_than=0) == 1
    assert await where(store.queue) == {"ready": 1, "delayed": 1, "leased": 1}
    assert await where(store.queue, "other") == {"failed": 1}
    assert await where(elsewhere) == {"failed": 1}


async def test_a_queue_without_failures_is_pruned_of_none_and_not_made(store: StoreUnderTest) -> None:
    assert await pruning(store.queue).prune("never", older_than=0) == 0
    assert list(await inspector(store.queue).queues()) == []


async def test_a_pruned_job_is_gone_for_good_and_its_id_is_free(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue, job("x"))
    assert await pruning(store.queue).prune(Q, older_than=0) == 1
    assert list(await failed_jobs(store.queue).retry([record])) == [False]
    assert list(await failed_jobs(store.queue).forget([record])) == [False]
    await push(store.queue, job("x", envelope=b"new"))
    lease = await claim_one(store.queue)
    assert (lease.deliveries, lease.envelope) == (1, b"new")


async def test_a_retried_job_that_failed_again_is_as_old_as_its_last_failure(store: StoreUnderTest) -> None:
    for age in (0.3, 1.0, 3.0):
        record = await failed_once(store.queue, job("x"))
        await pass_time(store.queue, age)
        before = time.monotonic()
        assert list(await failed_jobs(store.queue).retry([record])) == [True]
        await done(store.queue, Fail(await claim_one(store.queue), WHY))
        removed = await pruning(store.queue).prune(Q, older_than=age)
        if time.monotonic() - before < age:
            break
        await pruning(store.queue).prune(Q, older_than=0)
    else:
        pytest.fail("three seconds were not enough for a few calls")
    assert removed == 0
    assert await where(store.queue) == {"failed": 1}


async def test_two_prunes_at_the_same_time_count_each_failure_once(store: StoreUnderTest) -> None:
    await many_failed(store.queue, 250)
    one, other = pruning(store.queue), pruning(store.another())
    removed = await asyncio.gather(one.prune(Q, older_than=0), other.prune(Q, older_than=0))
    assert sum(removed) == 250
    await assert_empty(store.queue)


async def test_a_prune_beside_retries_takes_each_failure_once(store: StoreUnderTest) -> None:
    await many_failed(store.queue, 250)
    records = await failed_jobs(store.queue).failed(Q, limit=250)
    removed, retried = await asyncio.gather(
        pruning(store.another()).prune(Q, older_than=0),
        asyncio.gather(*(failed_jobs(store.queue).retry(records[at : at + 10]) for at in range(240, -1, -10))),
    )
    again = [answer for answers in retried for answer in answers].count(True)
    assert removed + again == 250
    assert await where(store.queue) == ({"ready": again} if again else {})


async def test_an_age_that_cannot_be_is_refused(store: StoreUnderTest) -> None:
    await failed_once(store.queue)
    for age in (-1, -0.001, float("nan"), float("-inf")):
        with pytest.raises(InvalidOption):
            await pruning(store.queue).prune(Q, older_than=age)
    assert await where(store.queue) == {"failed": 1}

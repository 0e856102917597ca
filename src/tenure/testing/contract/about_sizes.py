"""A call may be larger than any worker makes it: it is split, not refused and not half done (P6)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

from tenure.queue import Ack, Cancelled, JobState, Renewal, Settled
from tenure.testing.contract.steps import (
    Q,
    assert_empty,
    claim,
    done,
    failed_jobs,
    failed_once,
    ids,
    inspector,
    job,
    numbered,
    push,
    pushed_and_claimed,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

MANY = 9000
"""More than a Lua script can unpack, or than SQLite takes values in a statement by its old default."""


async def test_very_many_jobs_are_pushed_claimed_and_settled_in_few_calls(store: StoreUnderTest) -> None:
    pushes = numbered(3000)
    await push(store.queue, *pushes)
    leases = []
    for _ in range(10):
        leases += await claim(store.queue, MANY)
    assert ids(leases) == [one.id for one in pushes]
    assert list(await store.queue.renew(leases)) == [Renewal.HELD] * 3000
    await done(store.queue, *map(Ack, leases))
    await assert_empty(store.queue)


async def test_a_lease_named_very_often_is_settled_once(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    assert list(await store.queue.renew([lease] * MANY)) == [Renewal.HELD] * MANY
    assert list(await store.queue.settle([Ack(lease)] * MANY)) == [Settled.DONE] + [Settled.STALE] * (MANY - 1)
    await assert_empty(store.queue)


async def test_very_many_ids_are_cancelled_in_one_call(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"), job("y"))
    never = [f"n{number}" for number in range(MANY)]
    answers = list(await store.queue.cancel(Q, ["x", *never, "y", "x"]))
    assert answers == [Cancelled.REMOVED, *[Cancelled.NOT_FOUND] * MANY, Cancelled.REMOVED, Cancelled.NOT_FOUND]
    await assert_empty(store.queue)


async def test_the_states_of_very_many_jobs_are_told_in_one_call(store: StoreUnderTest) -> None:
    reader = inspector(store.queue)
    await push(store.queue, job("x"))
    states = await reader.states(Q, [*(f"n{number}" for number in range(MANY)), "x"])
    assert list(states) == [JobState.GONE] * MANY + [JobState.READY]


async def test_a_failed_job_named_very_often_is_retried_once(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue)
    reader = failed_jobs(store.queue)
    assert list(await reader.retry([record] * MANY)) == [True] + [False] * (MANY - 1)
    assert list(await reader.forget([record] * MANY)) == [False] * MANY
    assert await where(store.queue) == {"ready": 1}


async def test_an_id_pushed_very_often_in_one_call_is_one_job(store: StoreUnderTest) -> None:
    answers = await store.queue.push([job("x")] * MANY)
    assert [one.outcome for one in answers] == ["stored"] + ["held"] * (MANY - 1)
    assert await where(store.queue) == {"ready": 1}


async def test_a_page_of_failed_jobs_may_be_larger_than_there_are(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue)
    assert [one.id for one in await failed_jobs(store.queue).failed(Q, limit=1_000_000)] == [record.id]
    assert list(await failed_jobs(store.queue).failed(Q, limit=10, offset=1_000_000)) == []
    assert list(await failed_jobs(store.queue).failed(Q, limit=0)) == []

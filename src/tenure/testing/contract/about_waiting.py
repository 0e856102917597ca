"""A claim that waits returns as soon as there is something, and a push wakes it."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure.queue import Ack, Lease, Queue, Release
from tenure.testing.contract.steps import (
    Q,
    claim,
    claim_one,
    done,
    eventually,
    failed_jobs,
    failed_once,
    ids,
    job,
    push,
    pushed_and_claimed,
    suspected,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

WAIT = 20.0
"""Longer than any wake-up may take, lost ones included."""
SOON = 3.0
"""A second for a lost wake-up, and a slow machine."""


async def settled_in(queue: Queue) -> None:
    """Return when a claim that was just begun has had time to find nothing and wait.

    A call after it on another lane answers in the store's own order, and a few turns of the loop let it lie down. A
    claim that is not waiting yet finds the job at once, so being wrong here makes no behaviour fail.
    """
    for _ in range(10):
        await queue.counts(Q)
        await asyncio.sleep(0.005)


@asynccontextmanager
async def waiting(
    queue: Queue, *queues: str, limit: int = 1, wait: float = WAIT
) -> AsyncIterator["asyncio.Task[list[Lease]]"]:
    """Let a claim wait beside the block; it has ended when the block has."""
    task = asyncio.create_task(claim(queue, limit, queues=queues or (Q,), wait=wait))
    try:
        await settled_in(queue)
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_claim_that_does_not_wait_returns_at_once(store: StoreUnderTest) -> None:
    await claim(store.queue)
    before = time.monotonic()
    for _ in range(10):
        assert await claim(store.queue) == []
    assert time.monotonic() - before < 2


async def test_a_claim_waits_as_long_as_it_was_told_and_no_longer(store: StoreUnderTest) -> None:
    before = time.monotonic()
    assert await claim(store.queue, wait=0.4) == []
    assert 0.39 <= time.monotonic() - before < 2


async def test_a_claim_does_not_wait_when_there_is_something(store: StoreUnderTest) -> None:
    await push(store.queue, job())
    before = time.monotonic()
    assert len(await claim(store.queue, 10, wait=WAIT)) == 1
    assert time.monotonic() - before < SOON


async def test_a_push_wakes_a_waiting_claim(store: StoreUnderTest) -> None:
    pusher = store.another()
    latencies = []
    for _ in range(5):
        async with waiting(store.queue) as claimed:
            assert not claimed.done()
            before = time.monotonic()
            await push(pusher, job())
            leases = await asyncio.wait_for(claimed, SOON)
            latencies.append(time.monotonic() - before)
            await done(store.queue, Ack(leases[0]))
    # One wake-up may be lost, at the cost of a second; a driver that only polls loses most of them.
    assert sorted(latencies)[2] < 0.5


async def test_a_push_to_any_of_its_queues_wakes_a_waiting_claim(store: StoreUnderTest) -> None:
    names = ["first", "second", "third"]
    for name in names:
        async with waiting(store.queue, *names) as claimed:
            await push(store.another(), job(name, queue=name))
            assert ids(await asyncio.wait_for(claimed, SOON)) == [name]


async def test_a_push_to_another_queue_does_not_end_a_waiting_claim(store: StoreUnderTest) -> None:
    async with waiting(store.queue) as claimed:
        await push(store.queue, job(queue="other"))
        await settled_in(store.queue)
        assert not claimed.done()
        await push(store.queue, job("x"))
        assert ids(await asyncio.wait_for(claimed, SOON)) == ["x"]


async def test_a_waiting_claim_gets_a_delayed_job_when_it_falls_due(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", delay=0.4))
    before = time.monotonic()
    assert ids(await claim(store.queue, wait=WAIT)) == ["x"]
    assert time.monotonic() - before < 0.4 + SOON


async def test_an_earlier_delayed_push_reaches_a_claim_that_waits_for_a_later_one(store: StoreUnderTest) -> None:
    await push(store.queue, job(delay=60))
    async with waiting(store.queue) as claimed:
        before = time.monotonic()
        await push(store.another(), job("x", delay=0.2))
        assert ids(await asyncio.wait_for(claimed, 0.2 + SOON)) == ["x"]
        assert time.monotonic() - before >= 0.2


async def test_a_waiting_claim_gets_a_lease_that_lapses(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.another(), lease=0.4)
    before = time.monotonic()
    got = await claim(store.queue, wait=WAIT)
    assert [(one.id, one.deliveries) for one in got] == [(lease.id, 2)]
    assert time.monotonic() - before < 0.4 + SOON
    assert time.monotonic() >= lease.deadline


async def test_a_waiting_claim_gets_a_released_job(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.another())
    async with waiting(store.queue) as claimed:
        await done(store.another(), Release(lease))
        assert ids(await asyncio.wait_for(claimed, SOON)) == [lease.id]


async def test_a_waiting_claim_gets_a_release_that_falls_due(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.another())
    async with waiting(store.queue) as claimed:
        await done(store.another(), Release(lease, delay=0.2))
        assert ids(await asyncio.wait_for(claimed, 0.2 + SOON)) == [lease.id]


async def test_a_waiting_claim_gets_a_retried_job(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue)
    async with waiting(store.queue) as claimed:
        await failed_jobs(store.another()).retry([record])
        assert ids(await asyncio.wait_for(claimed, SOON)) == [record.id]


@pytest.mark.parametrize("jobs_in_one_push", [1, 2, 4])
async def test_each_of_several_waiting_claims_gets_a_job(store: StoreUnderTest, jobs_in_one_push: int) -> None:
    other = store.another()
    async with (
        waiting(store.queue) as first,
        waiting(other) as second,
        waiting(store.queue) as third,
        waiting(other) as fourth,
    ):
        for _ in range(0, 4, jobs_in_one_push):
            await push(store.another(), *(job() for _ in range(jobs_in_one_push)))
        got = await asyncio.wait_for(asyncio.gather(first, second, third, fourth), 2 * SOON)
    assert len({lease.id for leases in got for lease in leases}) == 4
    assert await where(store.queue) == {"leased": 4}


async def test_one_job_ends_one_of_many_waiting_claims(store: StoreUnderTest) -> None:
    drivers = [store.queue, store.another()]
    tasks = [asyncio.create_task(claim(drivers[n % 2], wait=1.5)) for n in range(8)]
    await settled_in(store.queue)
    await push(store.another(), job("x"))
    got = await asyncio.gather(*tasks)
    assert [ids(leases) for leases in got if leases] == [["x"]]


async def test_a_claim_that_leaves_ready_jobs_wakes_the_next_waiter(store: StoreUnderTest) -> None:
    other = store.another()
    async with (
        waiting(store.queue, limit=2) as first,
        waiting(other, limit=2) as second,
        waiting(store.queue, limit=2) as third,
    ):
        await push(store.another(), *(job() for _ in range(5)))
        got = await asyncio.wait_for(asyncio.gather(first, second, third), SOON)
    assert sorted(len(leases) for leases in got) == [1, 2, 2]
    assert await where(store.queue) == {"leased": 5}


async def test_a_suspect_that_must_be_left_does_not_end_a_waiting_claim(store: StoreUnderTest) -> None:
    await suspected(store.queue, "suspect")
    before = time.monotonic()
    assert await claim(store.queue, wait=0.4, suspects=False) == []
    assert time.monotonic() - before >= 0.39


async def test_a_claim_waits_while_another_holds_everything(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    before = time.monotonic()
    assert await claim(store.another(), wait=0.3) == []
    assert time.monotonic() - before >= 0.29
    await done(store.queue, Ack(lease))


async def test_other_calls_do_not_wait_behind_a_waiting_claim(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    async with waiting(store.queue, "silent") as claimed:
        before = time.monotonic()
        await push(store.queue, job("x"))
        await store.queue.renew([lease])
        await done(store.queue, Ack(lease))
        await store.queue.cancel(Q, ["y"])
        assert (await claim_one(store.queue)).id == "x"
        assert time.monotonic() - before < SOON
        assert not claimed.done()


async def test_a_wake_up_is_not_lost_between_a_look_and_a_sleep(store: StoreUnderTest) -> None:
    pusher = store.another()

    async def pushes() -> None:
        for number in range(40):
            await push(pusher, job(f"j{number}"))

            async def taken() -> bool:
                return await where(pusher) == {}

            await eventually(taken, what="the job is taken")

    pushing = asyncio.create_task(pushes())
    begin = time.monotonic()
    for _ in range(40):
        await done(store.queue, Ack(await claim_one(store.queue, wait=WAIT)))
    await pushing
    assert time.monotonic() - begin < 10

"""A claim leases jobs, each to one holder, and counts each delivery (P2, P4, P9)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import time

from tenure.queue import Ack, Release
from tenure.testing.contract.steps import (
    LONG,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    ids,
    job,
    jobs,
    numbered,
    push,
    pushed_and_claimed,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_a_claim_of_an_empty_queue_brings_nothing(store: StoreUnderTest) -> None:
    assert await claim(store.queue, 10, queues=[Q, "never-seen"]) == []
    await assert_empty(store.queue)


async def test_a_lease_tells_what_it_was_given_for(store: StoreUnderTest) -> None:
    before = time.monotonic()
    lease = await pushed_and_claimed(store.queue, job("x", envelope=b"body"), lease=7.5)
    after = time.monotonic()
    assert (lease.queue, lease.id, lease.envelope, lease.length) == (Q, "x", b"body", 7.5)
    assert (lease.deliveries, lease.free, lease.crashes, lease.attempt) == (1, 0, 0, 1)
    assert (lease.doomed, lease.suspect) == (None, False)
    assert lease.incarnation >= 1
    assert lease.fence >= 1
    assert len(lease.token) >= 16
    assert before + 7.5 <= lease.deadline <= after + 7.5


async def test_a_lease_tells_how_long_its_job_was_ready_or_due(store: StoreUnderTest) -> None:
    await push(store.queue, job("early"), job("late", delay=0.4))
    await asyncio.sleep(0.2)
    early = await claim_one(store.queue)
    assert early.waited is None or 0.15 < early.waited < 10
    late = await claim_one(store.queue, wait=10)
    # From its due time and not from its push: a delay is no wait.
    assert late.waited is None or 0 <= late.waited < 0.35
    await store.queue.settle([Release(early)])
    again = await claim_one(store.queue)
    assert again.waited is None or (early.waited is not None and again.waited < 0.15)


async def test_a_lease_is_trusted_from_before_the_claim_that_brought_it_was_sent(store: StoreUnderTest) -> None:
    # The claim waits first: a deadline counted from its return would outlive the store's own.
    await push(store.queue, job(delay=0.2))
    lease = await claim_one(store.another(), wait=10, lease=5)
    assert lease.deadline <= time.monotonic() + 5
    await push(store.queue, job())
    before = time.monotonic()
    second = await claim_one(store.queue, lease=5)
    assert second.deadline - 5 <= time.monotonic()
    assert second.deadline - 5 >= before


async def test_a_claim_brings_no_more_than_its_limit(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(20))
    assert len(await claim(store.queue, 7)) == 7
    assert await where(store.queue) == {"ready": 13, "leased": 7}
    assert len(await claim(store.queue, 50)) == 13


async def test_a_claim_of_many_brings_many_in_order(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(500))
    leases = await claim(store.queue, 500)
    assert ids(leases) == [one.id for one in numbered(500)]
    assert len({(lease.id, lease.token) for lease in leases}) == 500


async def test_a_leased_job_is_not_handed_out_again(store: StoreUnderTest) -> None:
    await pushed_and_claimed(store.queue)
    assert await claim(store.queue, 10) == []
    assert await claim(store.another(), 10) == []
    assert await where(store.queue) == {"leased": 1}


async def test_concurrent_claims_share_the_jobs_without_overlap(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(100))
    drivers = [store.queue, store.another(), store.another()]
    got = await asyncio.gather(*(claim(drivers[n % 3], 7) for n in range(20)))
    claimed = [one for leases in got for one in ids(leases)]
    assert sorted(claimed) == [one.id for one in numbered(100)]
    assert await where(store.queue) == {"leased": 100}


async def test_every_claim_is_a_delivery_with_a_token_of_its_own_and_a_higher_fence(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"))
    leases = []
    for _ in range(5):
        leases.append(await claim_one(store.queue))
        await done(store.queue, Release(leases[-1]))
    assert [(lease.deliveries, lease.attempt) for lease in leases] == [(n, n) for n in range(1, 6)]
    assert len({lease.token for lease in leases}) == 5
    fences = [lease.fence for lease in leases]
    assert fences == sorted(set(fences))
    assert {lease.incarnation for lease in leases} == {leases[0].incarnation}


async def test_fences_go_on_rising_when_an_id_is_used_again_by_another_driver(store: StoreUnderTest) -> None:
    fences = []
    for driver in (store.queue, store.another(), store.queue):
        lease = await pushed_and_claimed(driver, job("x"))
        fences.append(lease.fence)
        await done(driver, Ack(lease))
    assert fences == sorted(set(fences))


async def test_a_free_return_is_a_delivery_and_not_an_attempt(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    await done(store.queue, Release(lease, free=True))
    second = await claim_one(store.queue)
    assert (second.deliveries, second.free, second.attempt, second.crashes) == (2, 1, 1, 0)
    await done(store.queue, Release(second))
    third = await claim_one(store.queue)
    assert (third.deliveries, third.free, third.attempt) == (3, 1, 2)


async def test_the_first_queue_is_served_first(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("l1", "l2", queue="low"), *jobs("h1", "h2", queue="high"))
    leases = await claim(store.queue, 3, queues=["high", "low"])
    assert [(lease.queue, lease.id) for lease in leases] == [("high", "h1"), ("high", "h2"), ("low", "l1")]
    assert ids(await claim(store.queue, 3, queues=["high", "low"])) == ["l2"]


async def test_only_the_queues_that_were_asked_for_are_served(store: StoreUnderTest) -> None:
    await push(store.queue, job(queue="other"))
    assert await claim(store.queue, 10, queues=[Q, "third"]) == []
    assert await where(store.queue, "other") == {"ready": 1}


async def test_a_queue_named_twice_gives_each_job_once(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a", "b"))
    assert ids(await claim(store.queue, 10, queues=[Q, Q])) == ["a", "b"]


async def test_cancelled_jobs_do_not_hide_those_behind_them(store: StoreUnderTest) -> None:
    pushes = numbered(400)
    await push(store.queue, *pushes)
    await store.queue.cancel(Q, [one.id for one in pushes[:350]])
    got: list[str] = []
    for _ in range(10):
        got += ids(await claim(store.queue, 50, lease=LONG))
    assert got == [one.id for one in pushes[350:]]

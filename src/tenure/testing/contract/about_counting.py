"""Counts are exact, and tell how long the oldest job has waited."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import random

from tenure.queue import Ack, Counts, Drop, Fail, Lease, Release, SetAside, Settlement
from tenure.testing.contract.steps import (
    EMPTY,
    SHORT,
    WHY,
    Q,
    claim,
    claim_one,
    done,
    job,
    jobs,
    lapsed,
    pass_time,
    push,
    suspected,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_a_queue_that_never_was_counts_nothing(store: StoreUnderTest) -> None:
    assert await store.queue.counts("never-seen") == EMPTY


async def test_every_state_is_counted(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("lapses", "fails", "aside"))
    leases = await claim(store.queue, 3, lease=SHORT)
    await done(store.queue, Fail(leases[1], WHY), SetAside(leases[2], "not an envelope"))
    await lapsed(store.queue)
    await push(store.queue, *jobs("d1", "d2", "d3", delay=60))
    await push(store.queue, *jobs("r1", "r2", "r3", "r4"))
    counts = await store.another().counts(Q)
    assert counts.oldest_age is not None
    assert counts == Counts(
        ready=4, delayed=3, leased=1, lapsed=1, failed=1, unreadable=1, oldest_age=counts.oldest_age
    )
    assert counts.size == 8


# K5
async def test_what_a_worker_holds_is_not_work_that_waits(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a", "b", "c"))
    await claim(store.queue, 2)
    counts = await store.queue.counts(Q)
    assert (counts.leased, counts.lapsed, counts.size) == (2, 0, 1)


async def test_suspects_are_counted_as_ready(store: StoreUnderTest) -> None:
    await suspected(store.queue, "x")
    assert await where(store.queue) == {"ready": 1}


async def test_the_oldest_ready_job_tells_its_age(store: StoreUnderTest) -> None:
    await push(store.queue, job("old"))
    await pass_time(store.queue, 0.3)
    await push(store.queue, job("young"), job("delayed", delay=60))
    age = (await store.queue.counts(Q)).oldest_age
    assert age is not None
    assert 0.3 <= age < 5
    await done(store.queue, Ack(await claim_one(store.queue)))
    younger = (await store.queue.counts(Q)).oldest_age
    assert younger is not None
    assert younger < age
    await claim_one(store.queue)
    assert (await store.queue.counts(Q)).oldest_age is None


async def test_counting_changes_nothing(store: StoreUnderTest) -> None:
    await push(store.queue, job("due", delay=0.03), job("leased"))
    await claim_one(store.queue, lease=0.03)
    await pass_time(store.queue, 0.06)
    first = await where(store.queue)
    assert await where(store.another()) == first
    assert sorted((lease.id, lease.deliveries) for lease in await claim(store.queue, 10)) == [("due", 1), ("leased", 2)]


async def test_counts_add_up_over_a_random_walk(store: StoreUnderTest) -> None:
    dice = random.Random(20)  # noqa: S311 - a walk that can be walked again
    held: list[Lease] = []
    ready = delayed = failed = unreadable = 0
    for _ in range(120):
        step = dice.random()
        if step < 0.45:
            await push(store.queue, *(job() for _ in range(3)), job(delay=60))
            ready, delayed = ready + 3, delayed + 1
        elif step < 0.65:
            got = await claim(store.queue, dice.randint(1, 5))
            assert len(got) <= ready
            held, ready = held + got, ready - len(got)
        elif held:
            lease = held.pop(dice.randrange(len(held)))
            kinds: list[tuple[Settlement, tuple[int, int, int, int]]] = [
                (Ack(lease), (0, 0, 0, 0)),
                (Release(lease), (1, 0, 0, 0)),
                (Release(lease, delay=60, free=True), (0, 1, 0, 0)),
                (Fail(lease, WHY), (0, 0, 1, 0)),
                (Drop(lease), (0, 0, 0, 0)),
                (SetAside(lease, "no"), (0, 0, 0, 1)),
            ]
            settlement, change = dice.choice(kinds)
            await done(store.queue, settlement)
            ready, delayed, failed = ready + change[0], delayed + change[1], failed + change[2]
            unreadable += change[3]
        counts = await store.queue.counts(Q)
        assert (counts.ready, counts.delayed, counts.leased, counts.failed, counts.unreadable) == (
            *(ready, delayed, len(held), failed, unreadable),
        )

"""The promises hold between processes that race (P1 to P5, P7)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import collections
import time

import pytest

from tenure.queue import Fail
from tenure.testing.contract.racing import contenders
from tenure.testing.contract.steps import (
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    failed_jobs,
    ids,
    job,
    lapsed,
    numbered,
    push,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_no_two_claimers_get_the_same_job(store: StoreUnderTest) -> None:
    pushes = numbered(3000)
    await push(store.queue, *pushes)
    async with contenders(store, "work", [{"seed": seed} for seed in range(3)]) as racers:
        reports = await asyncio.gather(*(racer.hear() for racer in racers))
    deliveries = [tuple(one) for report in reports for one in report["deliveries"]]
    assert sorted(one[0] for one in deliveries) == [one.id for one in pushes]
    assert {(number, answer) for _, _, number, answer in deliveries} == {(1, "done")}
    assert sum(bool(report["deliveries"]) for report in reports) >= 2, "nobody raced"
    await assert_empty(store.queue)


# K6
async def test_a_settlement_and_a_reclaim_of_one_lease_have_one_winner(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(200))
    async with contenders(store, "hesitate", [{"seed": seed, "lease": 0.03} for seed in range(3)]) as racers:
        reports = await asyncio.gather(*(racer.hear() for racer in racers))
    answers = [(one[0], one[1], one[2]) for report in reports for one in report["answers"]]
    accepted = [name for name, _, answer in answers if answer == "done"]
    assert sorted(accepted) == [one.id for one in numbered(200)]
    deliveries = collections.Counter((name, number) for name, number, _ in answers)
    assert max(deliveries.values()) == 1, "one delivery was given to two holders"
    assert {answer for _, _, answer in answers} == {"done", "stale"}, "nobody raced"
    await assert_empty(store.queue)


async def test_an_id_pushed_by_several_processes_is_one_job(store: StoreUnderTest) -> None:
    names = [one.id for one in numbered(400)]
    async with contenders(store, "repeat", [{"seed": seed, "ids": names} for seed in range(3)]) as racers:
        reports = await asyncio.gather(*(racer.hear() for racer in racers))
    for name in names:
        assert sorted(report["outcomes"][name] for report in reports) == ["held", "held", "stored"]
    assert await where(store.queue) == {"ready": 400}
    assert sorted(ids(await drained(store.queue, 400))) == names


async def test_the_job_of_a_killed_holder_is_reclaimed_when_its_lease_has_lapsed(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"), job("y"))
    async with contenders(store, "hold", [{"limit": 1, "lease": 1.0}]) as (holder,):
        before = time.monotonic()
        assert [one[0] for one in (await holder.hear())["held"]] == ["x"]
        await holder.kill()
    assert ids(await claim(store.queue, 10)) == ["y"]
    lease = await claim_one(store.queue, wait=20)
    assert (lease.id, lease.deliveries, lease.crashes, lease.attempt) == ("x", 2, 1, 2)
    assert time.monotonic() - before < 1.0 + 20
    assert await where(store.queue) == {"leased": 2}


@pytest.mark.parametrize("order", ["renew", "ack", "release"])
async def test_a_holder_that_wakes_after_a_reclaim_changes_nothing(store: StoreUnderTest, order: str) -> None:
    await push(store.queue, job("x"))
    async with contenders(store, "hold", [{"limit": 1, "lease": 0.1}]) as (holder,):
        held = (await holder.hear())["held"]
        assert [one[0] for one in held] == ["x"]
        await lapsed(store.queue)
        lease = await claim_one(store.queue)
        await holder.say({"do": order})
        assert await holder.hear() == {"answers": ["lost" if order == "renew" else "stale"]}
    assert lease.fence > held[0][1]
    assert await where(store.queue) == {"leased": 1}
    assert [one.value for one in await store.queue.renew([lease])] == ["held"]


async def test_what_a_killed_pusher_was_told_is_stored(store: StoreUnderTest) -> None:
    told: list[str] = []
    async with contenders(store, "push", [{"name": name} for name in ("a", "b")]) as racers:
        for _ in range(20):
            for racer in racers:
                told += (await racer.hear())["stored"]
        for racer in racers:
            await racer.kill()
    counts = await store.queue.counts(Q)
    assert counts.ready >= len(told) == 200
    stored = ids(await drained(store.queue, counts.ready, batch=200))
    assert len(set(stored)) == len(stored)
    assert set(told) <= set(stored)


# S15
async def test_a_failed_job_is_retried_by_one_of_several_operators(store: StoreUnderTest) -> None:
    failed_jobs(store.queue)
    await push(store.queue, *numbered(150))
    await done(store.queue, *(Fail(lease, WHY) for lease in await claim(store.queue, 150)))
    async with contenders(store, "retry", [{"page": page} for page in (7, 20, 50)]) as racers:
        reports = await asyncio.gather(*(racer.hear() for racer in racers))
    won = [name for report in reports for name in report["won"]]
    assert sorted(won) == [one.id for one in numbered(150)]
    assert await where(store.queue) == {"ready": 150}
    assert len(await drained(store.queue, 150)) == 150


async def test_a_push_wakes_claims_that_wait_in_other_processes(store: StoreUnderTest) -> None:
    async with contenders(store, "wait", [{}, {}]) as racers:
        delays = []
        hearing = [asyncio.create_task(racer.hear()) for racer in racers]
        for number in range(12):
            before = time.monotonic()
            await push(store.queue, job(f"j{number}"))
            finished, _ = await asyncio.wait(hearing, timeout=10, return_when=asyncio.FIRST_COMPLETED)
            assert len(finished) == 1
            task = finished.pop()
            assert task.result()["got"] == f"j{number}"
            delays.append(task.result()["at"] - before)
            place = hearing.index(task)
            hearing[place] = asyncio.create_task(racers[place].hear())
        for task in hearing:
            task.cancel()
        await asyncio.gather(*hearing, return_exceptions=True)
    # A second is what one lost wake-up may cost; a driver that only polls loses most of them.
    assert sorted(delays)[len(delays) // 2] < 0.5
    assert max(delays) < 3

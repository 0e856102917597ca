"""A paused queue hands out nothing; everything else goes on, and a resume lets it run at once."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import time

from tenure.queue import Ack, Cancelled, Fail, Release, Renewal
from tenure.testing.contract.about_waiting import SOON, settled_in, waiting
from tenure.testing.contract.operators import control
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    Q,
    claim,
    claim_one,
    done,
    drained,
    eventually,
    failed_jobs,
    failed_once,
    ids,
    inspector,
    job,
    jobs,
    lapsed,
    numbered,
    push,
    pushed_and_claimed,
    renew,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a", "b"))
    assert await control(store.queue).pause(Q) is True
    for _ in range(3):
        assert await claim(store.queue, 10) == []
    assert await where(store.queue) == {"ready": 2}
    assert await control(store.queue).resume(Q) is True
    assert ids(await drained(store.queue, 2)) == ["a", "b"]


async def test_pausing_and_resuming_tell_whether_they_changed_anything(store: StoreUnderTest) -> None:
    switch = control(store.queue)
    assert await switch.resume(Q) is False
    assert await switch.pause(Q) is True
    assert await switch.pause(Q) is False
    assert await control(store.another()).pause(Q) is False
    assert await control(store.another()).resume(Q) is True
    assert await switch.resume(Q) is False


async def test_another_instance_sees_the_pause_and_hands_out_nothing(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"))
    assert await claim(store.another(), queues=["warm-up"]) == []
    await control(store.queue).pause(Q)
    assert list(await control(store.another()).paused([Q])) == [True]
    assert await claim(store.another(), 10) == []
    await control(store.another()).resume(Q)
    assert list(await control(store.queue).paused([Q])) == [False]
    assert (await claim_one(store.queue)).id == "x"


async def test_which_queues_are_paused_is_told_in_order(store: StoreUnderTest) -> None:
    switch = control(store.queue)
    await push(store.queue, job(queue="a"), job(queue="b"))
    await switch.pause("b")
    await switch.pause("never-pushed")
    assert list(await switch.paused(["b", "a", "never-pushed", "b", "unheard-of"])) == [True, False, True, True, False]
    assert list(await switch.paused([])) == []


async def test_pausing_one_queue_leaves_the_others_alone(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", queue="one"), job("y", queue="two"), job("z", queue="three"))
    await control(store.queue).pause("one")
    assert ids(await claim(store.queue, 10, queues=["one", "two", "three"])) == ["y", "z"]
    await control(store.queue).pause("two")
    await control(store.queue).resume("two")
    assert list(await control(store.queue).paused(["one", "two"])) == [True, False]
    elsewhere = store.elsewhere()
    assert list(await control(elsewhere).paused(["one"])) == [False]
    await push(elsewhere, job("there", queue="one"))
    assert ids(await claim(elsewhere, queues=["one"])) == ["there"]


async def test_a_queue_that_nothing_was_pushed_to_can_be_paused(store: StoreUnderTest) -> None:
    assert await control(store.queue).pause("new") is True
    assert list(await inspector(store.queue).queues()) == []
    await push(store.queue, job("x", queue="new"))
    assert await claim(store.another(), queues=["new"]) == []
    assert await where(store.queue, "new") == {"ready": 1}
    await control(store.queue).resume("new")
    assert ids(await claim(store.another(), queues=["new"])) == ["x"]


async def test_pushes_go_on_while_a_queue_is_paused(store: StoreUnderTest) -> None:
    await control(store.queue).pause(Q)
    await push(store.queue, *numbered(5), job("later", delay=60))
    assert [one.outcome for one in await store.queue.push([job("j00001")])] == ["held"]
    assert await where(store.queue) == {"ready": 5, "delayed": 1}
    assert await claim(store.queue, 10) == []


async def test_what_runs_is_renewed_and_settled_while_its_queue_is_paused(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("ack", "release", "fail"))
    leases = {lease.id: lease for lease in await claim(store.queue, 3)}
    await control(store.another()).pause(Q)
    assert [await renew(store.queue, lease) for lease in leases.values()] == [Renewal.HELD] * 3
    keeper = store.queue.keeper()
    assert list(await asyncio.to_thread(keeper.renew, [leases["ack"]])) == [Renewal.HELD]
    await asyncio.to_thread(keeper.close)
    await done(store.queue, Ack(leases["ack"]), Release(leases["release"]), Fail(leases["fail"], WHY))
    assert await where(store.queue) == {"ready": 1, "failed": 1}
    assert await claim(store.queue, 10) == []


async def test_cancels_and_clears_go_on_while_a_queue_is_paused(store: StoreUnderTest) -> None:
    held = await pushed_and_claimed(store.queue, job("runs"))
    await push(store.queue, *jobs("a", "b", "c"))
    await control(store.queue).pause(Q)
    assert list(await store.queue.cancel(Q, ["a", "runs"])) == [Cancelled.REMOVED, Cancelled.REQUESTED]
    assert await renew(store.queue, held) is Renewal.CANCEL_REQUESTED
    assert await store.queue.clear(Q) == 2
    assert await where(store.queue) == {"leased": 1}
    assert list(await control(store.queue).paused([Q])) == [True], "a cleared queue stays paused"


async def test_failed_jobs_are_retried_while_their_queue_is_paused(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue, job("x"))
    await control(store.queue).pause(Q)
    assert list(await failed_jobs(store.queue).retry([record])) == [True]
    assert await claim(store.queue) == []
    await control(store.queue).resume(Q)
    assert (await claim_one(store.queue)).id == "x"


async def test_a_paused_queue_still_promotes_what_falls_due(store: StoreUnderTest) -> None:
    await control(store.queue).pause(Q)
    await push(store.queue, *(job(f"j{n}", delay=0.05) for n in range(3)))

    async def promoted() -> bool:
        assert await claim(store.queue, 10) == []
        return await where(store.queue) == {"ready": 3}

    await eventually(promoted, what="the due jobs are ready")


async def test_a_paused_queue_still_recovers_lapsed_leases(store: StoreUnderTest) -> None:
    await pushed_and_claimed(store.queue, job("x"), lease=SHORT)
    await control(store.queue).pause(Q)
    await lapsed(store.queue)
    assert await claim(store.queue) == []
    assert await where(store.queue) == {"ready": 1}
    await control(store.queue).resume(Q)
    lease = await claim_one(store.queue)
    assert (lease.deliveries, lease.crashes) == (2, 1)


async def test_a_waiting_claim_promotes_in_a_paused_queue_and_brings_nothing(store: StoreUnderTest) -> None:
    await control(store.queue).pause(Q)
    await push(store.queue, job("x", delay=0.1))
    async with waiting(store.queue) as claimed:

        async def promoted() -> bool:
            return await where(store.queue) == {"ready": 1}

        await eventually(promoted, what="the waiting claim made the due job ready")
        await settled_in(store.queue)
        assert not claimed.done()
        await control(store.another()).resume(Q)
        assert ids(await asyncio.wait_for(claimed, SOON)) == ["x"]


async def test_a_waiting_claim_of_a_paused_queue_brings_nothing(store: StoreUnderTest) -> None:
    await control(store.queue).pause(Q)
    await push(store.queue, job())
    before = time.monotonic()
    assert await claim(store.queue, 10, wait=0.4) == []
    assert 0.39 <= time.monotonic() - before < SOON
    async with waiting(store.queue) as claimed:
        await push(store.another(), job())
        await settled_in(store.queue)
        assert not claimed.done(), "a push to a paused queue ends no claim"


async def test_a_resume_wakes_a_waiting_claim_at_once(store: StoreUnderTest) -> None:
    latencies = []
    for number in range(5):
        await control(store.another()).pause(Q)
        await push(store.queue, job(f"j{number}"))
        async with waiting(store.queue) as claimed:
            assert not claimed.done()
            before = time.monotonic()
            await control(store.another()).resume(Q)
            leases = await asyncio.wait_for(claimed, SOON)
            latencies.append(time.monotonic() - before)
            assert ids(leases) == [f"j{number}"]
            await done(store.queue, Ack(leases[0]))
    # One wake-up may be lost, at the cost of a second; a driver that only polls loses most of them.
    assert sorted(latencies)[2] < 0.5


async def test_a_claim_that_waits_for_a_paused_and_an_open_queue_gets_the_open_one_s(store: StoreUnderTest) -> None:
    await control(store.queue).pause("shut")
    await push(store.queue, job("no", queue="shut"))
    async with waiting(store.queue, "shut", "open") as claimed:
        await push(store.another(), job("yes", queue="open"))
        assert ids(await asyncio.wait_for(claimed, SOON)) == ["yes"]
    assert await where(store.queue, "shut") == {"ready": 1}


async def test_a_pause_of_a_queue_that_is_being_claimed_stops_it_and_loses_nothing(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(200))
    other, got = store.another(), []

    async def worker() -> None:
        while leases := await claim(other, 3):
            got.extend(ids(leases))
            await done(other, *map(Ack, leases))

    working = asyncio.create_task(worker())
    await control(store.queue).pause(Q)
    taken = {lease.id for lease in await claim(store.queue, 200)}
    assert taken == set(), "nothing is handed out once the pause has returned"
    await working
    left = await store.queue.counts(Q)
    assert left.ready == 200 - len(got)
    await control(store.queue).resume(Q)
    got += ids(await drained(store.queue, left.ready))
    assert sorted(got) == [f"j{number:05}" for number in range(200)]

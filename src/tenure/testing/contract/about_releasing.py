"""One call releases a hundred jobs at most, others the rest, and whoever races for it counts each once (P3, P6)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio

from tenure.compositions import START, Gate, Kind, Node, When
from tenure.queue import Ack, Fail, Settled
from tenure.testing.contract.composing import END, batch, begun, chain, member, over, ran, tally
from tenure.testing.contract.operators import control
from tenure.testing.contract.racing import contenders
from tenure.testing.contract.steps import WHY, Q, claim, claim_one, done, ids, job, push
from tenure.testing.contract.store import StoreUnderTest


async def test_fifty_settlements_in_one_call_are_fifty_ends(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(40), kind=Kind.BATCH)
    await begun(store.queue, batch(9, of="d"), of="d", kind=Kind.BATCH)
    await push(store.queue, job("plain"))
    await begun(store.queue, chain(3, of="e"), of="e", kind=Kind.CHAIN)
    leases = await claim(store.queue, 51)
    assert len(leases) == 51
    await done(store.queue, *(Fail(one, WHY) if one.id == "d.4" else Ack(one) for one in leases))
    assert await tally(store.queue) == ("completed", 40, 40, 0, 0)
    assert await tally(store.queue, "d") == ("completed_with_failures", 9, 8, 1, 0)
    assert await tally(store.queue, "e") == ("active", 3, 1, 0, 0)
    assert sorted(await ran(store.queue)) == ["c.c11", "c.c13", "d.c12", "d.c13", "e.1", "e.2"]
    await over(store.queue, 3)


# P6
async def test_one_call_releases_a_hundred_jobs_and_later_claims_the_rest(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(330, callbacks=[When.ANY]), kind=Kind.BATCH)
    counts = await store.queue.counts(Q)
    assert 0 < counts.ready <= 100
    claimed = await store.queue.claim([Q], limit=500, lease=60, wait=0)
    assert 0 < len(claimed.leases) <= 200
    if len(claimed.leases) < 230:
        # There is more to be had at once: who waits must not wait for that.
        assert claimed.next_due == 0
    leases = [*claimed.leases]
    while len(leases) < 330:
        got = await claim(store.queue, 500, wait=5)
        assert 0 < len(got) <= 100
        leases += got
    assert sorted(ids(leases)) == sorted(f"c.{number}" for number in range(330))
    await done(store.queue, *map(Ack, leases))
    assert await ran(store.queue) == ["c.c13"]


async def test_what_a_settlement_could_not_release_is_released_by_claims(store: StoreUnderTest) -> None:
    fans = [Gate(number=-100 - n, next=tuple(range(1 + 100 * n, 101 + 100 * n))) for n in range(3)]
    nodes: list[Node] = [
        Gate(number=START, next=(0,)),
        member(0, -2),
        Gate(number=-2, next=tuple(fan.number for fan in fans)),
        *fans,
        *(member(number) for number in range(1, 301)),
    ]
    await begun(store.queue, nodes)
    await done(store.queue, Ack(await claim_one(store.queue)))
    assert 0 < (await store.queue.counts(Q)).ready <= 100
    assert sorted(await ran(store.queue)) == sorted(f"c.{number}" for number in range(1, 301))
    assert await tally(store.queue) == ("completed", 301, 301, 0, 0)


async def test_a_claim_that_does_not_wait_ends_with_nothing_only_when_nothing_is_left_to_be_done(
    store: StoreUnderTest,
) -> None:
    # When the first fails, the chain is walked to its end before the callback's turn comes: one call ends a hundred.
    nodes: list[Node] = [*chain(1000), member(END, when=When.ANY)]
    nodes[-2] = member(999, END)
    await begun(store.queue, nodes, kind=Kind.CHAIN)
    await done(store.queue, Fail(await claim_one(store.queue), WHY))
    assert ids(await claim(store.queue)) == ["c.c2"]
    assert await tally(store.queue) == ("failed", 1000, 0, 1, 999)


async def test_what_many_compositions_have_left_is_done_before_a_claim_ends_with_nothing(store: StoreUnderTest) -> None:
    for number in range(59):
        await begun(store.queue, chain(4, of=f"c{number}"), of=f"c{number}", kind=Kind.CHAIN)
    nodes: list[Node] = [*chain(4, of="d"), member(END, of="d", when=When.ANY)]
    nodes[-2] = member(3, END, of="d")
    await begun(store.queue, nodes, of="d", kind=Kind.CHAIN)
    # Of the 180 that end cancelled, one call ends a hundred; only behind the last of them something can run.
    await done(store.queue, *(Fail(one, WHY) for one in await claim(store.queue, 60)))
    assert ids(await claim(store.queue)) == ["d.c2"]


async def test_many_chains_advance_in_one_call(store: StoreUnderTest) -> None:
    for number in range(130):
        await begun(store.queue, chain(2, of=f"c{number}"), of=f"c{number}", kind=Kind.CHAIN)
    leases = await claim(store.queue, 130)
    await done(store.queue, *map(Ack, leases))
    assert sorted(await ran(store.queue)) == sorted(f"c{number}.1" for number in range(130))
    await over(store.queue, 130)


async def test_a_claim_that_waits_is_woken_by_a_start_and_by_each_release(store: StoreUnderTest) -> None:
    other = store.another()
    waiting = asyncio.create_task(claim(store.queue, wait=30))
    await other.counts(Q)
    await begun(other, [Gate(number=START, next=(0,)), member(0, -2), Gate(number=-2, next=(1,)), member(1)])
    for number in range(2):
        (lease,) = await asyncio.wait_for(waiting, 5)
        assert lease.id == f"c.{number}"
        waiting = asyncio.create_task(claim(store.queue, wait=30))
        await other.counts(Q)
        await done(other, Ack(lease))
    await push(other, job("last"))
    assert ids(await asyncio.wait_for(waiting, 5)) == ["last"]


async def test_a_paused_queue_hands_out_no_job_that_was_released(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(2))
    lease = await claim_one(store.queue)
    await control(store.queue).pause(Q)
    await done(store.queue, Ack(lease))
    assert await claim(store.queue) == []
    await control(store.queue).resume(Q)
    assert await ran(store.queue) == ["c.1"]


async def test_the_last_two_of_a_batch_may_end_at_the_same_time(store: StoreUnderTest) -> None:
    other = store.another()
    for number in range(15):
        of = f"c{number}"
        await begun(store.queue, batch(2, of=of, callbacks=[When.SUCCESS, When.ANY]), of=of, kind=Kind.BATCH)
        first, second = await claim(store.queue, 2)
        answers = await asyncio.gather(store.queue.settle([Ack(first)]), other.settle([Ack(second)]))
        assert [list(one) for one in answers] == [[Settled.DONE]] * 2
        assert await tally(store.queue, of) == ("completed", 2, 2, 0, 0)
        assert await ran(store.queue) == [f"{of}.c11", f"{of}.c13"]


async def test_processes_that_race_through_batches_run_each_callback_once(store: StoreUnderTest) -> None:
    names = [f"c{number}" for number in range(60)]
    for of in names:
        await begun(store.queue, batch(3, of=of, callbacks=[When.ANY]), of=of, kind=Kind.BATCH)
    async with contenders(store, "work", [{"seed": seed} for seed in range(3)]) as racers:
        reports = await asyncio.gather(*(racer.hear() for racer in racers))
    deliveries = [one for report in reports for one in report["deliveries"]]
    expected = [f"{of}.{number}" for of in names for number in (0, 1, 2, "c13")]
    assert sorted(one[0] for one in deliveries) == sorted(expected)
    assert {answer for *_, answer in deliveries} == {"done"}
    for of in names:
        assert await tally(store.queue, of) == ("completed", 3, 3, 0, 0)
    await over(store.queue, 60)


async def test_settlements_and_reclaims_that_race_count_each_job_once(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(120, callbacks=[When.ANY]), kind=Kind.BATCH)
    async with contenders(store, "hesitate", [{"seed": seed, "lease": 0.05} for seed in range(3)]) as racers:
        reports = await asyncio.gather(*(racer.hear() for racer in racers))
    accepted = [one[0] for report in reports for one in report["answers"] if one[2] == "done"]
    expected = sorted([*(f"c.{number}" for number in range(120)), "c.c13"])
    # A contender may leave between the last member and the callback.
    assert sorted([*accepted, *await ran(store.queue)]) == expected
    assert await tally(store.queue) == ("completed", 120, 120, 0, 0)

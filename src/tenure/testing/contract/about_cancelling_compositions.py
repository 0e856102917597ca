"""A composition that is cancelled, or whose jobs are, ends as that: nothing begins any more that should not."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio

import pytest

from tenure.compositions import START, Gate, Kind, Node, When
from tenure.queue import Ack, Cancelled, Doom, Fail, Queue, Release, Renewal, SetAside, Settled
from tenure.testing.contract.composing import C, batch, begun, chain, composer, member, over, ran, status, tally
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    Q,
    claim,
    claim_one,
    done,
    eventually,
    failed_jobs,
    job,
    lapsed,
    push,
    renew,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def cancelled(queue: Queue, of: str = C, *, home: str = Q) -> bool:
    return await composer(queue).cancel_composition(home, of)


def needs_requests(store: StoreUnderTest) -> None:
    if not store.queue.capabilities.cancel_running:
        pytest.skip(f"the driver {store.queue.capabilities.driver!r} cannot cancel what runs")


async def swept(queue: Queue, wanted: tuple[str, int, int, int, int], of: str = C) -> None:
    """Return when a composition has come so far; claims do what is left to be done."""

    async def probe() -> bool:
        for lease in await claim(queue, 10):
            assert lease.id.startswith(f"{of}.c"), "a job of it was handed out"
            await done(queue, Release(lease, delay=60))
        return await tally(queue, of) == wanted

    await eventually(probe, what=str(wanted))


@pytest.mark.parametrize("delay", [0.0, 60.0], ids=["ready", "delayed"])
async def test_a_composition_of_which_nothing_runs_is_cancelled_at_once(store: StoreUnderTest, delay: float) -> None:
    await begun(store.queue, batch(3, delay=delay), kind=Kind.BATCH)
    await push(store.queue, job("plain"))
    assert await cancelled(store.queue)
    assert await tally(store.queue) == ("cancelled", 3, 0, 0, 3)
    assert (await status(store.queue)).finished_at is not None
    assert not await cancelled(store.queue)
    assert sorted(await ran(store.queue)) == ["c.c13", "plain"]
    await over(store.queue)


async def test_what_waits_for_others_is_cancelled_too(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(4), kind=Kind.CHAIN)
    await done(store.queue, Ack(await claim_one(store.queue)))
    assert await cancelled(store.another())
    assert await tally(store.queue) == ("cancelled", 4, 1, 0, 3)
    assert await claim(store.queue, 5) == []
    await over(store.queue)


async def test_a_composition_is_cancelling_while_something_of_it_runs(store: StoreUnderTest) -> None:
    needs_requests(store)
    await begun(store.queue, batch(3), kind=Kind.BATCH)
    first, second = await claim(store.queue, 2)
    assert await cancelled(store.queue)
    assert await tally(store.queue) == ("cancelling", 3, 0, 0, 1)
    assert await cancelled(store.queue)
    assert await renew(store.queue, first) is Renewal.CANCEL_REQUESTED
    assert await settle(store.queue, Release(first)) is Settled.CANCELLED
    assert await tally(store.queue) == ("cancelling", 3, 0, 0, 2)
    assert await cancelled(store.queue)
    assert await claim(store.queue, 5) == []
    assert await settle(store.another(), Release(second, delay=60)) is Settled.CANCELLED
    assert await tally(store.queue) == ("cancelled", 3, 0, 0, 3)
    assert await ran(store.queue) == ["c.c13"]
    assert not await cancelled(store.queue)
    await over(store.queue)


async def test_a_job_of_a_cancelled_composition_that_ends_well_or_not_is_counted_as_that(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(4), kind=Kind.BATCH)
    leases = await claim(store.queue, 3)
    assert await cancelled(store.queue)
    await done(store.queue, Ack(leases[0]), Fail(leases[1], WHY), SetAside(leases[2], "no"))
    assert await tally(store.queue) == ("cancelled", 4, 1, 2, 1)
    assert await ran(store.queue) == ["c.c13"]


async def test_only_callbacks_for_any_case_run_after_a_cancel(store: StoreUnderTest) -> None:
    nodes: list[Node] = [
        Gate(number=START, next=(0, 1)),
        member(0, -2),
        member(1, 2),
        member(2, -2, when=When.ANY),
        Gate(number=-2, needs=2, next=(-11, -12, -13)),
        member(-11),
        member(-12, -14, when=When.FAILURE),
        member(-13, -15, when=When.ANY),
        member(-14, when=When.ANY),
        member(-15),
    ]
    await begun(store.queue, nodes)
    lease = await claim_one(store.queue)
    assert await cancelled(store.queue)
    assert await tally(store.queue) == ("cancelling", 3, 0, 0, 2)
    assert sorted(await ran(store.queue, Ack(lease))) == ["c.c13", "c.c14"]
    assert await tally(store.queue) == ("cancelled", 3, 1, 0, 2)
    await over(store.queue)


async def test_what_is_told_of_an_end_after_a_cancel_does_not_begin(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(3), kind=Kind.CHAIN)
    lease = await claim_one(store.queue)
    assert await cancelled(store.queue)
    assert await tally(store.queue) == ("cancelling", 3, 0, 0, 2)
    assert await ran(store.queue, Ack(lease)) == []
    assert await tally(store.queue) == ("cancelled", 3, 1, 0, 2)
    await over(store.queue)


async def test_a_callback_that_waits_when_its_composition_is_cancelled_is_leased_to_be_ended(
    store: StoreUnderTest,
) -> None:
    nodes: list[Node] = [
        Gate(number=START, next=(0, 1)),
        member(0, -2),
        member(1),
        Gate(number=-2, next=(-11, -13)),
        member(-11),
        member(-13, when=When.ANY),
    ]
    await begun(store.queue, nodes)
    first, second = await claim(store.queue, 2)
    await done(store.queue, Ack(first))
    assert await cancelled(store.queue)
    leases = await claim(store.queue, 5)
    assert [(lease.id, lease.doomed) for lease in leases] == [("c.c11", Doom.CANCELLED), ("c.c13", None)]
    assert await settle(store.queue, Release(leases[0])) is Settled.CANCELLED
    await done(store.queue, Ack(leases[1]), Ack(second))
    assert await tally(store.queue) == ("cancelled", 2, 2, 0, 0)
    await over(store.queue)


async def test_a_composition_that_has_ended_cannot_be_cancelled(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(2), kind=Kind.BATCH)
    await done(store.queue, *map(Ack, await claim(store.queue, 2)))
    assert not await cancelled(store.queue)
    assert await tally(store.queue) == ("completed", 2, 2, 0, 0)
    assert await ran(store.queue) == ["c.c11", "c.c13"]
    assert not await cancelled(store.queue)
    await over(store.queue)
    assert not await cancelled(store.queue)


async def test_a_composition_of_another_home_or_namespace_is_not_cancelled(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(1))
    assert not await cancelled(store.queue, home="other")
    assert not await cancelled(store.elsewhere())
    assert await ran(store.queue) == ["c.0"]


@pytest.mark.parametrize("crash_limit", [1, 2, 9])
async def test_a_member_whose_holder_died_after_a_cancel_is_leased_doomed(
    store: StoreUnderTest, crash_limit: int
) -> None:
    needs_requests(store)
    await begun(store.queue, chain(2, crash_limit=crash_limit), kind=Kind.CHAIN)
    await claim_one(store.queue, lease=SHORT)
    assert await cancelled(store.queue)
    await lapsed(store.queue)
    lease = await claim_one(store.queue)
    assert (lease.doomed, lease.suspect, lease.composition) == (Doom.CANCELLED, False, "c")
    assert await settle(store.queue, Release(lease)) is Settled.CANCELLED
    assert await tally(store.queue) == ("cancelled", 2, 0, 0, 2)
    await over(store.queue)


@pytest.mark.parametrize("released", [False, True], ids=["as it began", "all released"])
async def test_many_jobs_are_cancelled_step_by_step(store: StoreUnderTest, *, released: bool) -> None:
    await begun(store.queue, batch(330), kind=Kind.BATCH)
    if released:
        await eventually(lambda: all_released(store.queue, 330))
    assert await cancelled(store.queue)
    await swept(store.queue, ("cancelled", 330, 0, 0, 330))
    assert await where(store.queue) == {"delayed": 1}


async def all_released(queue: Queue, count: int) -> bool:
    """Give back what a claim brings, which has released what it could; tell whether all wait in the queue."""
    await done(queue, Release(await claim_one(queue), free=True))
    return (await queue.counts(Q)).ready == count


async def test_claims_that_race_a_cancel_bring_nothing_that_ends_well_twice(store: StoreUnderTest) -> None:
    other = store.another()
    await begun(store.queue, batch(250, callbacks=[When.ANY]), kind=Kind.BATCH)
    claiming = asyncio.gather(*(claim(store.queue, 20) for _ in range(5)))
    answer, claims = await asyncio.gather(cancelled(other), claiming)
    assert answer
    leases = [lease for got in claims for lease in got]
    answers = await store.queue.settle([*(Release(lease) for lease in leases)])
    assert set(answers) <= {Settled.CANCELLED, Settled.DONE}

    async def probe() -> bool:
        for lease in await claim(store.queue, 50):
            if lease.id == "c.c13":
                await done(store.queue, Ack(lease))
            else:
                assert lease.doomed is Doom.CANCELLED
                assert await settle(store.queue, Release(lease)) is Settled.CANCELLED
        return (await tally(store.queue))[0] == "cancelled"

    await eventually(probe)
    assert await tally(store.queue) == ("cancelled", 250, 0, 0, 250)
    assert set(await ran(store.queue)) <= {"c.c13"}
    await over(store.queue)


async def test_a_member_that_was_retried_by_hand_is_not_cancelled_with_its_composition(store: StoreUnderTest) -> None:
    reader = failed_jobs(store.queue)
    await begun(store.queue, batch(3), kind=Kind.BATCH)
    first, *_ = await claim(store.queue, 2)
    await done(store.queue, Fail(first, WHY))
    assert list(await reader.retry(await reader.failed(Q))) == [True]
    assert await cancelled(store.queue)
    assert await tally(store.queue) == ("cancelling", 3, 0, 1, 1)
    lease = await claim_one(store.queue)
    assert (lease.id, lease.doomed, lease.composition) == (first.id, None, "")
    assert await renew(store.queue, lease) is Renewal.HELD


# ------------------------------------------------------------------------------------------- jobs that are cancelled


@pytest.mark.parametrize("delay", [0.0, 60.0], ids=["ready", "delayed"])
async def test_a_member_that_is_cancelled_while_it_waits_ends_cancelled(store: StoreUnderTest, delay: float) -> None:
    await begun(store.queue, batch(3, delay=delay), kind=Kind.BATCH)
    assert list(await store.queue.cancel(Q, ["c.1", "c.1"])) == [Cancelled.REMOVED, Cancelled.NOT_FOUND]
    assert await tally(store.queue) == ("active", 3, 0, 0, 1)
    assert list(await store.queue.cancel(Q, ["c.0", "c.2"])) == [Cancelled.REMOVED] * 2
    assert await tally(store.queue) == ("completed_with_failures", 3, 0, 0, 3)
    assert await ran(store.queue) == ["c.c12", "c.c13"]
    await over(store.queue)


async def test_a_cancelled_member_of_a_chain_stops_it(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(3), kind=Kind.CHAIN)
    await done(store.queue, Ack(await claim_one(store.queue)))
    assert list(await store.queue.cancel(Q, ["c.1"])) == [Cancelled.REMOVED]
    assert await claim(store.queue, 5) == []
    assert await tally(store.queue) == ("cancelled", 3, 1, 0, 2)


async def test_a_member_that_is_cancelled_while_it_runs_ends_when_it_is_released(store: StoreUnderTest) -> None:
    needs_requests(store)
    await begun(store.queue, chain(2), kind=Kind.CHAIN)
    lease = await claim_one(store.queue)
    assert list(await store.queue.cancel(Q, ["c.0"])) == [Cancelled.REQUESTED]
    assert await tally(store.queue) == ("active", 2, 0, 0, 0)
    assert await settle(store.queue, Release(lease)) is Settled.CANCELLED
    assert await claim(store.queue, 5) == []
    assert await tally(store.queue) == ("cancelled", 2, 0, 0, 2)


async def test_a_job_that_waits_for_others_is_not_found_by_a_cancel(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(2), kind=Kind.CHAIN)
    assert list(await store.queue.cancel(Q, ["c.1"])) == [Cancelled.NOT_FOUND]
    assert await ran(store.queue) == ["c.0", "c.1"]


async def test_cleared_members_end_cancelled_and_the_others_go_on(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(4), kind=Kind.BATCH)
    await begun(store.queue, chain(3, of="d"), of="d", kind=Kind.CHAIN)
    await push(store.queue, job("plain"))
    lease = await claim_one(store.queue)
    assert await store.queue.clear(Q) == 5
    await swept(store.queue, ("cancelled", 3, 0, 0, 3), "d")
    await swept(store.queue, ("active", 4, 0, 0, 3))
    assert await ran(store.queue, Ack(lease)) == ["c.c12", "c.c13"]
    assert await tally(store.queue) == ("completed_with_failures", 4, 1, 0, 3)
    await over(store.queue, 2)


async def test_many_cleared_members_end_step_by_step(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(250), kind=Kind.BATCH)
    cleared, claims = await store.queue.clear(Q), 0
    while (await tally(store.queue))[0] == "active":
        for lease in await claim(store.queue, 1):
            await done(store.queue, Release(lease, free=True))
        cleared += await store.queue.clear(Q)
        claims += 1
        assert claims < 50
    state, total, succeeded, failed, gone = await tally(store.queue)
    assert (state, total, succeeded, failed, gone) == ("completed_with_failures", 250, 0, 0, 250)
    assert cleared >= 250


async def test_an_id_that_was_cleared_and_pushed_anew_is_of_no_composition(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(2), kind=Kind.CHAIN)
    assert await store.queue.clear(Q) == 1
    await push(store.queue, job("c.0"))
    lease = await claim_one(store.queue)
    assert (lease.id, lease.composition) == ("c.0", "")
    await done(store.queue, Ack(lease))
    await swept(store.queue, ("cancelled", 2, 0, 0, 2))
    assert await claim(store.queue, 1) == []

"""A settlement counts its job once, and lets those begin that waited for it, in its own atomic step (P3, P7)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

from collections.abc import Callable

import msgspec
import pytest

from tenure.compositions import START, Gate, Kind, Node, When
from tenure.naming import new_token
from tenure.queue import Ack, Doom, Drop, Fail, Failure, Lease, Release, SetAside, Settled, Settlement
from tenure.testing.contract.composing import batch, begun, chain, member, over, ran, tally
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    claim,
    claim_one,
    done,
    ids,
    job,
    lapsed,
    pass_time,
    push,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

FAILURES: dict[str, Callable[[Lease], Settlement]] = {
    "failed": lambda lease: Fail(lease, WHY),
    "expired": lambda lease: Fail(lease, Failure(reason="expired")),
    "unknown": lambda lease: Fail(lease, Failure(reason="unknown-job")),
    "set aside": lambda lease: SetAside(lease, "unreadable"),
}


async def test_the_jobs_of_a_chain_run_one_after_the_other(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(4), kind=Kind.CHAIN)
    for number in range(4):
        leases = await claim(store.another(), 10)
        assert [(lease.id, lease.composition, lease.deliveries) for lease in leases] == [(f"c.{number}", "c", 1)]
        assert await tally(store.queue) == ("active", 4, number, 0, 0)
        await done(store.queue, *map(Ack, leases))
    assert await tally(store.queue) == ("completed", 4, 4, 0, 0)
    assert await claim(store.queue, 10) == []
    await over(store.queue)


async def test_a_job_of_no_composition_says_so(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(1))
    await push(store.queue, job("x"))
    member_lease, plain = await claim(store.queue, 2)
    assert (member_lease.composition, plain.composition) == ("c", "")
    assert (plain.input, plain.gives) == (None, False)


@pytest.mark.parametrize("fail", FAILURES)
async def test_a_chain_ends_with_the_job_that_failed(store: StoreUnderTest, fail: str) -> None:
    await begun(store.queue, chain(4), kind=Kind.CHAIN)
    await done(store.queue, Ack(await claim_one(store.queue)))
    await done(store.queue, FAILURES[fail](await claim_one(store.queue)))
    assert await claim(store.queue, 10) == []
    assert await tally(store.queue) == ("failed", 4, 1, 1, 2)
    await over(store.queue)


@pytest.mark.parametrize("kind", [Kind.CHAIN, Kind.WORKFLOW])
async def test_a_chain_whose_job_was_dropped_is_cancelled(store: StoreUnderTest, kind: Kind) -> None:
    await begun(store.queue, chain(3), kind=kind)
    await done(store.queue, Drop(await claim_one(store.queue)))
    assert await claim(store.queue, 10) == []
    assert await tally(store.queue) == ("cancelled", 3, 0, 0, 3)


async def test_a_job_that_is_given_back_has_not_ended(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(2))
    await done(store.queue, Release(await claim_one(store.queue)))
    await done(store.queue, Release(await claim_one(store.queue), free=True))
    await done(store.queue, Release(await claim_one(store.queue), delay=0.05))
    assert await tally(store.queue) == ("active", 2, 0, 0, 0)
    await pass_time(store.queue, 0.06)
    lease = await claim_one(store.queue)
    assert (lease.id, lease.deliveries, lease.composition) == ("c.0", 4, "c")
    assert await ran(store.queue, Ack(lease)) == ["c.1"]


async def test_a_job_that_crashes_too_often_ends_its_chain_when_it_has_failed(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(2, crash_limit=1), kind=Kind.CHAIN)
    await claim_one(store.queue, lease=SHORT)
    await lapsed(store.queue)
    lease = await claim_one(store.queue)
    assert lease.doomed is Doom.CRASHED
    assert await tally(store.queue) == ("active", 2, 0, 0, 0)
    await done(store.queue, Fail(lease, Failure(reason="crashed")))
    assert await tally(store.queue) == ("failed", 2, 0, 1, 1)


async def test_delays_and_expiries_count_from_when_a_job_is_released(store: StoreUnderTest) -> None:
    nodes: list[Node] = [
        Gate(number=START, next=(0,)),
        member(0, 1),
        member(1, 2, delay=0.3, expires_in=30),
        member(2, 3, expires_in=0.3),
        member(3, expires_in=0.02),
    ]
    await begun(store.queue, nodes)
    lease = await claim_one(store.queue)
    await pass_time(store.queue, 0.35)
    await done(store.queue, Ack(lease))
    assert await where(store.queue) == {"delayed": 1}
    assert await claim(store.queue) == []
    lease = await claim_one(store.queue, wait=10)
    assert (lease.id, lease.doomed) == ("c.1", None)
    await done(store.queue, Ack(lease))
    lease = await claim_one(store.queue)
    assert (lease.id, lease.doomed) == ("c.2", None)
    await done(store.queue, Ack(lease))
    await pass_time(store.queue, 0.03)
    lease = await claim_one(store.queue)
    assert (lease.id, lease.doomed) == ("c.3", Doom.EXPIRED)


async def test_a_released_job_has_its_own_priority_and_limits(store: StoreUnderTest) -> None:
    high = 5 if store.queue.capabilities.priorities else 0
    await begun(store.queue, [Gate(number=START, next=(0,)), member(0, 1), member(1, priority=high, crash_limit=2)])
    await push(store.queue, job("x"), job("y"))
    await done(store.queue, Ack(await claim_one(store.queue)))
    leases = await claim(store.queue, 3)
    assert ids(leases) == (["c.1", "x", "y"] if high else ["x", "y", "c.1"])
    await done(store.queue, *(Release(lease, crashed=True) for lease in leases))
    assert [lease.id for lease in await claim(store.queue, 3) if lease.suspect] == ["c.1"]


@pytest.mark.parametrize("size", [1, 3, 100, 250])
async def test_each_callback_of_a_batch_runs_once_when_all_have_ended(store: StoreUnderTest, size: int) -> None:
    await begun(store.queue, batch(size), kind=Kind.BATCH)
    members = [f"c.{number}" for number in range(size)]
    assert [one for one in await ran(store.queue, batch=40) if one not in members] == ["c.c11", "c.c13"]
    assert await tally(store.queue) == ("completed", size, size, 0, 0)
    await over(store.queue)


ENDINGS: dict[str, Callable[[Lease], Settlement]] = {
    "a": Ack,
    "f": lambda lease: Fail(lease, WHY),
    "s": lambda lease: SetAside(lease, "no"),
    "d": Drop,
}


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "in one call"])
@pytest.mark.parametrize("ends", ["aaa", "aaf", "faa", "fsf", "dda", "dfs", "ddd"])
async def test_a_batch_goes_on_whatever_its_members_come_to(
    store: StoreUnderTest, ends: str, *, together: bool
) -> None:
    await begun(store.queue, batch(3), kind=Kind.BATCH)
    leases = await claim(store.queue, 3)
    settlements = [ENDINGS[end](lease) for end, lease in zip(ends, leases, strict=True)]
    if together:
        await done(store.queue, *settlements)
    else:
        for number, settlement in enumerate(settlements):
            assert (await tally(store.queue))[0] == "active"
            assert await where(store.queue) | {"failed": 0, "unreadable": 0} == {
                **{"leased": 3 - number, "failed": 0, "unreadable": 0}
            }
            await done(store.queue, settlement)
    succeeded, cancelled = ends.count("a"), ends.count("d")
    state = "completed" if succeeded == 3 else "completed_with_failures"
    assert await tally(store.queue) == (state, 3, succeeded, 3 - succeeded - cancelled, cancelled)
    assert sorted(await ran(store.queue)) == sorted(["c.c11" if succeeded == 3 else "c.c12", "c.c13"])
    await over(store.queue)


async def test_what_a_callback_comes_to_changes_nothing_of_the_composition(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(1), kind=Kind.BATCH)
    await done(store.queue, Ack(await claim_one(store.queue)))
    for end in (ENDINGS["f"], ENDINGS["d"]):
        await done(store.queue, end(await claim_one(store.queue)))
        assert await tally(store.queue) == ("completed", 1, 1, 0, 0)
    await over(store.queue)


async def test_a_workflow_runs_each_job_when_all_that_it_waits_for_has_ended(store: StoreUnderTest) -> None:
    nodes: list[Node] = [
        Gate(number=START, next=(0,)),
        member(0, -2),
        Gate(number=-2, next=(1, 2)),
        member(1, -3),
        member(2, 3),
        member(3, -3),
        Gate(number=-3, needs=2, next=(4,)),
        member(4),
    ]
    await begun(store.queue, nodes)
    assert await ran(store.queue, batch=1) == ["c.0", "c.1", "c.2", "c.3", "c.4"]
    assert await tally(store.queue) == ("completed", 5, 5, 0, 0)


async def test_a_job_may_be_told_by_several_without_a_gate(store: StoreUnderTest) -> None:
    nodes: list[Node] = [Gate(number=START, next=(0, 1, 2)), *(member(n, 3) for n in range(3)), member(3, needs=3)]
    await begun(store.queue, nodes)
    leases = await claim(store.queue, 5)
    await done(store.queue, Ack(leases[1]), Ack(leases[0]))
    assert await where(store.queue) == {"leased": 1}
    assert await ran(store.queue, Ack(leases[2])) == ["c.3"]


@pytest.mark.parametrize(("when", "runs"), [(When.SUCCESS, False), (When.FAILURE, True), (When.ANY, True)])
async def test_a_counted_job_runs_on_what_it_was_made_for(store: StoreUnderTest, when: When, *, runs: bool) -> None:
    nodes: list[Node] = [
        Gate(number=START, next=(0, 1)),
        *(member(n, 2) for n in range(2)),
        member(2, 3, needs=2, when=when),
    ]
    await begun(store.queue, [*nodes, member(3)])
    first, second = await claim(store.queue, 2)
    await done(store.queue, Fail(first, WHY), Ack(second))
    # A job that ran well after others had failed is a success to those that it tells.
    assert await ran(store.queue) == (["c.2", "c.3"] if runs else [])
    assert await tally(store.queue) == ("failed", 4, 3 if runs else 1, 1, 0 if runs else 2)
    await over(store.queue)


async def test_a_job_for_failures_does_not_run_after_successes(store: StoreUnderTest) -> None:
    nodes: list[Node] = [Gate(number=START, next=(0,)), member(0, 1), member(1, 2, when=When.FAILURE), member(2)]
    await begun(store.queue, nodes, kind=Kind.WORKFLOW)
    assert await ran(store.queue) == ["c.0"]
    assert await tally(store.queue) == ("cancelled", 3, 1, 0, 2)


async def test_gates_pass_on_that_one_of_many_did_not_succeed(store: StoreUnderTest) -> None:
    nodes: list[Node] = [
        Gate(number=START, next=(-2, -3)),
        Gate(number=-2, next=(0, 1)),
        Gate(number=-3, next=(2,)),
        *(member(number, -4) for number in range(2)),
        member(2, -5),
        Gate(number=-4, needs=2, next=(-5,)),
        Gate(number=-5, needs=2, next=(-6, -7, -8)),
        member(-6),
        member(-7, when=When.FAILURE),
        member(-8, when=When.ANY),
    ]
    await begun(store.queue, nodes, kind=Kind.BATCH)
    leases = {lease.id: lease for lease in await claim(store.queue, 5)}
    assert list(leases) == ["c.0", "c.1", "c.2"]
    await done(store.queue, Ack(leases["c.0"]), Ack(leases["c.2"]))
    assert await ran(store.queue, Fail(leases["c.1"], WHY)) == ["c.c7", "c.c8"]
    assert await tally(store.queue) == ("completed_with_failures", 3, 2, 1, 0)


async def test_callbacks_may_have_others_behind_them(store: StoreUnderTest) -> None:
    nodes: list[Node] = [
        Gate(number=START, next=(0,)),
        member(0, -2),
        Gate(number=-2, next=(-3, -4)),
        member(-3, -5, when=When.FAILURE),
        member(-4, -6, when=When.ANY),
        member(-5, when=When.ANY),
        member(-6),
    ]
    await begun(store.queue, nodes)
    assert sorted(await ran(store.queue)) == ["c.0", "c.c4", "c.c5", "c.c6"]
    await over(store.queue)


# P3
@pytest.mark.parametrize("end", ENDINGS)
async def test_a_stale_settlement_changes_nothing_of_a_composition(store: StoreUnderTest, end: str) -> None:
    await begun(store.queue, chain(2))
    past = await claim_one(store.queue, lease=SHORT)
    await lapsed(store.queue)
    present = await claim_one(store.queue)
    for lease in (past, msgspec.structs.replace(present, token=new_token())):
        assert await settle(store.queue, ENDINGS[end](lease)) is Settled.STALE
    assert await tally(store.queue) == ("active", 2, 0, 0, 0)
    assert await claim(store.queue, 5) == []
    await done(store.queue, Ack(present))
    assert await settle(store.another(), ENDINGS[end](present)) is Settled.STALE
    assert await settle(store.queue, ENDINGS[end](past)) is Settled.STALE
    assert await tally(store.queue) == ("active", 2, 1, 0, 0)
    assert await ran(store.queue) == ["c.1"]


async def test_a_job_that_was_delivered_again_counts_once(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(2, crash_limit=9), kind=Kind.BATCH)
    for _ in range(3):
        await claim(store.queue, 2, lease=SHORT)
        await lapsed(store.queue, 2)
    first, second = await claim(store.queue, 2)
    answers = await store.queue.settle([Ack(first), Ack(first), Fail(first, WHY)])
    assert list(answers) == [Settled.DONE, Settled.STALE, Settled.STALE]
    assert await tally(store.queue) == ("active", 2, 1, 0, 0)
    assert await ran(store.queue, Ack(second)) == ["c.c11", "c.c13"]

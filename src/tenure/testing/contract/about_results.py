"""The end of a job that asked for it is kept with its settlement, once, for as long as it asked for (P3, P7)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import time
from typing import Any

import msgspec
import pytest

from tenure.naming import new_token
from tenure.queue import Ack, Cancelled, Drop, Fail, Failure, JobState, Lease, Push, Queue, Release, SetAside, Settled
from tenure.results import Ending
from tenure.testing.contract.operators import results
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    assert_empty,
    claim,
    claim_one,
    done,
    failed_jobs,
    failed_once,
    inspector,
    job,
    lapsed,
    numbered,
    pass_time,
    push,
    pushed_and_claimed,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

KEEP = 60.0


def kept(job_id: str = "x", *, keep: float = KEEP, **options: Any) -> Push:
    return job(job_id, keep=keep, **options)


async def ending(queue: Queue, job_id: str = "x") -> Ending | None:
    (found,) = await results(queue).endings("q", [job_id])
    return found


async def state(queue: Queue, job_id: str = "x") -> JobState:
    (found,) = await inspector(queue).states("q", [job_id])
    return found


async def told(queue: Queue, job_id: str = "x") -> tuple[JobState, bytes | None]:
    """Return how a job ended, by both ways to ask."""
    found = await ending(queue, job_id)
    assert found is not None, "nothing is kept of it"
    assert found.state is await state(queue, job_id)
    return found.state, found.result


async def nothing_is_kept(queue: Queue, job_id: str = "x") -> None:
    assert await ending(queue, job_id) is None
    assert await state(queue, job_id) is JobState.GONE


async def test_a_lease_tells_for_how_long_the_end_of_its_job_is_kept(store: StoreUnderTest) -> None:
    results(store.queue)
    priority = 5 if store.queue.capabilities.priorities else 0
    await push(store.queue, job("plain"), kept("x", keep=2.5), kept("y", keep=7.0, priority=priority, delay=0.001))
    await pass_time(store.queue, 0.01)
    leases = await claim(store.queue, 3)
    assert {lease.id: lease.keep for lease in leases} == {"plain": 0.0, "x": 2.5, "y": 7.0}
    await done(store.queue, *map(Release, leases))
    assert {lease.keep for lease in await claim(store.queue, 3)} == {0.0, 2.5, 7.0}


@pytest.mark.parametrize("result", [b"", b"null", b"[1]", b"\x00\xff|\n|", b"r" * 200_000], ids=lambda r: str(len(r)))
async def test_an_acknowledged_jobs_result_is_kept_byte_for_byte(store: StoreUnderTest, result: bytes) -> None:
    results(store.queue)
    began = time.time()
    lease = await pushed_and_claimed(store.queue, kept())
    await done(store.queue, Ack(lease, result))
    assert await told(store.another()) == (JobState.SUCCEEDED, result)
    found = await ending(store.queue)
    assert found is not None
    assert found.incarnation == lease.incarnation
    assert began - 5 <= found.ended_at <= time.time() + 5
    await assert_empty(store.queue)


async def test_a_job_may_succeed_without_a_result_that_can_be_kept(store: StoreUnderTest) -> None:
    results(store.queue)
    await done(store.queue, Ack(await pushed_and_claimed(store.queue, kept())))
    assert await told(store.queue) == (JobState.SUCCEEDED, None)


async def test_nothing_is_kept_of_a_job_that_did_not_ask_for_it(store: StoreUnderTest) -> None:
    results(store.queue)
    await done(store.queue, Ack(await pushed_and_claimed(store.queue, job("x")), b"1"))
    await nothing_is_kept(store.queue)


async def test_the_end_is_kept_for_its_time_and_is_gone_then(store: StoreUnderTest) -> None:
    results(store.queue)
    await push(store.queue, kept("x", keep=0.3), kept("y"))
    x, y = await claim(store.queue, 2)
    await done(store.queue, Ack(y, b"y"))
    await pass_time(store.queue, 0.3)  # the time begins with the end, not with the push
    await done(store.queue, Ack(x, b"x"))
    assert await told(store.queue) == (JobState.SUCCEEDED, b"x")
    await pass_time(store.queue, 0.31)
    await nothing_is_kept(store.queue)
    assert await told(store.queue, "y") == (JobState.SUCCEEDED, b"y")


async def test_ends_whose_time_is_over_do_not_come_back_when_they_are_swept(store: StoreUnderTest) -> None:
    results(store.queue)
    await push(store.queue, *numbered(250, keep=0.05))
    leases = await claim(store.queue, 250)
    await done(store.queue, *(Ack(lease, b"r") for lease in leases))
    await pass_time(store.queue, 0.06)
    await push(store.queue, *(kept(f"n{number}") for number in range(250)))
    again = await claim(store.queue, 250)
    await done(store.queue, *(Ack(lease, b"n") for lease in again))
    assert await results(store.queue).endings("q", [lease.id for lease in leases]) == [None] * 250
    found = await results(store.queue).endings("q", [lease.id for lease in again])
    assert [one and one.result for one in found] == [b"n"] * 250


async def test_a_failed_job_leaves_its_state_and_its_reason(store: StoreUnderTest) -> None:
    results(store.queue)
    await failed_once(store.queue, kept())
    found = await ending(store.queue)
    assert found is not None
    assert (found.state, found.reason, found.type, found.result) == (JobState.FAILED, WHY.reason, WHY.type, None)
    assert await state(store.queue) is JobState.FAILED


async def test_a_failed_job_that_was_forgotten_has_still_failed_until_its_time_is_over(store: StoreUnderTest) -> None:
    results(store.queue)
    record = await failed_once(store.queue, kept(keep=0.3))
    assert await failed_jobs(store.queue).forget([record]) == [True]
    assert await told(store.queue) == (JobState.FAILED, None)
    await pass_time(store.queue, 0.31)
    await nothing_is_kept(store.queue)


@pytest.mark.parametrize("keep", [0.0, KEEP])
async def test_a_job_that_failed_because_its_time_had_passed_is_told_as_expired(
    store: StoreUnderTest, keep: float
) -> None:
    results(store.queue)
    lease = await pushed_and_claimed(store.queue, kept(keep=keep))
    await done(store.queue, Fail(lease, Failure(reason="expired", message="too late")))
    assert await state(store.queue) is JobState.EXPIRED
    found = await ending(store.queue)
    assert (found and found.state) == (JobState.EXPIRED if keep else None)


async def test_a_dropped_job_is_told_as_cancelled(store: StoreUnderTest) -> None:
    results(store.queue)
    await done(store.queue, Drop(await pushed_and_claimed(store.queue, kept())))
    assert await told(store.queue) == (JobState.CANCELLED, None)


@pytest.mark.parametrize("delay", [0.0, 60.0])
async def test_a_job_that_was_cancelled_while_it_waited_is_told_as_cancelled(
    store: StoreUnderTest, delay: float
) -> None:
    results(store.queue)
    await push(store.queue, kept(delay=delay), job("plain", delay=delay))
    assert list(await store.queue.cancel("q", ["x", "plain"])) == [Cancelled.REMOVED] * 2
    assert await told(store.queue) == (JobState.CANCELLED, None)
    await nothing_is_kept(store.queue, "plain")
    assert await claim(store.queue, 2) == []


async def test_a_job_that_was_cancelled_while_it_ran_is_told_as_cancelled_once_it_is_released(
    store: StoreUnderTest,
) -> None:
    results(store.queue)
    lease = await pushed_and_claimed(store.queue, kept())
    assert list(await store.queue.cancel("q", ["x"])) == [Cancelled.REQUESTED]
    assert await ending(store.queue) is None
    assert await state(store.queue) is JobState.RUNNING
    assert await settle(store.queue, Release(lease)) is Settled.CANCELLED
    assert await told(store.queue) == (JobState.CANCELLED, None)


async def test_a_job_that_succeeds_all_the_same_after_a_cancel_request_keeps_its_result(store: StoreUnderTest) -> None:
    results(store.queue)
    lease = await pushed_and_claimed(store.queue, kept())
    await store.queue.cancel("q", ["x"])
    await done(store.queue, Ack(lease, b"1"))
    assert await told(store.queue) == (JobState.SUCCEEDED, b"1")


async def test_a_released_or_unreadable_or_cleared_job_leaves_no_end(store: StoreUnderTest) -> None:
    results(store.queue)
    await push(store.queue, kept("x"), kept("y"))
    x, y = await claim(store.queue, 2)
    await done(store.queue, Release(x), SetAside(y, "unreadable"))
    assert await results(store.queue).endings("q", ["x", "y"]) == [None, None]
    assert await store.queue.clear("q") == 1
    await nothing_is_kept(store.queue)


# P3
async def test_a_stale_settlement_keeps_nothing_and_changes_no_result(store: StoreUnderTest) -> None:
    results(store.queue)
    past = await pushed_and_claimed(store.queue, kept(), lease=SHORT)
    await lapsed(store.queue)
    present = await claim_one(store.queue)
    forged = msgspec.structs.replace(present, token=new_token())
    for lease in (past, forged):
        for settlement in (Ack(lease, b"stale"), Drop(lease), Fail(lease, WHY)):
            assert await settle(store.queue, settlement) is Settled.STALE
    assert await ending(store.queue) is None
    await done(store.queue, Ack(present, b"right"))
    assert await settle(store.another(), Ack(past, b"stale")) is Settled.STALE
    assert await told(store.queue) == (JobState.SUCCEEDED, b"right")


async def test_of_two_settlements_of_one_lease_the_result_of_the_first_is_kept(store: StoreUnderTest) -> None:
    results(store.queue)
    lease = await pushed_and_claimed(store.queue, kept())
    answers = await store.queue.settle([Ack(lease, b"first"), Ack(lease, b"second")])
    assert list(answers) == [Settled.DONE, Settled.STALE]
    assert await told(store.queue) == (JobState.SUCCEEDED, b"first")


async def test_two_workers_that_settle_at_the_same_time_keep_the_winners_result(store: StoreUnderTest) -> None:
    results(store.queue)
    other = store.another()
    for number in range(10):
        lease = await pushed_and_claimed(store.queue, kept(f"x{number}"))
        answers = await asyncio.gather(settle(store.queue, Ack(lease, b"one")), settle(other, Ack(lease, b"two")))
        won = b"one" if answers[0] is Settled.DONE else b"two"
        assert await told(store.queue, lease.id) == (JobState.SUCCEEDED, won)


# P1
@pytest.mark.parametrize("keep", [0.0, KEEP])
async def test_a_job_that_has_ended_does_not_keep_a_new_one_from_being_pushed(
    store: StoreUnderTest, keep: float
) -> None:
    results(store.queue)
    await done(store.queue, Ack(await pushed_and_claimed(store.queue, kept()), b"old"))
    await push(store.queue, kept(keep=keep))
    assert await ending(store.queue) is None
    assert await state(store.queue) is JobState.READY
    lease = await claim_one(store.queue)
    assert await ending(store.queue) is None
    await done(store.queue, Ack(lease, b"new"))
    if keep:
        assert await told(store.queue) == (JobState.SUCCEEDED, b"new")
    else:
        await nothing_is_kept(store.queue)


async def test_a_cleared_job_does_not_bring_the_end_of_an_earlier_one_back(store: StoreUnderTest) -> None:
    results(store.queue)
    await done(store.queue, Ack(await pushed_and_claimed(store.queue, kept()), b"old"))
    await push(store.queue, kept())
    assert await store.queue.clear("q") == 1
    await nothing_is_kept(store.queue)


async def test_a_push_that_is_held_changes_nothing_of_how_the_end_is_kept(store: StoreUnderTest) -> None:
    results(store.queue)
    await push(store.queue, job("x"))
    (answer,) = await store.queue.push([kept()])
    assert answer.outcome == "held"
    lease = await claim_one(store.queue)
    assert lease.keep == 0.0
    await done(store.queue, Ack(lease, b"1"))
    await nothing_is_kept(store.queue)


async def test_a_failed_job_that_is_retried_begins_anew_and_keeps_its_new_end(store: StoreUnderTest) -> None:
    results(store.queue)
    record = await failed_once(store.queue, kept())
    assert await failed_jobs(store.queue).retry([record]) == [True]
    assert await ending(store.queue) is None
    assert await state(store.queue) is JobState.READY
    lease = await claim_one(store.queue)
    assert lease.keep == KEEP
    await done(store.queue, Ack(lease, b"again"))
    assert await told(store.queue) == (JobState.SUCCEEDED, b"again")


async def test_ends_of_one_settling_call_are_each_jobs_own(store: StoreUnderTest) -> None:
    results(store.queue)
    await push(store.queue, *(kept(name) for name in "abcdef"), job("g"))
    leases = {lease.id: lease for lease in await claim(store.queue, 10)}
    await done(
        store.queue,
        Ack(leases["a"], b"A"),
        Fail(leases["b"], WHY),
        Drop(leases["c"]),
        Release(leases["d"]),
        Ack(leases["g"], b"G"),
        Fail(leases["e"], Failure(reason="expired")),
        Ack(leases["f"], b"F"),
    )
    states = await inspector(store.queue).states("q", list("abcdefg"))
    assert [one.value for one in states] == [
        "succeeded",
        "failed",
        "cancelled",
        "ready",
        "expired",
        "succeeded",
        "gone",
    ]
    found = await results(store.queue).endings("q", list("afgz"))
    assert [one and one.result for one in found] == [b"A", b"F", None, None]
    assert await where(store.queue) == {"ready": 1, "failed": 2}


async def test_ends_are_those_of_their_queue_and_their_namespace(store: StoreUnderTest) -> None:
    results(store.queue)
    await push(store.queue, kept(), kept(queue="other"))
    leases: list[Lease] = await claim(store.queue, 2, queues=["q", "other"])
    await done(store.queue, *(Ack(lease, lease.queue.encode()) for lease in leases))
    assert await told(store.queue) == (JobState.SUCCEEDED, b"q")
    (other,) = await results(store.queue).endings("other", ["x"])
    assert other is not None
    assert other.result == b"other"
    assert await results(store.elsewhere()).endings("q", ["x"]) == [None]
    assert await results(store.queue).endings("nobody", ["x"]) == [None]

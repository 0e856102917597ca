"""A cancel removes what waits and asks for what runs, and never reaches another life of the same id."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure.queue import Ack, Cancelled, Doom, Drop, Fail, Lease, Release, Renewal, SetAside, Settled, Settlement
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    failed_jobs,
    failed_once,
    ids,
    job,
    jobs,
    lapsed,
    push,
    pushed_and_claimed,
    renew,
    settle,
    suspected,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def cancel(store: StoreUnderTest, job_id: str) -> Cancelled:
    (answer,) = await store.queue.cancel(Q, [job_id])
    return answer


def needs_requests(store: StoreUnderTest) -> None:
    if not store.queue.capabilities.cancel_running:
        pytest.skip(f"the driver {store.queue.capabilities.driver!r} cannot cancel what runs")


@pytest.mark.parametrize("options", [{}, {"delay": 60.0}, {"expires_in": 60.0}], ids=["ready", "delayed", "expiring"])
async def test_a_waiting_job_that_is_cancelled_never_comes(store: StoreUnderTest, options: dict[str, Any]) -> None:
    await push(store.queue, job("x", **options), job("y"))
    assert await cancel(store, "x") is Cancelled.REMOVED
    assert await where(store.queue) == {"ready": 1}
    assert ids(await drained(store.queue, 1)) == ["y"]
    await assert_empty(store.queue)


async def test_a_job_pushed_after_a_cancel_of_its_id_takes_no_place_of_the_past(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"), job("y"))
    assert await cancel(store, "x") is Cancelled.REMOVED
    await push(store.queue, job("x"))
    y, x = await claim(store.queue, 10)
    assert (y.id, x.id) == ("y", "x")
    assert x.incarnation > y.incarnation


async def test_a_released_job_can_be_cancelled(store: StoreUnderTest) -> None:
    for delay in (0.0, 60.0):
        lease = await pushed_and_claimed(store.queue, job("x"))
        await done(store.queue, Release(lease, delay=delay))
        assert await cancel(store, "x") is Cancelled.REMOVED
        await assert_empty(store.queue)


async def test_a_suspect_can_be_cancelled(store: StoreUnderTest) -> None:
    await suspected(store.queue, "x")
    assert await cancel(store, "x") is Cancelled.REMOVED
    await assert_empty(store.queue)


async def test_the_holder_of_a_job_learns_of_the_cancel_when_it_renews(store: StoreUnderTest) -> None:
    needs_requests(store)
    lease = await pushed_and_claimed(store.queue, job("x"))
    assert await renew(store.queue, lease) is Renewal.HELD
    assert await cancel(store, "x") is Cancelled.REQUESTED
    assert await where(store.queue) == {"leased": 1}
    assert await renew(store.another(), lease) is Renewal.CANCEL_REQUESTED
    assert await cancel(store, "x") is Cancelled.REQUESTED
    assert await renew(store.queue, lease) is Renewal.CANCEL_REQUESTED


async def test_a_renewal_that_tells_of_a_cancel_extends_the_lease_too(store: StoreUnderTest) -> None:
    needs_requests(store)
    lease = await pushed_and_claimed(store.queue, job("x"), lease=1)
    assert await cancel(store, "x") is Cancelled.REQUESTED
    await lapsed(store.queue)
    assert await renew(store.queue, lease) is Renewal.CANCEL_REQUESTED
    assert await where(store.queue) == {"leased": 1}


@pytest.mark.parametrize("delay", [0.0, 60.0], ids=["at once", "delayed"])
async def test_a_release_after_a_cancel_removes_the_job(store: StoreUnderTest, delay: float) -> None:
    needs_requests(store)
    lease = await pushed_and_claimed(store.queue, job("x"))
    await cancel(store, "x")
    assert await settle(store.queue, Release(lease, delay=delay)) is Settled.CANCELLED
    await assert_empty(store.queue)
    assert await settle(store.queue, Release(lease)) is Settled.STALE


async def test_a_job_that_succeeds_or_fails_after_a_cancel_keeps_its_outcome(store: StoreUnderTest) -> None:
    needs_requests(store)
    lease = await pushed_and_claimed(store.queue, job("x"))
    await cancel(store, "x")
    await done(store.queue, Ack(lease))
    await assert_empty(store.queue)
    lease = await pushed_and_claimed(store.queue, job("y"))
    await cancel(store, "y")
    await done(store.queue, Fail(lease, WHY))
    assert await where(store.queue) == {"failed": 1}


async def test_a_cancel_of_a_lapsed_job_is_a_request_to_whoever_has_it(store: StoreUnderTest) -> None:
    needs_requests(store)
    lease = await pushed_and_claimed(store.queue, job("x"), lease=SHORT)
    await lapsed(store.queue)
    assert await cancel(store, "x") is Cancelled.REQUESTED
    assert await settle(store.queue, Release(lease)) is Settled.CANCELLED
    await assert_empty(store.queue)


@pytest.mark.parametrize("crash_limit", [1, 2, 9])
async def test_a_job_whose_holder_died_after_a_cancel_is_leased_doomed(store: StoreUnderTest, crash_limit: int) -> None:
    needs_requests(store)
    await pushed_and_claimed(store.queue, job("x", crash_limit=crash_limit, expires_in=0.01), lease=SHORT)
    assert await cancel(store, "x") is Cancelled.REQUESTED
    await lapsed(store.queue)
    lease = await claim_one(store.another())
    # Of several reasons the first is told.
    assert (lease.doomed, lease.suspect, lease.deliveries, lease.crashes) == (Doom.CANCELLED, False, 2, 1)
    assert await renew(store.queue, lease) is Renewal.CANCEL_REQUESTED
    assert await settle(store.queue, Release(lease)) is Settled.CANCELLED
    await assert_empty(store.queue)


async def test_a_job_that_is_to_be_cancelled_stays_doomed_when_its_next_holder_dies_too(store: StoreUnderTest) -> None:
    needs_requests(store)
    lease = await pushed_and_claimed(store.queue, job("x"), lease=SHORT)
    await cancel(store, "x")
    for deliveries in (2, 3):
        await lapsed(store.queue)
        lease = await claim_one(store.queue, lease=SHORT)
        assert (lease.doomed, lease.deliveries) == (Doom.CANCELLED, deliveries)
    assert await settle(store.queue, Release(lease, crashed=True)) is Settled.CANCELLED
    await assert_empty(store.queue)


async def test_a_job_that_is_to_be_cancelled_and_waits_again_can_be_removed(store: StoreUnderTest) -> None:
    needs_requests(store)
    await push(store.queue, job("a"), job("b"), job("c"))
    await claim(store.queue, 3, lease=SHORT)
    assert set(await store.queue.cancel(Q, ["a", "b", "c"])) == {Cancelled.REQUESTED}
    await lapsed(store.queue, 3)
    assert ids(await claim(store.queue, 1)) == ["a"]
    assert await where(store.queue) == {"ready": 2, "leased": 1}
    assert await cancel(store, "b") is Cancelled.REMOVED
    assert await store.queue.clear(Q) == 1
    # Neither removal leaves anything to the next job of that id.
    await push(store.queue, job("b"), job("c"))
    leases = await claim(store.queue, 10)
    assert [(lease.id, lease.doomed, lease.deliveries) for lease in leases] == [("b", None, 1), ("c", None, 1)]
    assert list(await store.queue.renew(leases)) == [Renewal.HELD] * 2


async def test_an_id_that_is_nowhere_is_not_found(store: StoreUnderTest) -> None:
    assert await cancel(store, "never") is Cancelled.NOT_FOUND
    await done(store.queue, Ack(await pushed_and_claimed(store.queue, job("x"))))
    assert await cancel(store, "x") is Cancelled.NOT_FOUND
    assert await cancel(store, "x") is Cancelled.NOT_FOUND


async def test_a_failed_job_is_not_found(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue)
    assert await cancel(store, record.id) is Cancelled.NOT_FOUND
    assert await where(store.queue) == {"failed": 1}


async def test_a_cancel_of_nothing_does_not_reach_the_next_job_of_that_id(store: StoreUnderTest) -> None:
    for _ in range(3):
        await cancel(store, "x")
    lease = await pushed_and_claimed(store.queue, job("x"))
    assert await renew(store.queue, lease) is Renewal.HELD
    assert await settle(store.queue, Release(lease)) is Settled.DONE
    assert ids(await drained(store.queue, 1)) == ["x"]


async def test_a_cancel_request_goes_with_the_life_it_was_made_for(store: StoreUnderTest) -> None:
    needs_requests(store)
    ends: list[Callable[[Lease], Settlement]] = [Ack, Drop, Release, lambda lease: SetAside(lease, "no")]
    for end in ends:
        lease = await pushed_and_claimed(store.queue, job("x"))
        assert await cancel(store, "x") is Cancelled.REQUESTED
        await store.queue.settle([end(lease)])
        second = await pushed_and_claimed(store.queue, job("x"))
        assert await renew(store.queue, second) is Renewal.HELD
        assert await settle(store.queue, Release(second)) is Settled.DONE
        assert ids(await drained(store.queue, 1)) == ["x"]


async def test_a_cancel_request_does_not_reach_the_retry_of_a_failed_job(store: StoreUnderTest) -> None:
    needs_requests(store)
    lease = await pushed_and_claimed(store.queue, job("x"))
    assert await cancel(store, "x") is Cancelled.REQUESTED
    await done(store.queue, Fail(lease, WHY))
    reader = failed_jobs(store.queue)
    assert list(await reader.retry(await reader.failed(Q))) == [True]
    second = await claim_one(store.queue)
    assert await renew(store.queue, second) is Renewal.HELD
    assert await settle(store.queue, Release(second)) is Settled.DONE


async def test_cancels_are_answered_in_order_and_an_id_named_twice_is_removed_once(store: StoreUnderTest) -> None:
    needs_requests(store)
    await pushed_and_claimed(store.queue, job("runs"))
    await push(store.queue, job("ready"), job("delayed", delay=60))
    answers = await store.queue.cancel(Q, ["none", "delayed", "runs", "ready", "delayed", "ready"])
    assert [answer.value for answer in answers] == [
        *("not_found", "removed", "requested", "removed", "not_found", "not_found"),
    ]
    assert await where(store.queue) == {"leased": 1}
    assert list(await store.queue.cancel(Q, [])) == []


async def test_a_cancel_touches_only_its_own_queue(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"), job("x", queue="other"))
    assert await cancel(store, "x") is Cancelled.REMOVED
    assert await where(store.queue, "other") == {"ready": 1}


async def test_many_jobs_are_cancelled_in_one_call(store: StoreUnderTest) -> None:
    names = [f"j{number}" for number in range(1200)]
    await push(store.queue, *jobs(*names))
    assert list(await store.queue.cancel(Q, names)) == [Cancelled.REMOVED] * 1200
    assert await where(store.queue) == {}


async def test_a_cancel_that_races_a_push_of_its_id_removes_it_or_leaves_it_alone(store: StoreUnderTest) -> None:
    needs_requests(store)
    other = store.another()
    for number in range(200):
        pushing = other.push([job("x", delay=60.0 * (number % 3 == 0))])
        (answer,), (pushed,) = await asyncio.gather(store.queue.cancel(Q, ["x"]), pushing)
        assert pushed.outcome == "stored"
        left = await where(store.queue)
        assert left == ({} if answer is Cancelled.REMOVED else {"delayed": 1} if number % 3 == 0 else {"ready": 1})
        if left.get("ready"):
            lease = await claim_one(store.queue)
            assert await renew(store.queue, lease) is Renewal.HELD
            await done(store.queue, Ack(lease))
        await store.queue.clear(Q)

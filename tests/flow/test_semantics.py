"""What compositions promise, seen from the store: one claim and one settlement after the other, without a worker."""

from collections.abc import Sequence

import pytest

from tenure import Cancelled, CompositionState, CompositionStatus, JobState
from tenure.flow import CompositionHandle
from tenure.queue import Ack, Fail, Failure, Lease, Release, Settled, Settlement
from tests.flow.shop import Shop

BAD = Failure(reason="exception", type="ValueError")


async def claimed(shop: Shop, limit: int = 100) -> list[Lease]:
    """Return what can be leased now."""
    leases: list[Lease] = []
    while found := (await shop.app.queue().claim(["default"], limit=limit, lease=60, wait=0)).leases:
        leases += found
    return leases


async def settled(shop: Shop, *settlements: Settlement) -> Sequence[Settled]:
    return await shop.app.queue().settle(settlements)


async def status_of(handle: CompositionHandle) -> CompositionStatus:
    status = await handle.status()
    assert status is not None
    return status


# S17
async def test_the_next_of_a_chain_is_eligible_only_after_the_one_before_it_was_acknowledged(shop: Shop) -> None:
    handle = await shop.app.chain(shop.noted("a"), shop.noted("b")).push()
    [first] = await claimed(shop)
    assert first.id == f"{handle.id}.0"
    assert await claimed(shop) == []
    assert await settled(shop, Release(first)) == [Settled.DONE]
    [again] = await claimed(shop)
    assert (again.id, again.attempt) == (first.id, 2)
    assert await settled(shop, Ack(first)) == [Settled.STALE], "a stale settlement moves nothing"
    assert await claimed(shop) == []
    assert await settled(shop, Ack(again)) == [Settled.DONE]
    [second] = await claimed(shop)
    assert second.id == f"{handle.id}.1"
    await settled(shop, Ack(second))
    assert (await status_of(handle)).state is CompositionState.COMPLETED


# S17
async def test_members_of_a_batch_may_end_in_any_order_and_a_failed_one_stops_no_other(shop: Shop) -> None:
    batch = shop.app.batch([shop.noted(number) for number in range(4)], on_failure=shop.noted("failure"))
    handle = await batch.push()
    leases = {lease.id: lease for lease in await claimed(shop)}
    zero, one, two, three = (leases[f"{handle.id}.{number}"] for number in range(4))
    await settled(shop, Ack(three))
    await settled(shop, Fail(one, BAD))
    status = await status_of(handle)
    assert (status.state, status.succeeded, status.failed, status.pending) == (CompositionState.ACTIVE, 1, 1, 2)
    assert await settled(shop, Ack(zero), Ack(two)) == [Settled.DONE] * 2
    [callback] = await claimed(shop)
    assert callback.id == f"{handle.id}.c4"
    status = await status_of(handle)
    assert (status.state, status.succeeded, status.failed, status.pending) == (
        CompositionState.COMPLETED_WITH_FAILURES, 3, 1, 0,
    )  # fmt: skip
    await settled(shop, Ack(callback))


# S17
async def test_cancelling_prevents_what_is_not_held_and_cannot_undo_what_is(shop: Shop) -> None:
    handle = await shop.app.batch([shop.noted("held"), shop.noted("waits")]).push()
    [held] = (await shop.app.queue().claim(["default"], limit=1, lease=60, wait=0)).leases
    assert await handle.cancel()
    status = await status_of(handle)
    assert (status.state, status.cancelled, status.pending) == (CompositionState.CANCELLING, 1, 1)
    assert await claimed(shop) == [], "what was not held does not begin"
    assert await handle.cancel(), "again, and nothing changes"
    assert await settled(shop, Ack(held)) == [Settled.DONE], "what was done is done"
    status = await status_of(handle)
    assert (status.state, status.succeeded, status.cancelled) == (CompositionState.CANCELLED, 1, 1)


# S17
async def test_a_member_that_is_cancelled_alone_counts_as_cancelled(shop: Shop) -> None:
    handle = await shop.app.batch([shop.noted("a"), shop.noted("b")], result_ttl=60).push()
    assert await shop.app.cancel("default", [f"{handle.id}.0"]) == [Cancelled.REMOVED]
    await settled(shop, *(Ack(lease, b'"b"') for lease in await claimed(shop)))
    status = await status_of(handle)
    assert (status.state, status.cancelled) == (CompositionState.COMPLETED_WITH_FAILURES, 1)
    found = [(member.state, member.result) async for member in handle.results()]
    assert found == [(JobState.CANCELLED, None), (JobState.SUCCEEDED, "b")]


# S17
async def test_a_cleared_member_counts_as_cancelled(shop: Shop) -> None:
    handle = await shop.app.batch([shop.noted("a"), shop.noted("b")], on_finish=shop.noted("finish")).push()
    assert await shop.app.clear("default") == 2
    # What was cleared is told in steps, by claims: this one waits for them.
    [callback] = (await shop.app.queue().claim(["default"], limit=1, lease=60, wait=10)).leases
    status = await status_of(handle)
    assert (status.cancelled, status.state) == (2, CompositionState.COMPLETED_WITH_FAILURES)
    await settled(shop, Ack(callback))


async def test_what_was_given_travels_as_it_was_encoded(shop: Shop) -> None:
    handle = await shop.app.push(shop.one.bind(shop.key, 1).then(shop.add))
    [first] = await claimed(shop)
    assert (first.gives, first.input, first.composition) == (True, None, handle.composition)
    await settled(shop, Ack(first, b" 12345678901234567890123 "))
    [second] = await claimed(shop)
    assert (second.gives, second.input) == (False, b" 12345678901234567890123 ")
    await settled(shop, Ack(second))
    assert await handle.wait(timeout=5) is JobState.GONE


@pytest.mark.parametrize("number", [1, 3])
async def test_the_status_holds_numbers_and_no_payload(shop: Shop, number: int) -> None:
    handle = await shop.app.batch([shop.noted("hunter2-canary")] * number, name="mails").push()
    assert "hunter2-canary" not in repr(await handle.status())
    assert "hunter2-canary" not in repr([member async for member in handle.results()])
    await handle.cancel()

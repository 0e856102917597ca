"""A claiming process can be named, and whoever outlives it finds what it holds and gives it back."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

from collections.abc import Sequence
from typing import Any

import pytest

from tenure.errors import InvalidOption
from tenure.naming import new_holder
from tenure.operating import Holdings
from tenure.queue import Ack, Lease, Release, Settled
from tenure.testing.contract.operators import holdings
from tenure.testing.contract.steps import (
    SHORT,
    Q,
    claim,
    claim_one,
    done,
    jobs,
    lapsed,
    numbered,
    push,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

FOREIGN: list[Any] = [
    *("", "short", "x" * 33, "with.point", "with|bar.", "with space", "*" * 8, "ääääääää", "newline-\n", 12345678),
]


async def all_held(reader: Holdings, holder: str, *, queue: str = Q, limit: int = 500) -> list[Lease]:
    """Return everything that a holder holds, read page by page."""
    leases: list[Lease] = []
    cursors: set[str] = set()
    cursor: str | None = None
    while True:
        page = await reader.held_by(queue, holder, limit=limit, cursor=cursor)
        assert len(page.leases) <= limit
        leases += page.leases
        if page.cursor is None:
            return leases
        assert page.cursor not in cursors, "the reading goes round and round"
        cursors.add(page.cursor)
        cursor = page.cursor


def told(leases: Sequence[Lease]) -> list[tuple[Any, ...]]:
    """Return what the store knows of leases, in order of their ids."""
    return sorted(
        (
            *(lease.queue, lease.id, lease.incarnation, lease.token, lease.deliveries, lease.free, lease.crashes),
            *(round(lease.length, 3), lease.envelope),
        )
        for lease in leases
    )


async def test_the_leases_of_a_holder_are_found_whole(store: StoreUnderTest) -> None:
    holder = new_holder()
    await push(store.queue, *jobs("a", "b"))
    await done(store.queue, Release(await claim_one(store.queue), free=True))
    leases = await claim(store.queue, 2, holder=holder)
    found = await all_held(holdings(store.another()), holder)
    assert told(found) == told(leases)
    assert {lease.token.startswith(holder) for lease in leases} == {True}
    assert all(abs(one.deadline - leases[0].deadline) < 5 for one in found)


async def test_each_claim_of_a_holder_has_a_token_of_its_own(store: StoreUnderTest) -> None:
    holder = new_holder()
    await push(store.queue, *numbered(20))
    tokens = {(await claim_one(store.queue, holder=holder)).token for _ in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= len(holder) + 11, "64 random bits at least"


async def test_only_what_this_holder_holds_in_this_queue_is_found(store: StoreUnderTest) -> None:
    reader = holdings(store.queue)
    await push(store.queue, *jobs("mine", "other", "longer", "unnamed"))
    await push(store.queue, *jobs("elsewhere", queue="q2"))
    for holder in ("process1", "process2", "process1-b"):
        await claim_one(store.queue, holder=holder)
    await claim_one(store.queue)
    await claim_one(store.queue, queues=["q2"], holder="process1")
    assert [lease.id for lease in await all_held(reader, "process1")] == ["mine"]
    assert [lease.id for lease in await all_held(reader, "process1", queue="q2")] == ["elsewhere"]
    assert await all_held(reader, "process3") == []
    assert await all_held(reader, "process1", queue="q3") == []
    assert await all_held(holdings(store.elsewhere()), "process1") == []


async def test_a_holder_is_found_by_its_very_name(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("mine", "alike"))
    await claim_one(store.queue, holder="a--b__c-")
    await claim_one(store.queue, holder="A--B__C-")
    assert [lease.id for lease in await all_held(holdings(store.queue), "a--b__c-")] == ["mine"]


async def test_many_leases_of_a_holder_among_many_others_are_each_found_once(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(1300))
    mine: list[Lease] = []
    for number in range(13):
        leases = await claim(store.queue, 100, holder="process1" if number % 3 else "process2")
        mine += leases if number % 3 else []
    found = await all_held(holdings(store.queue), "process1", limit=70)
    assert told(found) == told(mine)


async def test_what_a_dead_holder_held_is_given_back_page_by_page_with_its_crash(store: StoreUnderTest) -> None:
    reader = holdings(store.another())
    await push(store.queue, *numbered(25))
    await claim(store.queue, 25, holder="process1")
    cursor: str | None = None
    while True:
        page = await reader.held_by(Q, "process1", limit=10, cursor=cursor)
        await done(store.another(), *(Release(lease, crashed=True) for lease in page.leases))
        if page.cursor is None:
            break
        cursor = page.cursor
    assert await where(store.queue) == {"ready": 25}
    assert await all_held(reader, "process1") == []
    again = await claim(store.queue, 25, crash_limit=9)
    assert {(lease.crashes, lease.deliveries, lease.free) for lease in again} == {(1, 2, 0)}


async def test_a_lease_that_was_found_and_then_settled_is_stale(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a", "b"))
    held = {lease.id: lease for lease in await claim(store.queue, 2, holder="process1")}
    found = {lease.id: lease for lease in await all_held(holdings(store.queue), "process1")}
    await done(store.queue, Ack(held["a"]))
    assert await settle(store.queue, Release(found["a"], crashed=True)) is Settled.STALE
    assert await settle(store.queue, Release(found["b"], crashed=True)) is Settled.DONE
    assert await settle(store.queue, Ack(held["b"])) is Settled.STALE
    assert await where(store.queue) == {"ready": 1}


async def test_a_lapsed_lease_is_found_until_somebody_reclaims_it(store: StoreUnderTest) -> None:
    reader = holdings(store.queue)
    await push(store.queue, *jobs("a"))
    await claim_one(store.queue, lease=SHORT, holder="process1")
    await lapsed(store.queue)
    (found,) = await all_held(reader, "process1")
    await claim_one(store.queue, holder="process2")
    assert await all_held(reader, "process1") == []
    assert await settle(store.queue, Release(found, crashed=True)) is Settled.STALE


async def test_a_name_that_is_no_holder_is_refused_before_anything_is_sent(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a"))
    for holder in FOREIGN:
        with pytest.raises(InvalidOption):
            await store.queue.claim([Q], limit=1, lease=60, wait=0, holder=holder)
        with pytest.raises(InvalidOption):
            await holdings(store.queue).held_by(Q, holder)
    assert await where(store.queue) == {"ready": 1}


async def test_a_page_or_a_cursor_that_cannot_be_is_refused(store: StoreUnderTest) -> None:
    reader = holdings(store.queue)
    wrongs: list[dict[str, Any]] = [{"limit": 0}, {"cursor": "not one"}, {"cursor": ""}]
    for wrong in wrongs:
        with pytest.raises(InvalidOption):
            await reader.held_by(Q, "process1", **wrong)

"""A batch grows from inside its members, as long as their leases are current (P3)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
from typing import Any

import msgspec
import pytest

from tenure.compositions import START, Gate, JobNode, Kind, Node, When
from tenure.errors import InvalidOption
from tenure.naming import new_token
from tenure.queue import Ack, Fail
from tenure.testing.contract.composing import batch, begun, chain, composer, member, over, ran, tally
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    claim,
    claim_one,
    done,
    ids,
    job,
    lapsed,
    pushed_and_claimed,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


def more(count: int, **options: Any) -> list[JobNode]:
    """Return jobs to add, with numbers as a member's maker may choose them."""
    return [member(number, envelope=b"more-%d" % number, **options) for number in range(count)]


async def test_a_member_adds_members_that_the_batch_waits_for(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(2), kind=Kind.BATCH)
    first, second = await claim(store.queue, 2)
    assert await composer(store.queue).grow(first, more(3))
    assert await tally(store.queue) == ("active", 5, 0, 0, 0)
    await done(store.queue, Ack(first), Ack(second))
    assert await tally(store.queue) == ("active", 5, 2, 0, 0)
    leases = await claim(store.another(), 10)
    assert [(lease.id, lease.envelope, lease.composition) for lease in leases] == [
        (f"c.{number}", b"more-%d" % (number - 2), "c") for number in (2, 3, 4)
    ]
    # What was added can add in its turn.
    assert await composer(store.queue).grow(leases[0], more(1))
    await done(store.queue, *map(Ack, leases[:2]), Fail(leases[2], WHY))
    assert await ran(store.queue) == ["c.5", "c.c12", "c.c13"]
    assert await tally(store.queue) == ("completed_with_failures", 6, 5, 1, 0)
    await over(store.queue)


async def test_five_hundred_are_added_at_a_time_and_released_step_by_step(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(1, callbacks=[When.ANY]), kind=Kind.BATCH)
    lease = await claim_one(store.queue)
    assert await composer(store.queue).grow(lease, more(500))
    assert 0 < (await store.queue.counts("q")).ready <= 100
    with pytest.raises(InvalidOption):
        await composer(store.queue).grow(lease, more(501))
    assert await tally(store.queue) == ("active", 501, 0, 0, 0)
    found = await ran(store.queue, Ack(lease))
    assert found[-1] == "c.c13"
    assert sorted(found[:-1]) == sorted(f"c.{number}" for number in range(1, 501))


async def test_an_added_job_has_its_own_options(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(1), kind=Kind.BATCH)
    lease = await claim_one(store.queue)
    assert await composer(store.queue).grow(lease, [*more(1, delay=60), *more(1)])
    assert await where(store.queue) == {"ready": 1, "delayed": 1, "leased": 1}
    assert ids(await claim(store.queue, 5)) == ["c.2"]


async def test_nothing_added_changes_nothing(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(1, callbacks=[When.ANY]), kind=Kind.BATCH)
    lease = await claim_one(store.queue)
    assert await composer(store.queue).grow(lease, [])
    assert await ran(store.queue, Ack(lease)) == ["c.c13"]


async def test_jobs_that_cannot_be_counted_are_not_added(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(1), kind=Kind.BATCH)
    lease = await claim_one(store.queue)
    for wrong in (Gate(number=0), member(-3)):
        with pytest.raises(InvalidOption):
            await composer(store.queue).grow(lease, [wrong])
    assert await tally(store.queue) == ("active", 1, 0, 0, 0)


# P3
async def test_a_batch_does_not_grow_under_a_lease_that_is_stale(store: StoreUnderTest) -> None:
    flows = composer(store.queue)
    await begun(store.queue, batch(2, callbacks=[When.ANY]), kind=Kind.BATCH)
    past = await claim_one(store.queue, lease=SHORT)
    await lapsed(store.queue)
    other, present = sorted(await claim(store.queue, 2), key=lambda lease: -int(lease.id == "c.1"))
    assert present.id == past.id
    for lease in (past, msgspec.structs.replace(present, token=new_token())):
        assert not await flows.grow(lease, more(2))
    await done(store.queue, Ack(present))
    assert not await flows.grow(present, more(2))
    assert await tally(store.queue) == ("active", 2, 1, 0, 0)
    assert await ran(store.queue, Ack(other)) == ["c.c13"]


async def test_a_lease_that_lapsed_and_that_nobody_reclaimed_may_add(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(1), kind=Kind.BATCH)
    lease = await claim_one(store.queue, lease=SHORT)
    await lapsed(store.queue)
    assert await composer(store.queue).grow(lease, more(1))
    assert (await tally(store.queue))[1] == 2


async def test_a_batch_that_was_cancelled_does_not_grow(store: StoreUnderTest) -> None:
    flows = composer(store.queue)
    await begun(store.queue, batch(1), kind=Kind.BATCH)
    lease = await claim_one(store.queue)
    assert await flows.cancel_composition("q", "c")
    assert not await flows.grow(lease, more(1))
    assert await tally(store.queue) == ("cancelling", 1, 0, 0, 0)
    await done(store.queue, Ack(lease))
    assert await tally(store.queue) == ("cancelled", 1, 1, 0, 0)


async def test_a_job_that_tells_no_gate_has_nothing_to_add_to(store: StoreUnderTest) -> None:
    flows = composer(store.queue)
    assert not await flows.grow(await pushed_and_claimed(store.queue, job("x")), more(1))
    await begun(store.queue, chain(2), kind=Kind.CHAIN)
    for _ in range(2):  # one that tells a job, and one that tells nobody
        lease = await claim_one(store.queue)
        assert not await flows.grow(lease, more(1))
        await done(store.queue, Ack(lease))
    assert await tally(store.queue) == ("completed", 2, 2, 0, 0)
    assert await where(store.queue) == {"leased": 1}


async def test_a_callback_adds_nothing_to_what_has_ended(store: StoreUnderTest) -> None:
    nodes: list[Node] = [
        Gate(number=START, next=(0,)),
        member(0, -2),
        Gate(number=-2, next=(-3,)),
        member(-3, -4),
        Gate(number=-4),
    ]
    await begun(store.queue, nodes)
    await done(store.queue, Ack(await claim_one(store.queue)))
    lease = await claim_one(store.queue)
    assert not await composer(store.queue).grow(lease, more(1))
    assert await ran(store.queue, Ack(lease)) == []
    await over(store.queue)


async def test_members_that_grow_a_batch_at_the_same_time_add_all_they_have(store: StoreUnderTest) -> None:
    other = store.another()
    await begun(store.queue, batch(4, callbacks=[When.ANY]), kind=Kind.BATCH)
    leases = await claim(store.queue, 4)
    grown = await asyncio.gather(
        *(composer(queue).grow(lease, more(10)) for queue, lease in zip([store.queue, other] * 2, leases, strict=True))
    )
    assert grown == [True] * 4
    assert await tally(store.queue) == ("active", 44, 0, 0, 0)
    found = await ran(store.queue, *map(Ack, leases))
    assert sorted(found) == sorted([*(f"c.{number}" for number in range(4, 44)), "c.c13"])
    assert await tally(store.queue) == ("completed", 44, 44, 0, 0)

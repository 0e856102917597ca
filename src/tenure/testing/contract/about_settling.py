"""A settlement ends a lease once, and only the lease that is the job's current one (P3, P7)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio

import msgspec
import pytest

from tenure.naming import new_token
from tenure.queue import Ack, Drop, Fail, Lease, Release, Renewal, SetAside, Settled, Settlement
from tenure.testing.contract.steps import (
    WHY,
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    ids,
    job,
    numbered,
    push,
    pushed_and_claimed,
    renew,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


def every_kind(lease: Lease) -> dict[str, Settlement]:
    return {
        "ack": Ack(lease),
        "release": Release(lease),
        "later": Release(lease, delay=60),
        "free": Release(lease, free=True),
        "crashed": Release(lease, crashed=True),
        "fail": Fail(lease, WHY),
        "drop": Drop(lease),
        "aside": SetAside(lease, "unreadable"),
    }


KINDS = ["ack", "release", "later", "free", "crashed", "fail", "drop", "aside"]
LEFT: dict[str, dict[str, int]] = {
    "ack": {},
    "release": {"ready": 1},
    "later": {"delayed": 1},
    "free": {"ready": 1},
    "crashed": {"ready": 1},
    "fail": {"failed": 1},
    "drop": {},
    "aside": {"unreadable": 1},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_settlement_ends_the_lease_and_leaves_the_job_where_it_says(store: StoreUnderTest, kind: str) -> None:
    lease = await pushed_and_claimed(store.queue)
    assert await settle(store.queue, every_kind(lease)[kind]) is Settled.DONE
    assert await where(store.queue) == LEFT[kind]
    assert await renew(store.queue, lease) is Renewal.LOST


@pytest.mark.parametrize("kind", KINDS)
async def test_a_settled_lease_settles_nothing_more(store: StoreUnderTest, kind: str) -> None:
    lease = await pushed_and_claimed(store.queue)
    await done(store.queue, every_kind(lease)[kind])
    for settlement in every_kind(lease).values():
        assert await settle(store.another(), settlement) is Settled.STALE
    assert await where(store.queue) == LEFT[kind]


# K6, S13
@pytest.mark.parametrize("kind", KINDS)
async def test_a_settlement_with_another_token_is_stale_and_writes_nothing(store: StoreUnderTest, kind: str) -> None:
    lease = await pushed_and_claimed(store.queue)
    forged = msgspec.structs.replace(lease, token=new_token())
    assert await settle(store.queue, every_kind(forged)[kind]) is Settled.STALE
    assert await where(store.queue) == {"leased": 1}
    await done(store.queue, Ack(lease))
    await assert_empty(store.queue)


async def test_an_acknowledged_job_is_gone(store: StoreUnderTest) -> None:
    await done(store.queue, Ack(await pushed_and_claimed(store.queue)))
    await assert_empty(store.queue)


async def test_a_dropped_job_is_gone(store: StoreUnderTest) -> None:
    await done(store.queue, Drop(await pushed_and_claimed(store.queue)))
    await assert_empty(store.queue)


async def test_a_lease_named_twice_is_settled_once_by_its_first_settlement(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(3))
    a, b, c = await claim(store.queue, 3)
    answers = await store.queue.settle([Ack(a), Release(b), Fail(a, WHY), Ack(b), Fail(c, WHY), Release(c)])
    assert [answer.value for answer in answers] == ["done", "done", "stale", "stale", "done", "stale"]
    assert await where(store.queue) == {"ready": 1, "failed": 1}
    assert ids(await drained(store.queue, 1)) == [b.id]


async def test_settlements_are_answered_in_order_and_the_stale_ones_do_not_hinder_the_others(
    store: StoreUnderTest,
) -> None:
    await push(store.queue, *numbered(6))
    leases = await claim(store.queue, 6)
    await done(store.queue, Ack(leases[1]), Ack(leases[4]))
    answers = await store.queue.settle(
        [
            Fail(leases[0], WHY),
            Ack(leases[1]),
            Release(leases[2]),
            Ack(leases[3]),
            Release(leases[4]),
            Release(leases[5], delay=60),
        ]
    )
    assert [answer.value for answer in answers] == ["done", "stale", "done", "done", "stale", "done"]
    assert await where(store.queue) == {"ready": 1, "delayed": 1, "failed": 1}


async def test_leases_of_several_queues_are_settled_in_one_call(store: StoreUnderTest) -> None:
    await push(store.queue, *(job("x", queue=f"q{n}") for n in range(3)))
    leases = await claim(store.queue, 3, queues=["q0", "q1", "q2"])
    await done(store.queue, Ack(leases[1]))
    answers = await store.queue.settle([Fail(leases[2], WHY), Ack(leases[1]), Release(leases[0])])
    assert [answer.value for answer in answers] == ["done", "stale", "done"]
    assert [await where(store.queue, f"q{n}") for n in range(3)] == [{"ready": 1}, {}, {"failed": 1}]


async def test_a_lease_settles_nothing_in_another_queue(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"), job("x", queue="other"))
    lease = await claim_one(store.queue)
    await claim_one(store.queue, queues=["other"])
    assert await settle(store.queue, Ack(msgspec.structs.replace(lease, queue="other"))) is Settled.STALE
    assert await where(store.queue, "other") == {"leased": 1}


async def test_a_lease_settles_nothing_of_another_job(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"), job("y"))
    x, y = await claim(store.queue, 2)
    if x.token != y.token:
        assert await settle(store.queue, Ack(msgspec.structs.replace(x, id=y.id))) is Settled.STALE
    assert await settle(store.queue, Ack(msgspec.structs.replace(x, id="z"))) is Settled.STALE
    assert await where(store.queue) == {"leased": 2}


async def test_a_lease_is_settled_by_any_driver_that_shows_it(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    await done(store.another(), Ack(lease))
    await assert_empty(store.queue)


async def test_two_settlements_of_one_lease_at_the_same_time_have_one_winner(store: StoreUnderTest) -> None:
    other = store.another()
    for _ in range(20):
        lease = await pushed_and_claimed(store.queue)
        answers = await asyncio.gather(settle(store.queue, Ack(lease)), settle(other, Ack(lease)))
        assert sorted(answer.value for answer in answers) == ["done", "stale"]
    await assert_empty(store.queue)


async def test_many_leases_are_settled_in_one_call(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(1000))
    leases = await claim(store.queue, 500) + await claim(store.queue, 500)
    await done(store.queue, *map(Ack, leases))
    await assert_empty(store.queue)


async def test_a_call_without_settlements_changes_nothing(store: StoreUnderTest) -> None:
    await pushed_and_claimed(store.queue)
    assert list(await store.queue.settle([])) == []
    assert await where(store.queue) == {"leased": 1}


async def test_a_lease_of_the_past_settles_nothing_of_a_job_that_uses_its_id_again(store: StoreUnderTest) -> None:
    past = await pushed_and_claimed(store.queue, job("x"))
    await done(store.queue, Ack(past))
    present = await pushed_and_claimed(store.queue, job("x"))
    for settlement in every_kind(past).values():
        assert await settle(store.queue, settlement) is Settled.STALE
    assert await renew(store.queue, past) is Renewal.LOST
    assert await renew(store.queue, present) is Renewal.HELD
    # The right token, shown for an earlier life of the id, is not the current lease either.
    mixed = msgspec.structs.replace(present, incarnation=past.incarnation)
    assert await settle(store.queue, Ack(mixed)) is Settled.STALE
    await done(store.queue, Ack(present))
    await assert_empty(store.queue)


async def test_a_lease_of_an_earlier_delivery_settles_nothing(store: StoreUnderTest) -> None:
    earlier = await pushed_and_claimed(store.queue)
    await done(store.queue, Release(earlier))
    current = await claim_one(store.queue)
    for settlement in every_kind(earlier).values():
        assert await settle(store.queue, settlement) is Settled.STALE
    assert await where(store.queue) == {"leased": 1}
    await done(store.queue, Ack(current))


async def test_a_crashed_release_counts_as_a_crash_and_an_attempt(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    await done(store.queue, Release(lease, crashed=True))
    again = await claim_one(store.queue)
    assert (again.deliveries, again.attempt, again.crashes, again.free) == (2, 2, 1, 0)

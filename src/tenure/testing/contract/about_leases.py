"""A lease is held for a term: renewed by its holder, lost to the next claim after its end (P2, P3, P5, P6)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import time

import msgspec
import pytest

from tenure.naming import new_token
from tenure.queue import Ack, Fail, Lease, Release, Renewal, Settled, Settlement
from tenure.testing.contract.steps import (
    LONG,
    SHORT,
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    eventually,
    ids,
    job,
    lapsed,
    numbered,
    pass_time,
    push,
    pushed_and_claimed,
    renew,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def reclaimed(store: StoreUnderTest) -> tuple[Lease, Lease]:
    """Return the lease that a holder lost, and the one that another holder has now."""
    lost = await pushed_and_claimed(store.queue, lease=SHORT)
    await lapsed(store.queue)
    held = await claim_one(store.another())
    assert held.id == lost.id
    return lost, held


async def test_a_lapsed_lease_is_counted_as_lapsed_and_leased(store: StoreUnderTest) -> None:
    await pushed_and_claimed(store.queue, lease=SHORT)
    await lapsed(store.queue)
    counts = await store.queue.counts(Q)
    assert (counts.ready, counts.leased, counts.lapsed, counts.size) == (0, 1, 1, 1)


# K2
async def test_a_lapsed_lease_is_reclaimed_by_the_next_claim_of_anybody(store: StoreUnderTest) -> None:
    lost, held = await reclaimed(store)
    assert (held.deliveries, held.crashes, held.free, held.attempt) == (2, 1, 0, 2)
    assert held.envelope == lost.envelope
    assert held.incarnation == lost.incarnation
    assert held.token != lost.token
    assert held.fence > lost.fence
    assert await where(store.queue) == {"leased": 1}


async def test_a_lease_is_not_reclaimed_before_its_end(store: StoreUnderTest) -> None:
    before = time.monotonic()
    lease = await pushed_and_claimed(store.queue, lease=0.3)
    while not (again := await claim(store.another())):
        assert time.monotonic() < before + 10
    assert time.monotonic() - before >= 0.3
    assert time.monotonic() >= lease.deadline
    assert again[0].deliveries == 2


# K6
@pytest.mark.parametrize("settlement", [Ack, Release, lambda lease: Fail(lease, WHY)], ids=["ack", "release", "fail"])
async def test_a_settlement_after_a_reclaim_is_stale_and_writes_nothing(
    store: StoreUnderTest, settlement: "type[Ack]"
) -> None:
    lost, held = await reclaimed(store)
    assert await settle(store.queue, settlement(lost)) is Settled.STALE
    assert await where(store.queue) == {"leased": 1}
    assert await renew(store.queue, held) is Renewal.HELD
    await done(store.queue, Ack(held))
    await assert_empty(store.queue)


async def test_a_renewal_after_a_reclaim_is_lost_and_extends_nothing(store: StoreUnderTest) -> None:
    lost = await pushed_and_claimed(store.queue, lease=0.15)
    await lapsed(store.queue)
    await claim_one(store.another(), lease=0.15)

    async def probe() -> bool:
        assert await renew(store.queue, lost) is Renewal.LOST
        return (await store.queue.counts(Q)).lapsed == 1

    await eventually(probe, within=5, what="the second lease lapses although the first is renewed")


async def test_a_lapsed_lease_that_nobody_reclaimed_may_still_settle(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, lease=SHORT)
    await lapsed(store.queue)
    await done(store.queue, Ack(lease))
    await assert_empty(store.queue)


async def test_a_lapsed_lease_that_nobody_reclaimed_may_still_be_renewed(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, lease=1)
    await lapsed(store.queue)
    assert await renew(store.queue, lease) is Renewal.HELD
    assert await where(store.queue) == {"leased": 1}
    assert await claim(store.queue) == []
    await done(store.queue, Ack(lease))


async def test_a_lease_that_is_renewed_in_time_is_never_reclaimed(store: StoreUnderTest) -> None:
    for _ in range(10):
        lease = await pushed_and_claimed(store.queue, lease=0.5)
        if await renewed_for(1.5, store, lease):
            await done(store.queue, Ack(lease))
            await assert_empty(store.queue)
            return
        await store.queue.clear(lease.queue)
    raise AssertionError("this machine stood still for longer than the lease, ten times")


async def renewed_for(seconds: float, store: StoreUnderTest, lease: Lease) -> bool:
    """Renew for so long, and find it never claimed; False when a renewal came too late to say anything."""
    end = time.monotonic() + seconds
    before = time.monotonic()
    while before < end:
        kept = await renew(store.queue, lease) is Renewal.HELD
        other = await claim(store.another())
        now = time.monotonic()
        if now - before >= lease.length:
            await store.queue.settle([*map(Ack, other), Ack(lease)])
            return False
        assert kept
        assert other == []
        before = now
    return True


async def test_a_renewal_extends_by_the_lease_s_own_length_from_now(store: StoreUnderTest) -> None:
    short, long = job("short"), job("long")
    await push(store.queue, short)
    first = await claim_one(store.queue, lease=0.2)
    await push(store.queue, long)
    second = await claim_one(store.queue, lease=LONG)
    for _ in range(5):
        # Renewals that added up would keep the short one for seconds.
        assert list(await store.queue.renew([first, second])) == [Renewal.HELD] * 2
    begin = time.monotonic()
    await lapsed(store.queue)
    assert time.monotonic() - begin < 0.9
    assert ids(await claim(store.queue, 10)) == ["short"]


# K7
async def test_renewing_can_never_acquire(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    await done(store.queue, Ack(lease))
    assert await renew(store.queue, lease) is Renewal.LOST
    await assert_empty(store.queue)
    released = await pushed_and_claimed(store.queue)
    await done(store.queue, Release(released))
    assert await renew(store.queue, released) is Renewal.LOST
    assert await where(store.queue) == {"ready": 1}


# S13
async def test_a_renewal_with_another_token_is_lost(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, lease=0.3)
    forged = msgspec.structs.replace(lease, token=new_token())
    begin = time.monotonic()

    async def probe() -> bool:
        assert await renew(store.queue, forged) is Renewal.LOST
        return (await store.queue.counts(Q)).lapsed == 1

    await eventually(probe, within=5, what="the lease lapses although a stranger renews it")
    assert time.monotonic() - begin < 3


async def test_renewals_are_answered_in_order(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(4))
    leases = await claim(store.queue, 4)
    await done(store.queue, Ack(leases[1]), Release(leases[3]))
    answers = [Renewal.HELD, Renewal.LOST, Renewal.HELD, Renewal.LOST]
    assert list(await store.queue.renew(leases)) == answers
    assert list(await store.queue.renew(leases[::-1])) == answers[::-1]
    assert list(await store.queue.renew([leases[0], leases[0]])) == [Renewal.HELD] * 2
    assert list(await store.queue.renew([])) == []


async def test_leases_of_several_queues_are_renewed_in_one_call(store: StoreUnderTest) -> None:
    await push(store.queue, *(job("x", queue=f"q{n}") for n in range(3)))
    leases = await claim(store.queue, 3, queues=["q0", "q1", "q2"])
    await done(store.queue, Ack(leases[1]))
    mixed = [leases[2], leases[1], leases[0]]
    assert list(await store.queue.renew(mixed)) == [Renewal.HELD, Renewal.LOST, Renewal.HELD]


async def test_more_leases_than_a_worker_has_are_renewed_in_one_call(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(1000))
    leases = await claim(store.queue, 500) + await claim(store.queue, 500)
    assert list(await store.queue.renew(leases)) == [Renewal.HELD] * 1000


async def test_a_lease_is_renewed_by_any_driver_that_shows_it(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    assert await renew(store.another(), lease) is Renewal.HELD


# K2, S12
async def test_a_claim_recovers_at_most_a_hundred_lapsed_leases(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(150))
    assert len(await claim(store.queue, 150, lease=0.05)) == 150
    await lapsed(store.queue, 150)
    got = await claim(store.queue, 1)
    assert [lease.deliveries for lease in got] == [2]
    assert await where(store.queue) == {"ready": 99, "leased": 51, "lapsed": 50}
    assert len(await claim(store.queue, 200)) == 149
    assert await where(store.queue) == {"leased": 150}


async def test_recovery_takes_only_what_has_lapsed(store: StoreUnderTest) -> None:
    await push(store.queue, job("long"))
    await claim_one(store.queue, lease=LONG)
    await push(store.queue, job("short"))
    await claim_one(store.queue, lease=SHORT)
    await lapsed(store.queue)
    assert ids(await claim(store.queue, 10)) == ["short"]
    assert await where(store.queue) == {"leased": 2}


async def test_a_job_that_ended_is_not_brought_back_by_recovery(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(3))
    leases = await claim(store.queue, 3, lease=SHORT)
    await lapsed(store.queue, 3)
    await done(store.queue, Ack(leases[0]), Fail(leases[1], WHY))
    assert ids(await claim(store.another(), 10)) == [leases[2].id]
    assert await where(store.queue) == {"leased": 1, "failed": 1}


@pytest.mark.parametrize("delay", [0.0, LONG], ids=["at once", "delayed"])
async def test_a_job_given_back_before_its_lease_lapsed_is_not_recovered_too(
    store: StoreUnderTest, delay: float
) -> None:
    lease = await pushed_and_claimed(store.queue, lease=SHORT)
    await done(store.queue, Release(lease, delay=delay))
    await pass_time(store.queue, SHORT * 2)
    got = await claim(store.queue, 10)
    assert [(one.deliveries, one.crashes) for one in got] == ([] if delay else [(2, 0)])
    assert (await store.queue.counts(Q)).lapsed == 0


async def test_deliveries_and_crashes_survive_every_road(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, lease=SHORT)
    await lapsed(store.queue)
    lease = await claim_one(store.queue, crash_limit=50)
    roads: list[tuple[Settlement, tuple[int, int, int]]] = [
        (Release(lease, delay=0.03), (3, 0, 1)),
        (Release(lease, free=True), (4, 1, 1)),
        (Release(lease, crashed=True), (5, 1, 2)),
        (Release(lease, free=True, delay=0.03), (6, 2, 2)),
    ]
    for release, counters in roads:
        await done(store.queue, msgspec.structs.replace(release, lease=lease))
        lease = await claim_one(store.queue, wait=10, crash_limit=50)
        assert (lease.deliveries, lease.free, lease.crashes) == counters

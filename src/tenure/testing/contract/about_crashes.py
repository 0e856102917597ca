"""Jobs that kill their holders, or come too late or too often, are leased doomed; suspects come one by one (P4)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import pytest

from tenure.queue import MAX_DELIVERIES, Ack, Doom, Fail, Failure, Lease, Queue, Release
from tenure.testing.contract.steps import (
    LONG,
    SHORT,
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    crashed,
    done,
    failed_jobs,
    ids,
    job,
    lapsed,
    pass_time,
    push,
    pushed_and_claimed,
    suspected,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def lapse(queue: Queue, **options: int) -> Lease:
    """Claim the queue's only job and let the lease lapse."""
    lease = await claim_one(queue, lease=0.05, **options)
    await lapsed(queue)
    return lease


async def test_a_job_over_its_crash_limit_is_leased_doomed(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", envelope=b"body", crash_limit=3))
    await crashed(store.queue, 3)
    lease = await claim_one(store.queue)
    assert (lease.doomed, lease.suspect, lease.crashes, lease.deliveries) == (Doom.CRASHED, False, 3, 4)
    assert lease.envelope == b"body"


async def test_lapses_count_as_crashes(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", crash_limit=2))
    assert [(one.doomed, one.crashes) for one in [await lapse(store.queue), await lapse(store.queue)]] == [
        (None, 0),
        (None, 1),
    ]
    lease = await claim_one(store.queue)
    assert (lease.doomed, lease.crashes) == (Doom.CRASHED, 2)


async def test_a_job_s_own_crash_limit_goes_before_the_worker_s(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", crash_limit=1))
    await crashed(store.queue, 1, crash_limit=50)
    assert (await claim_one(store.queue, crash_limit=50)).doomed is Doom.CRASHED


async def test_a_job_without_a_crash_limit_takes_the_worker_s(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"))
    await crashed(store.queue, 2)
    lease = await claim_one(store.queue, crash_limit=50)
    assert (lease.doomed, lease.suspect) == (None, False)
    await done(store.queue, Release(lease, free=True))
    assert (await claim_one(store.queue, crash_limit=2)).doomed is Doom.CRASHED


async def test_plain_and_free_releases_are_no_crashes(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", crash_limit=1))
    for number in range(6):
        lease = await claim_one(store.queue)
        assert (lease.doomed, lease.suspect, lease.crashes) == (None, False, 0)
        await done(store.queue, Release(lease, free=number % 2 == 0))


async def test_a_doomed_lease_is_settled_like_any_other(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", crash_limit=1))
    await crashed(store.queue, 1)
    lease = await claim_one(store.queue)
    assert lease.doomed is Doom.CRASHED
    await done(store.queue, Fail(lease, Failure(reason="crashed")))
    assert await where(store.queue) == {"failed": 1}
    (record,) = await failed_jobs(store.queue).failed(Q)
    assert (record.failure.reason, record.attempts) == ("crashed", 2)


async def test_a_doomed_job_stays_doomed_when_its_lease_lapses(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", crash_limit=1))
    for number in range(1, 4):
        await lapse(store.queue)
        lease = await claim_one(store.queue)
        assert (lease.doomed, lease.crashes) == (Doom.CRASHED, number)
        await done(store.queue, Release(lease, free=True))


async def test_a_retry_of_a_job_that_crashed_too_often_starts_from_nothing(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", crash_limit=1))
    await crashed(store.queue, 1)
    await done(store.queue, Fail(await claim_one(store.queue), WHY))
    reader = failed_jobs(store.queue)
    await reader.retry(await reader.failed(Q))
    lease = await claim_one(store.queue)
    assert (lease.doomed, lease.suspect, lease.crashes) == (None, False, 0)
    await done(store.queue, Release(lease, crashed=True))
    assert (await claim_one(store.queue)).doomed is Doom.CRASHED


async def test_a_doomed_job_does_not_hinder_others(store: StoreUnderTest) -> None:
    await push(store.queue, job("doomed", crash_limit=1))
    await crashed(store.queue, 1)
    await push(store.queue, job("a"), job("b"))
    leases = await claim(store.queue, 10)
    assert {lease.id: lease.doomed for lease in leases} == {"doomed": Doom.CRASHED, "a": None, "b": None}


async def test_a_job_one_crash_short_of_its_limit_is_a_suspect(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", crash_limit=3))
    await crashed(store.queue, 1)
    lease = await claim_one(store.queue)
    assert (lease.suspect, lease.doomed, lease.crashes) == (False, None, 1)
    await done(store.queue, Release(lease, crashed=True))
    lease = await claim_one(store.queue)
    assert (lease.suspect, lease.doomed, lease.crashes) == (True, None, 2)
    await done(store.queue, Ack(lease))
    await assert_empty(store.queue)


async def test_a_job_that_never_crashed_is_no_suspect_however_low_its_limit(store: StoreUnderTest) -> None:
    await push(store.queue, job("a", crash_limit=1), job("b", crash_limit=1))
    leases = await claim(store.queue, 10)
    assert [(lease.id, lease.suspect) for lease in leases] == [("a", False), ("b", False)]


async def test_a_lapse_makes_a_suspect_too(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", crash_limit=2))
    await lapse(store.queue)
    assert await claim(store.queue, suspects=False) == []
    assert (await claim_one(store.queue)).suspect


async def test_no_claim_brings_more_than_one_suspect(store: StoreUnderTest) -> None:
    for name in ("a", "b", "c"):
        await suspected(store.queue, name)
        if name != "c":  # parked, so that the next one is alone in the queue
            await done(store.queue, Release(await claim_one(store.queue), delay=0.3 if name == "a" else 0.2))
    await pass_time(store.queue, 0.4)
    got = [await claim(store.queue, 10) for _ in range(4)]
    assert [[lease.suspect for lease in leases] for leases in got] == [[True], [True], [True], []]
    assert sorted(leases[0].id for leases in got[:3]) == ["a", "b", "c"]


async def test_a_process_that_holds_a_suspect_leaves_the_others(store: StoreUnderTest) -> None:
    await suspected(store.queue, "suspect")
    await push(store.queue, job("a"), job("b"))
    assert ids(await claim(store.queue, 10, suspects=False)) == ["a", "b"]
    assert await where(store.queue) == {"ready": 1, "leased": 2}
    assert await claim(store.queue, 10, suspects=False) == []
    assert [(lease.id, lease.suspect) for lease in await claim(store.another(), 10)] == [("suspect", True)]


async def test_who_is_a_suspect_is_judged_by_the_limit_of_the_claim_for_jobs_that_have_none(
    store: StoreUnderTest,
) -> None:
    await push(store.queue, job("x"))
    await crashed(store.queue, 2)
    assert await claim(store.queue, suspects=False) == []
    assert await where(store.queue) == {"ready": 1}
    assert (await claim_one(store.queue)).suspect


async def test_a_claim_that_passes_over_a_suspect_gives_each_job_once(store: StoreUnderTest) -> None:
    await suspected(store.queue, "suspect")
    await push(store.queue, *(job(f"j{number}") for number in range(5)))
    for pair in (["j0", "j1"], ["j2", "j3"], ["j4"]):
        leases = await claim(store.queue, 2, suspects=False)
        assert [(lease.id, lease.deliveries) for lease in leases] == [(name, 1) for name in pair]
    assert await where(store.queue) == {"ready": 1, "leased": 5}


async def test_a_suspect_comes_along_with_other_jobs(store: StoreUnderTest) -> None:
    await suspected(store.queue, "suspect")
    await push(store.queue, job("a"), job("b"))
    leases = await claim(store.queue, 10)
    assert sorted((lease.id, lease.suspect) for lease in leases) == [("a", False), ("b", False), ("suspect", True)]


async def test_one_suspect_is_the_most_over_all_queues_of_a_claim(store: StoreUnderTest) -> None:
    for name in ("one", "two"):
        await push(store.queue, job("x", queue=name, crash_limit=2))
        lease = await claim_one(store.queue, queues=[name])
        await done(store.queue, Release(lease, crashed=True))
    got = [await claim(store.queue, 10, queues=["one", "two"]) for _ in range(3)]
    assert [[(lease.queue, lease.suspect) for lease in leases] for leases in got] == [
        [("one", True)],
        [("two", True)],
        [],
    ]


async def test_a_suspect_that_is_given_back_stays_one(store: StoreUnderTest) -> None:
    await suspected(store.queue, "x")
    for free, delay in ((False, 0.0), (True, 0.0), (False, 0.03)):
        lease = await claim_one(store.queue, wait=5)
        assert lease.suspect
        await done(store.queue, Release(lease, free=free, delay=delay))
    await pass_time(store.queue, 0.05)
    assert await claim(store.queue, suspects=False) == []
    assert (await claim_one(store.queue)).suspect


async def test_many_suspects_do_not_hide_the_jobs_behind_them(store: StoreUnderTest) -> None:
    await push(store.queue, *(job(f"s{n:03}", crash_limit=2) for n in range(150)))
    leases = await claim(store.queue, 150)
    await done(store.queue, *(Release(lease, crashed=True) for lease in leases))
    await push(store.queue, job("plain"))
    got: list[str] = []
    for _ in range(3):
        got += ids(await claim(store.queue, 10, suspects=False))
    assert got == ["plain"]
    assert await where(store.queue) == {"ready": 150, "leased": 1}


async def test_an_expired_job_is_leased_doomed(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", expires_in=0.05), job("y", expires_in=LONG))
    await pass_time(store.queue, 0.08)
    assert [(lease.id, lease.doomed) for lease in await claim(store.queue, 10)] == [("x", Doom.EXPIRED), ("y", None)]


async def test_an_expiry_counts_from_the_push_the_delay_included(store: StoreUnderTest) -> None:
    await push(store.queue, job("late", delay=0.1, expires_in=0.05), job("early", delay=0.1, expires_in=LONG))
    await pass_time(store.queue, 0.15)
    leases = await claim(store.queue, 10)
    assert {lease.id: lease.doomed for lease in leases} == {"late": Doom.EXPIRED, "early": None}


async def test_a_job_that_expires_while_it_runs_is_settled_as_usual(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x", expires_in=0.2))
    assert lease.doomed is None
    await pass_time(store.queue, 0.25)
    await done(store.queue, Ack(lease))
    await assert_empty(store.queue)


@pytest.mark.parametrize("way", ["released", "delayed", "lapsed"])
async def test_an_expiry_holds_for_every_later_delivery(store: StoreUnderTest, way: str) -> None:
    lease = await pushed_and_claimed(store.queue, job("x", expires_in=0.2), lease=SHORT if way == "lapsed" else LONG)
    if way != "lapsed":
        await done(store.queue, Release(lease, delay=0.01 if way == "delayed" else 0.0))
    await pass_time(store.queue, 0.25)
    again = await claim_one(store.queue, wait=5)
    assert (again.deliveries, again.doomed) == (2, Doom.EXPIRED)


async def test_a_doomed_job_is_delivered_until_it_is_settled(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", expires_in=0.01))
    await pass_time(store.queue, 0.05)
    first = await claim_one(store.queue, lease=SHORT)
    await lapsed(store.queue)
    second = await claim_one(store.queue)
    assert (first.doomed, second.doomed, second.deliveries) == (Doom.EXPIRED, Doom.EXPIRED, 2)


async def test_a_job_that_is_delivered_without_end_is_doomed(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"))
    lease = await claim_one(store.queue)
    while lease.doomed is None and lease.deliveries <= MAX_DELIVERIES + 1:
        await done(store.queue, Release(lease, free=True))
        lease = await claim_one(store.queue)
    assert (lease.doomed, lease.deliveries, lease.attempt) == (Doom.DELIVERIES, MAX_DELIVERIES + 1, 1)

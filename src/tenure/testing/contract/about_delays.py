"""A delay is a floor, and a due job comes without anybody's help (P6, P8, P10)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import math
import time

import pytest

from tenure.errors import Refused
from tenure.queue import Ack, Release, Settled
from tenure.testing.contract.steps import (
    Q,
    claim,
    claim_one,
    done,
    drained,
    ids,
    job,
    pass_time,
    push,
    pushed_and_claimed,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_a_delayed_job_is_counted_and_not_handed_out(store: StoreUnderTest) -> None:
    await push(store.queue, job(delay=60))
    assert await where(store.queue) == {"delayed": 1}
    assert await claim(store.queue, 10) == []
    assert await where(store.queue) == {"delayed": 1}


@pytest.mark.parametrize("delay", [0.05, 0.15, 0.3])
async def test_a_delayed_job_is_never_early(store: StoreUnderTest, delay: float) -> None:
    before = time.monotonic()
    await push(store.queue, job(delay=delay))
    await claim_one(store.queue, wait=10)
    assert delay <= time.monotonic() - before < delay + 5


async def test_polling_claims_do_not_bring_a_delayed_job_early(store: StoreUnderTest) -> None:
    before = time.monotonic()
    await push(store.queue, job(delay=0.2))
    while not await claim(store.queue):
        assert time.monotonic() - before < 10
    assert time.monotonic() - before >= 0.2


async def test_a_very_short_delay_still_comes(store: StoreUnderTest) -> None:
    await push(store.queue, job("soon", delay=0.001), job("tiny", delay=1e-9))
    assert sorted(ids(await drained(store.queue, 2))) == ["soon", "tiny"]


async def test_a_very_long_delay_is_kept(store: StoreUnderTest) -> None:
    century = 100 * 365.25 * 86_400
    await push(store.queue, job("later", delay=century), job("now"))
    assert ids(await claim(store.queue, 10)) == ["now"]
    assert await where(store.queue) == {"delayed": 1, "leased": 1}


# S9
async def test_due_jobs_come_in_the_order_of_their_times(store: StoreUnderTest) -> None:
    await push(store.queue, job("c", delay=0.12), job("a", delay=0.04), job("b", delay=0.08))
    await pass_time(store.queue, 0.15)
    assert ids(await claim(store.queue, 10)) == ["a", "b", "c"]


async def test_a_due_job_enters_at_the_tail_of_the_ready_line(store: StoreUnderTest) -> None:
    await push(store.queue, job("delayed", delay=0.05))
    await push(store.queue, job("ready"))
    await pass_time(store.queue, 0.08)
    assert ids(await claim(store.queue, 10)) == ["ready", "delayed"]


async def test_a_claim_tells_when_the_next_delayed_job_is_due(store: StoreUnderTest) -> None:
    await push(store.queue, job(delay=500), job(delay=100), job(queue="other", delay=40))
    claimed = await store.queue.claim([Q], limit=1, lease=10, wait=0)
    assert claimed.next_due is not None
    assert 90 < claimed.next_due <= 100.01
    claimed = await store.queue.claim([Q, "other"], limit=1, lease=10, wait=0)
    assert claimed.next_due is not None
    assert 30 < claimed.next_due <= 40.01


async def test_a_claim_tells_when_the_next_lease_lapses(store: StoreUnderTest) -> None:
    await pushed_and_claimed(store.queue, lease=50)
    claimed = await store.another().claim([Q], limit=1, lease=10, wait=0)
    assert list(claimed.leases) == []
    assert claimed.next_due is not None
    assert 40 < claimed.next_due <= 50.01


async def test_an_empty_queue_has_nothing_due(store: StoreUnderTest) -> None:
    claimed = await store.queue.claim([Q, "other"], limit=1, lease=10, wait=0)
    assert (list(claimed.leases), list(claimed.unreadable), claimed.next_due) == ([], [], None)


async def test_a_release_may_be_delayed(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    before = time.monotonic()
    await done(store.queue, Release(lease, delay=0.15))
    assert await where(store.queue) == {"delayed": 1}
    assert await claim(store.queue) == []
    again = await claim_one(store.queue, wait=10)
    assert time.monotonic() - before >= 0.15
    assert (again.id, again.deliveries, again.attempt) == (lease.id, 2, 2)


# S12
async def test_a_claim_promotes_at_most_a_hundred_due_jobs(store: StoreUnderTest) -> None:
    await push(store.queue, *(job(delay=0.05) for _ in range(150)))
    await pass_time(store.queue, 0.1)
    assert len(await claim(store.queue, 200)) == 100
    assert await where(store.queue) == {"leased": 100, "delayed": 50}
    assert len(await claim(store.queue, 200)) == 50


async def test_a_backlog_of_delayed_jobs_is_not_touched_by_due_ones(store: StoreUnderTest) -> None:
    await push(store.queue, *(job(delay=60) for _ in range(30)), *(job(f"due-{n}", delay=0.05) for n in range(3)))
    await pass_time(store.queue, 0.08)
    assert sorted(ids(await claim(store.queue, 100))) == ["due-0", "due-1", "due-2"]
    assert await where(store.queue) == {"leased": 3, "delayed": 30}


def odd_durations() -> list[float]:
    return [-1.0, -86_400.0, -1e18, 1e300, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("delay", odd_durations(), ids=str)
async def test_a_delay_that_cannot_be_one_is_refused_or_kept_and_spoils_nothing(
    store: StoreUnderTest, delay: float
) -> None:
    try:
        (answer,) = await store.queue.push([job("odd", delay=delay)])
        taken = answer.outcome == "stored"
    except Refused:
        taken = False
    assert await where(store.queue) in ([{"ready": 1}, {"delayed": 1}] if taken else [{}])
    if taken and delay > 0:
        assert await where(store.queue) == {"delayed": 1}
    await store.queue.clear(Q)
    lease = await pushed_and_claimed(store.queue, job("plain"))
    try:
        released = await store.queue.settle([Release(lease, delay=delay)]) == [Settled.DONE]
    except Refused:
        released = False
    assert await where(store.queue) in ([{"ready": 1}, {"delayed": 1}] if released else [{"leased": 1}])
    if not released:
        await done(store.queue, Release(lease))
    await store.queue.clear(Q)
    await push(store.queue, job("after"))
    assert ids(await drained(store.queue, 1)) == ["after"]


@pytest.mark.parametrize("length", [*odd_durations(), 0.0], ids=str)
async def test_a_lease_that_cannot_be_one_is_refused_or_given_and_loses_no_job(
    store: StoreUnderTest, length: float
) -> None:
    await push(store.queue, job("x"))
    try:
        leases = list((await store.queue.claim([Q], limit=1, lease=length, wait=0)).leases)
    except Refused:
        leases = []
    assert (await where(store.queue)).get("leased", 0) == len(leases)
    await done(store.queue, *map(Ack, leases))
    assert ids(leases) + ids(await drained(store.queue, 1 - len(leases))) == ["x"]

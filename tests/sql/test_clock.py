"""The host's clock is the store's: it may go forward and back."""

import pathlib

import pytest

from tenure.drivers.sql import SqliteQueue
from tenure.queue import Ack, Release, Renewal, Settled
from tests.sql.conftest import Open
from tests.sql.support import Q, claim, claim_one, ids, job, numbered, push


class Hands:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self.steady = 50.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def queue(opened: Open, clock: Hands) -> SqliteQueue:
    return opened(clock=clock)


async def test_a_lease_outlives_its_length_by_no_more_when_the_clock_goes_back(
    queue: SqliteQueue, clock: Hands
) -> None:
    await push(queue, *numbered(150))
    await claim(queue, 150, lease=10)
    clock.wall -= 7200
    # Two claims repair a hundred each: from the moment they run, the leases last their length again.
    for _ in range(2):
        assert await claim(queue) == []
    clock.pass_(9.9)
    assert await claim(queue, 200) == []
    clock.pass_(0.2)
    got = await claim(queue, 200, crash_limit=50)
    got += await claim(queue, 200, crash_limit=50)
    assert len(got) == 150


async def test_fences_rise_though_the_clock_goes_back(queue: SqliteQueue, clock: Hands) -> None:
    await push(queue, job("x"))
    fences = []
    for _ in range(4):
        lease = await claim_one(queue)
        fences.append(lease.fence)
        await queue.settle([Release(lease)])
        clock.wall -= 1000
    assert fences == sorted(set(fences))


async def test_a_renewal_counts_from_now_also_after_the_clock_went_back(queue: SqliteQueue, clock: Hands) -> None:
    await push(queue, job("x"))
    lease = await claim_one(queue, lease=10)
    clock.wall -= 500
    assert list(await queue.renew([lease])) == [Renewal.HELD]
    clock.pass_(10.1)
    assert (await claim_one(queue)).deliveries == 2


async def test_a_jump_ahead_lapses_leases_early_and_fences_their_holders_off(queue: SqliteQueue, clock: Hands) -> None:
    await push(queue, job("x"))
    first = await claim_one(queue, lease=10)
    clock.wall += 3600
    second = await claim_one(queue)
    assert second.fence > first.fence
    assert list(await queue.settle([Ack(first), Ack(second)])) == [Settled.STALE, Settled.DONE]


async def test_a_holder_stops_trusting_a_lease_before_the_store_does(queue: SqliteQueue, clock: Hands) -> None:
    await push(queue, job("x"))
    lease = await claim_one(queue, lease=10)
    assert lease.deadline == clock.steady + 10
    clock.pass_(10)
    assert await claim(queue) == []  # the store gives it the microsecond that rounding up costs
    clock.pass_(0.001)
    assert ids(await claim(queue)) == ["x"]


async def test_a_delay_of_a_lifetime_is_kept(path: pathlib.Path, queue: SqliteQueue, clock: Hands) -> None:
    await push(queue, job("far", delay=1e9), job("farther", delay=1e300), job("bounded", expires_in=1e300))
    clock.pass_(1e8)
    assert ids(await claim(queue, 5)) == ["bounded"]
    assert (await queue.counts(Q)).delayed == 2


async def test_an_age_is_never_negative(queue: SqliteQueue, clock: Hands) -> None:
    await push(queue, job("x"))
    clock.wall -= 100
    assert (await queue.counts(Q)).oldest_age == 0

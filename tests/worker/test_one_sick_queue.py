"""One queue whose calls are refused, beside others: what befalls it is felt by nobody else."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tenure import Tenure
from tenure.errors import StoreRefused
from tenure.events import LeaseLost
from tenure.queue import Lease, Queue, Renewal, Settlement
from tests.support.processes import eventually_async
from tests.worker.support import heard, until, until_counts, working

LEASE = 0.6
seen: list[str] = []


@pytest.fixture(autouse=True)
def _seen() -> Iterator[None]:
    seen.clear()
    yield
    seen.clear()


async def sleeps(label: str, seconds: float) -> None:
    seen.append(f"{label} started")
    try:
        await asyncio.sleep(seconds)  # handler
    except asyncio.CancelledError:
        seen.append(f"{label} cancelled")
        raise
    seen.append(f"{label} ended")


class OneSick:
    """A driver that refuses every call about one queue, as long as it is sick; around a real one."""

    def __init__(self, inner: Queue) -> None:
        self._inner = inner
        self.sick = False
        self.refusals = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def ails(self, lease: Lease) -> bool:
        return self.sick and lease.queue == "sick"

    def check(self, queues: Sequence[str]) -> None:
        if self.sick and "sick" in queues:
            self.refusals += 1
            raise StoreRefused("WRONGTYPE", "one of the queue's keys holds something else")

    async def claim(self, queues: Sequence[str], **options: Any) -> Any:
        self.check(queues)
        return await self._inner.claim(queues, **options)

    async def settle(self, settlements: Sequence[Settlement]) -> Any:
        self.check([settlement.lease.queue for settlement in settlements])
        return await self._inner.settle(settlements)

    def keeper(self) -> Any:
        return OneSickKeeper(self, self._inner.keeper())


class OneSickKeeper:
    def __init__(self, owner: OneSick, inner: Any) -> None:
        self._owner = owner
        self._inner = inner

    def renew(self, leases: Sequence[Lease]) -> Any:
        well = [lease for lease in leases if not self._owner.ails(lease)]
        if leases and not well:
            self._owner.check(["sick"])
        answers = dict(zip((lease.id for lease in well), self._inner.renew(well), strict=True))
        return [answers.get(lease.id, Renewal.UNKNOWN) for lease in leases]

    def close(self) -> None:
        self._inner.close()


@pytest.fixture
def store(quick: Tenure, monkeypatch: pytest.MonkeyPatch) -> OneSick:
    driver = OneSick(quick.queue())
    monkeypatch.setattr(quick, "queue", lambda *_: driver)
    return driver


async def test_the_jobs_of_other_queues_are_claimed_renewed_and_settled_meanwhile(
    quick: Tenure, store: OneSick, caplog: pytest.LogCaptureFixture
) -> None:
    lost = heard(quick, LeaseLost)
    job = quick.job(sleeps)
    await job.options(queue="sick").push("held", 0.2)
    async with working(quick, queues=("sick", "default"), lease=LEASE, sleep=0.1, concurrency=20):
        await until(lambda: seen == ["held started"])
        store.sick = True
        await job.push("long", LEASE * 3)
        await until(lambda: "held ended" in seen)
        for number in range(30):
            await job.push(f"brief {number}", 0)
            await until(lambda number=number: f"brief {number} ended" in seen, 2)  # type: ignore[misc]
        await until_counts(quick, 2, leased=1, ready=0)  # all are settled but the long one
        await until(lambda: "long ended" in seen)
        await until_counts(quick, 2, leased=0)
        assert "long cancelled" not in seen
        assert [event for event in lost if event.lease.queue == "default"] == []
        assert 5 <= store.refusals < 200
        store.sick = False
        await job.options(queue="sick").push("late", 0)
        await until(lambda: "late ended" in seen)

        async def sick_is_empty() -> bool:
            counts = await quick.counts("sick")
            return counts.ready + counts.leased + counts.delayed == 0

        assert await eventually_async(sick_is_empty, 10)
    said = [record.getMessage() for record in caplog.records if record.name == "tenure.worker"]
    assert len(said) < 20, said


async def test_an_outcome_that_waits_for_a_sick_queue_holds_up_no_end(quick: Tenure, store: OneSick) -> None:
    job = quick.job(sleeps)
    await job.options(queue="sick").push("held", 0.1)
    await job.push("other", 0.1)
    async with working(quick, queues=("sick", "default"), sleep=0.1):
        await until(lambda: len(seen) == 2)
        store.sick = True
        await until_counts(quick, 5, leased=0)

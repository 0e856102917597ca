"""What reaches a lease from outside, wherever it is: in the line, running, or on its way to the store."""

import asyncio
import time

import pytest

from tenure import Tenure
from tenure.definition import define
from tenure.envelope import Envelope, encode
from tenure.options import JobDefaults
from tenure.queue import Ack, Failure, Release, Settlement
from tenure.registry import Registry
from tenure.retry import Backoff
from tenure.worker.attempt import Attempts, Surroundings
from tenure.worker.executors import Threads
from tenure.worker.held import Held, HeldLeases, Stage, Stop
from tenure.worker.line import Line
from tenure.worker.opening import Opening
from tenure.worker.orders import Orders
from tenure.worker.processes.loading import load_of
from tenure.worker.processes.pool import Processes
from tenure.worker.reports import Reports
from tenure.worker.scope import Scopes
from tenure.worker.settler import Settler
from tests.worker.leases import lease

seen: list[str] = []


async def waits() -> None:
    seen.append("start")
    try:
        await asyncio.sleep(30)  # handler
    finally:
        seen.append("stopped")


class Shelf(Settler):
    """A settler that is never run: outcomes stay where they can be seen."""

    shelved: list[Settlement]

    def put(self, held: Held, settlement: Settlement, failure: Failure | None, now: float) -> None:
        self.shelved.append(settlement)
        super().put(held, settlement, failure, now)


class Floor:
    """The parts of a worker with one slot."""

    def __init__(self, app: Tenure) -> None:
        seen.clear()
        registry = Registry()
        registry.add(define(waits, {"name": "waits"}, JobDefaults()))
        self.leases = HeldLeases()
        self.line = Line(1, self.leases)
        reports = Reports(app.events)
        settler = Shelf(app.queue(), self.leases, reports, self.line.settled)
        self.settled: list[Settlement] = []
        settler.shelved = self.settled
        self.attempts = Attempts(
            Surroundings(
                opening=Opening(registry, tries=3, timeout=None, backoff=Backoff(), unknown_limit=60),
                scopes=Scopes(app.services),
                threads=Threads(1),
                processes=Processes(lambda: load_of(app, ())),
                middleware=(),
                leases=self.leases,
                reports=reports,
                settle=settler.put,
                freed=self.line.freed,
                broke=self.broke,
                grace=0.2,
                progress=lambda *_: None,
                max_result_bytes=60_000,
                queue=app.queue(),
                connection="default",
                batches=app.composer.batches(),
            )
        )
        self.line.feeds(self.attempts.start)
        self.orders = Orders(self.leases, self.line, self.attempts, settler)
        self.defects: list[BaseException] = []

    def broke(self, defect: BaseException) -> None:
        self.defects.append(defect)

    def take(self) -> Held:
        record = encode(Envelope(v=1, id="job-1", name="waits", queue="default"))
        held = Held(lease(envelope=record), time.monotonic())
        self.leases.add(held)
        self.line.offer(held)
        return held

    async def idle(self) -> None:
        async with asyncio.timeout(2):
            await self.line.empty()
        assert self.defects == []


@pytest.fixture
async def floor(quick: Tenure) -> Floor:
    return Floor(quick)


async def test_a_lost_lease_that_waits_is_forgotten(floor: Floor) -> None:
    running, waiting = floor.take(), floor.take()
    floor.orders.told(waiting, Stop.LOST)
    assert waiting.stage is Stage.ENDED
    assert floor.leases.snapshot() == [running]
    assert floor.settled == []
    floor.orders.stop_running(0)
    await floor.idle()


@pytest.mark.parametrize(("why", "free"), [(Stop.CANCELLED, False), (Stop.LAPSED, True)])
async def test_a_lease_that_waits_is_released_when_it_is_cancelled_or_lapsed(
    floor: Floor, why: Stop, free: bool
) -> None:
    floor.take()
    waiting = floor.take()
    floor.orders.told(waiting, why)
    assert floor.settled == [Release(waiting.lease, free=free)]
    floor.orders.stop_running(0)
    await floor.idle()


async def test_a_handler_that_is_stopped_before_its_first_step_ends_all_the_same(floor: Floor) -> None:
    held = floor.take()
    floor.orders.told(held, Stop.CANCELLED)
    await floor.idle()
    assert seen == []
    assert floor.settled == [Release(held.lease)]


async def test_the_first_reason_counts(floor: Floor) -> None:
    held = floor.take()
    await asyncio.sleep(0)
    floor.orders.told(held, Stop.CANCELLED)
    floor.orders.told(held, Stop.LAPSED)
    floor.orders.told(held, Stop.CANCELLED)
    await floor.idle()
    assert seen == ["start", "stopped"]
    assert floor.settled == [Release(held.lease)]


async def test_but_a_lost_lease_is_lost_whatever_else_was_wrong(floor: Floor) -> None:
    held = floor.take()
    await asyncio.sleep(0)
    floor.orders.told(held, Stop.CANCELLED)
    floor.orders.told(held, Stop.LOST)
    await floor.idle()
    assert floor.settled == []
    assert floor.leases.snapshot() == []


async def test_what_is_being_settled_goes_its_way(floor: Floor) -> None:
    held = floor.take()
    await asyncio.sleep(0)
    floor.orders.stop_running(1)
    await floor.idle()
    for why in Stop:
        floor.orders.told(held, why)
    assert floor.settled == [Release(held.lease, free=True)]
    assert not any(isinstance(settlement, Ack) for settlement in floor.settled)

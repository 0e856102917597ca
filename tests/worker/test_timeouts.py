"""Time limits: ours are told from the handler's own, and hold against handlers that ignore them."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tenure import Tenure, current
from tenure.events import JobSucceeded
from tenure.worker import ExitReason, Worker, WorkerOptions, attempt
from tests.worker.support import drain, heard, nothing_left, only_failure, until, until_counts, working

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
    await asyncio.sleep(seconds)  # handler
    seen.append("end")


async def catches_ordinary_exceptions() -> None:
    try:
        await asyncio.sleep(30)  # handler
    except Exception:  # noqa: BLE001 - as handlers do
        seen.append("caught")


async def catches_everything() -> None:
    deadline = time.monotonic() + 3
    caught = 0
    while time.monotonic() < deadline:
        try:
            await asyncio.sleep(0.05)  # handler
        except BaseException:  # noqa: BLE001 - as handlers do
            caught += 1
    seen.append("late" if caught else "never told")


async def swallows_once_and_returns() -> str:
    try:
        await asyncio.sleep(30)  # handler
    except asyncio.CancelledError:
        return "as if nothing had happened"
    return "never"


async def cleans_up_slowly() -> None:
    try:
        await asyncio.sleep(30)  # handler
    finally:
        await asyncio.sleep(3)  # handler
        seen.append("cleaned up")


async def own_timeout() -> None:
    async with asyncio.timeout(0.02):
        await asyncio.sleep(30)  # handler


async def own_timeout_just_as_ours_nears() -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            await asyncio.sleep(30)  # handler
    seen.append("recovered")


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(30)  # handler


def blocks_in_thread() -> None:
    seen.append("start")
    release.wait(20)
    seen.append("late")


def looks_in_thread() -> None:
    deadline = time.monotonic() + 20
    while not current().cancelled and time.monotonic() < deadline:
        time.sleep(0.01)  # handler
    seen.append("saw it")


async def test_an_attempt_over_its_time_has_failed_with_that_reason(app: Tenure) -> None:
    await app.job(sleeps).options(timeout=0.1).push(30)
    await drain(app, tries=1)
    record = await only_failure(app)
    assert (record.failure.reason, record.attempts) == ("timeout", 1)
    assert "0.1 s" in record.failure.message
    assert seen == ["start"]


async def test_a_timed_out_attempt_is_tried_again(quick: Tenure) -> None:
    await quick.job(sleeps).push(30)
    await drain(quick, timeout=0.05, tries=3)
    assert seen == ["start"] * 3
    assert (await only_failure(quick)).attempts == 3


async def test_the_jobs_own_limit_counts_before_the_workers(quick: Tenure) -> None:
    await quick.job(timeout=10)(sleeps).push(0.2)
    await drain(quick, timeout=0.05)
    assert seen == ["start", "end"]
    assert await nothing_left(quick)


@pytest.mark.parametrize("handler", [catches_ordinary_exceptions, swallows_once_and_returns])
async def test_what_it_returns_after_its_time_is_no_success(quick: Tenure, handler: Any) -> None:
    succeeded = heard(quick, JobSucceeded)
    await quick.job(handler).options(timeout=0.1).push()
    await drain(quick, tries=1)
    assert (await only_failure(quick)).failure.reason == "timeout"
    assert succeeded == []


@pytest.mark.parametrize("handler", [catches_everything, cleans_up_slowly])
async def test_a_handler_that_ignores_its_end_is_abandoned_and_its_slot_is_used_again(
    app: Tenure, handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ignoring, ordinary = app.job(handler), app.job(sleeps)
    await ignoring.options(timeout=0.1).push()
    await ordinary.push(0)
    async with working(app, concurrency=1, tries=1, cancel_grace=0.2):
        await until_counts(app, failed=1)
        await until(lambda: seen == ["start", "end"], what="the next job runs")
        assert "was abandoned" in caplog.text
        await until(lambda: len(seen) == 3, what="the handler ends, late")
        await until(lambda: "its outcome is ignored" in caplog.text)
        record = await only_failure(app)
        assert (record.failure.reason, record.attempts) == ("timeout", 1)
    await until_counts(app, ready=0, leased=0, failed=1)


async def test_a_handlers_own_timeout_is_its_own_failure(quick: Tenure) -> None:
    await quick.job(own_timeout).options(timeout=30).push()
    await drain(quick, tries=1)
    failure = (await only_failure(quick)).failure
    assert (failure.reason, failure.type) == ("exception", "TimeoutError")


async def test_a_handler_may_recover_from_its_own_timeout(quick: Tenure) -> None:
    await quick.job(own_timeout_just_as_ours_nears).options(timeout=5).push()
    await drain(quick, tries=1)
    assert seen == ["recovered"]
    assert await nothing_left(quick)


async def test_a_handler_that_cancels_itself_has_failed_and_is_no_shutdown(quick: Tenure) -> None:
    await quick.job(cancels_itself).options(timeout=30).push()
    await drain(quick, tries=2)
    record = await only_failure(quick)
    assert (record.failure.reason, record.failure.type) == ("exception", "asyncio.exceptions.CancelledError")
    assert record.attempts == 2


async def test_a_thread_learns_that_its_time_is_over_and_may_end_in_order(app: Tenure) -> None:
    await app.job(looks_in_thread).options(timeout=0.1).push()
    await drain(app, tries=1)
    assert seen == ["saw it"]
    assert (await only_failure(app)).failure.reason == "timeout"


async def test_a_thread_that_does_not_end_is_replaced_and_its_late_result_ignored(
    app: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = app.job(blocks_in_thread)
    await blocking.options(timeout=0.1).push()
    async with working(app, concurrency=1, tries=1, cancel_grace=0.2):
        await until_counts(app, failed=1)
        release.set()
        await until(lambda: "late" in seen)
        await until(lambda: "its outcome is ignored" in caplog.text)
        await blocking.push()
        await until(lambda: seen.count("late") == 2, what="another thread serves the slot")
    record = await only_failure(app)
    assert (record.failure.reason, record.attempts) == ("timeout", 1)


async def test_handlers_that_pile_up_end_the_worker(
    quick: Tenure, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "MOST_ABANDONED", 2)
    blocking = quick.job(blocks_in_thread)
    for _ in range(4):
        await blocking.options(timeout=0.05).push()
    options = WorkerOptions(queues=("default",), concurrency=1, tries=1, cancel_grace=0.05)
    assert await Worker(quick, options).run() is ExitReason.ERROR
    release.set()
    assert "abandoned handlers that still run: 2" in caplog.text
    assert "more than 2 abandoned handlers still run in this worker" in caplog.text
    await until_counts(quick, failed=3, ready=1, leased=0)

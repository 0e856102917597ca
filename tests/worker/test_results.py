"""What handlers return and tell of their progress reaches who holds the handle; nothing of it stops a worker."""

import asyncio
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from tenure import JobFailed, JobState, Progress, ResultUnavailable, Tenure, current
from tenure.drivers.memory import MemoryQueue
from tenure.errors import InvalidOption, StoreRefused
from tenure.results import ProgressReport
from tests.support.processes import eventually_async
from tests.worker.support import drain, only_failure, working

go: threading.Event = threading.Event()


@pytest.fixture(autouse=True)
def _go() -> Iterator[None]:
    go.clear()
    yield
    go.set()


@dataclass(frozen=True)
class Span:
    first: date
    days: int


async def span(days: int) -> Span:
    return Span(date(2025, 6, 1), days)


def spans(days: int) -> list[Span]:
    return [Span(date(2025, 6, 1), days)]


@dataclass(frozen=True)
class Reporting:
    days: int

    async def handle(self) -> Span:
        return Span(date(2025, 6, 1), self.days)


async def far_too_long() -> str:
    return "secret" * 20_000


async def not_what_it_says() -> Span:
    return {"secret": 1}  # type: ignore[return-value] # pyright: ignore


async def fails() -> None:
    raise ValueError("no")


async def steps(count: int) -> int:
    for done in range(count):
        current().progress(done / count, f"step {done}")
    current().progress(0.5, "half way")
    await asyncio.to_thread(go.wait, 30)
    return count


def steps_in_a_thread() -> None:
    for done in range(1000):
        current().progress(done / 1000)
    current().progress(0.5, "half way")
    go.wait(30)


async def wrong() -> None:
    current().progress(7)


async def plain_steps() -> None:
    current().progress(0.5)


def equipped(app: Tenure, *handlers: Any, **options: Any) -> Tenure:
    for handler in handlers:
        app.job(result_ttl=60, **options)(handler)
    return app


def call(app: Tenure, handler: Any, *args: Any) -> Any:
    return app.call(f"{__name__}.{handler.__qualname__}", args)


async def test_the_result_is_there_as_the_annotation_says(app: Tenure) -> None:
    equipped(app, span, spans, Reporting)
    handles: Sequence[Any] = [
        await app.push(call(app, span, 1)), await app.push(call(app, spans, 2)), await app.push(Reporting(3)),
    ]  # fmt: skip
    await drain(app)
    first = date(2025, 6, 1)
    assert await asyncio.gather(*(handle.result(timeout=10) for handle in handles)) == [
        Span(first, 1), [Span(first, 2)], Span(first, 3),
    ]  # fmt: skip
    assert [await handle.status() for handle in handles] == [JobState.SUCCEEDED] * 3


async def test_whoever_waits_gets_the_result_when_it_is_there(app: Tenure) -> None:
    equipped(app, span)
    async with working(app):
        handles = await app.push_many(call(app, span, days) for days in range(200))
        found = await asyncio.gather(*(handle.result(timeout=20) for handle in handles))
    assert [one.days for one in found] == list(range(200))


@pytest.mark.parametrize("handler", [far_too_long, not_what_it_says])
async def test_a_result_that_cannot_be_kept_is_told_in_the_log_and_the_job_has_succeeded(
    quick: Tenure, handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    equipped(quick, handler)
    handle = await quick.push(call(quick, handler))
    with caplog.at_level(logging.INFO, "tenure"):
        await drain(quick)
    assert await handle.wait(timeout=10) is JobState.SUCCEEDED
    with pytest.raises(ResultUnavailable, match="could not be kept"):
        await handle.result(timeout=10)
    [line] = [record.getMessage() for record in caplog.records if "its result is not kept" in record.getMessage()]
    assert handle.id in line
    assert "secret" not in caplog.text


async def test_a_job_that_fails_for_good_is_told_with_its_reason(app: Tenure) -> None:
    equipped(app, fails, max_attempts=2)
    handle = await app.push(call(app, fails))
    await drain(app)
    with pytest.raises(JobFailed, match="exception, ValueError"):
        await handle.result(timeout=10)


async def test_what_the_outermost_middleware_returns_is_the_result(quick: Tenure) -> None:
    equipped(quick, span)

    @quick.middleware
    async def doubled(_: Any, call_next: Any) -> Span:
        found: Span = await call_next()
        return Span(found.first, found.days * 2)

    handle = await quick.push(call(quick, span, 4))
    await drain(quick)
    assert (await handle.result(timeout=10)).days == 8


@pytest.mark.parametrize("handler", [steps, steps_in_a_thread])
async def test_the_progress_of_a_running_job_is_seen_and_ends_with_it(app: Tenure, handler: Any) -> None:
    equipped(app, steps, steps_in_a_thread)
    handle = await app.push(call(app, handler, *([50] if handler is steps else [])))
    async with working(app):

        async def told() -> bool:
            return await handle.progress() == Progress(0.5, "half way")

        await eventually_async(told)
        go.set()
        assert await handle.wait(timeout=10) is JobState.SUCCEEDED
        assert await handle.progress() is None


async def test_reports_of_many_jobs_go_together_and_only_when_there_is_something_new(quick: Tenure) -> None:
    equipped(quick, steps)
    queue = quick.queue()
    assert isinstance(queue, MemoryQueue)
    report, calls = queue.report, list[int]()

    async def counted(reports: Sequence[ProgressReport]) -> Sequence[bool]:
        calls.append(len(reports))
        return await report(reports)

    queue.report = counted  # type: ignore[method-assign]
    handles = await quick.push_many(call(quick, steps, 100) for _ in range(40))
    async with working(quick):

        async def told() -> bool:
            found = await quick.operate.progress("default", [handle.id for handle in handles])
            return found == [Progress(0.5, "half way")] * 40

        await eventually_async(told)
        # 4,040 times was something told: in the first call what was there by then, in the second the rest.
        assert len(calls) <= 2
        assert sum(calls) <= 41
        before = len(calls)
        handles = await quick.push_many([call(quick, steps, 100)])
        handles *= 40
        await eventually_async(told)
        assert calls[before:] == [1]
        go.set()


async def test_a_store_that_takes_no_progress_is_asked_again_and_harms_no_job(quick: Tenure) -> None:
    equipped(quick, steps)
    queue = quick.queue()
    assert isinstance(queue, MemoryQueue)
    report, refusals = queue.report, list[int]()

    async def refusing(reports: Sequence[ProgressReport]) -> Sequence[bool]:
        if len(refusals) < 2:
            refusals.append(len(reports))
            raise StoreRefused("OOM", "memory is full")
        return await report(reports)

    queue.report = refusing  # type: ignore[method-assign]
    handle = await quick.push(call(quick, steps, 3))
    async with working(quick):

        async def told() -> bool:
            return await handle.progress() == Progress(0.5, "half way")

        await eventually_async(told)
        assert refusals == [1, 1]
        go.set()
        assert await handle.result(timeout=10) == 3


async def test_a_progress_that_is_none_is_the_handlers_own_mistake(quick: Tenure) -> None:
    equipped(quick, wrong, max_attempts=1)
    await quick.push(call(quick, wrong))
    await drain(quick)
    assert (await only_failure(quick)).failure.type.endswith(InvalidOption.__name__)


async def test_progress_without_a_time_to_live_is_dropped(quick: Tenure) -> None:
    quick.job(plain_steps)
    handle = await quick.push(call(quick, plain_steps))
    await drain(quick)
    assert await handle.status() is JobState.GONE

"""What a handler does, and what becomes of its job."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import pytest

from tenure import Discard, GiveUp, Retry, Snooze, Tenure, current
from tenure.events import (
    AttemptStarted,
    JobDiscarded,
    JobFailed,
    JobReleased,
    JobSetAside,
    JobSucceeded,
    WorkerStarted,
    WorkerStopped,
)
from tenure.worker import ExitReason, Worker
from tests.worker.support import (
    drain,
    heard,
    nothing_left,
    only_failure,
    push_raw,
    push_unknown,
    until,
    until_counts,
    working,
)

seen: list[Any] = []
pushes: list[Any] = []


@pytest.fixture(autouse=True)
def _seen() -> Iterator[None]:
    seen.clear()
    yield
    seen.clear()


async def note(value: int) -> None:
    seen.append(value)


def note_in_thread(value: int) -> None:
    seen.append((value, threading.current_thread().name))


async def fail_until(attempt: int) -> None:
    seen.append((current().attempt, current().deliveries, current().max_attempts))
    if current().attempt < attempt:
        raise ValueError("not yet")


async def always_fail() -> None:
    raise ValueError("always")


async def retry_soon() -> None:
    seen.append(current().attempt)
    raise Retry("soon", after=0)


async def snooze_twice() -> None:
    seen.append((current().attempt, current().deliveries))
    if current().deliveries < 3:
        raise Snooze(0)


async def discard() -> None:
    raise Discard


async def give_up() -> None:
    raise GiveUp("hopeless")


def returns_coroutine(value: int) -> Any:
    return note(value)


async def returns_a_lot() -> Any:
    return [object(), "x" * 10_000_000, (number for number in iter(int, 1))]


async def pushes_another(left: int) -> None:
    seen.append(left)
    if left:
        await pushes[0](left - 1)


def decorated(function: Any) -> Any:
    @wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@decorated
async def behind_a_decorator(value: int) -> None:
    seen.append(value)


@dataclass(frozen=True)
class Greet:
    name: str

    def __post_init__(self) -> None:
        if self.name == "nobody":
            raise ValueError("a name is needed")

    async def handle(self) -> None:
        seen.append(self.name)


@dataclass(frozen=True)
class GreetInThread:
    name: str

    def handle(self) -> None:
        seen.append((self.name, threading.current_thread() is threading.main_thread()))


async def test_a_job_runs_once_and_is_gone(app: Tenure) -> None:
    succeeded = heard(app, JobSucceeded)
    job = app.job(note)
    await app.push_many(job.bind(number) for number in range(120))
    assert await drain(app) is ExitReason.EMPTY
    assert sorted(seen) == list(range(120))
    assert len(succeeded) == 120
    assert await nothing_left(app)


async def test_jobs_start_in_the_order_of_their_pushes(app: Tenure) -> None:
    job = app.job(note)
    await app.push_many(job.bind(number) for number in range(60))
    await drain(app, concurrency=7)
    assert seen == list(range(60))


async def test_a_plain_function_runs_in_a_thread(app: Tenure) -> None:
    job = app.job(note_in_thread)
    await app.push_many(job.bind(number) for number in range(40))
    await drain(app)
    assert sorted(value for value, _ in seen) == list(range(40))
    assert all(name.startswith("tenure-job-") for _, name in seen)
    assert await nothing_left(app)


async def test_a_class_is_built_and_handled(app: Tenure) -> None:
    app.job(Greet)
    app.job(GreetInThread)
    await app.push(Greet("Ana"))
    await app.push(GreetInThread("Bo"))
    await drain(app)
    assert set(seen) == {"Ana", ("Bo", False)}
    assert await nothing_left(app)


async def test_a_job_that_fails_is_tried_again_and_counted(app: Tenure) -> None:
    released = heard(app, JobReleased)
    await app.job(fail_until).push(3)
    await drain(app)
    assert seen == [(1, 1, 3), (2, 2, 3), (3, 3, 3)]
    assert [(event.failure.type, event.free) for event in released] == [("ValueError", False)] * 2
    assert await nothing_left(app)


async def test_a_job_out_of_attempts_is_in_the_failed_store_with_its_reason(app: Tenure) -> None:
    failed = heard(app, JobFailed)
    handle = await app.job(always_fail).push()
    await drain(app, tries=2)
    record = await only_failure(app)
    assert (record.id, record.attempts) == (handle.id, 2)
    assert (record.failure.reason, record.failure.type, record.failure.message) == ("exception", "ValueError", "always")
    assert "in always_fail" in record.failure.traceback
    assert [event.lease.id for event in failed] == [handle.id]


# K11
async def test_the_jobs_own_limit_counts_before_the_workers(app: Tenure) -> None:
    await app.job(always_fail).options(max_attempts=4).push()
    await drain(app, tries=2)
    assert (await only_failure(app)).attempts == 4


async def test_a_retried_job_waits_for_its_backoff(app: Tenure) -> None:
    await app.job(always_fail).options(backoff=60).push()
    await drain(app)
    await until_counts(app, ready=0, delayed=1, failed=0)


async def test_retry_is_another_attempt_and_ends_at_the_limit(app: Tenure) -> None:
    await app.job(retry_soon).push()
    await drain(app, backoff=60)
    assert seen == [1, 2, 3]
    assert (await only_failure(app)).failure.type == "tenure.outcomes.Retry"


async def test_snooze_costs_no_attempt(app: Tenure) -> None:
    await app.job(snooze_twice).options(max_attempts=1).push()
    await drain(app)
    assert seen == [(1, 1), (1, 2), (1, 3)]
    assert await nothing_left(app)


async def test_discard_ends_the_job_quietly(app: Tenure) -> None:
    discarded = heard(app, JobDiscarded)
    await app.job(discard).push()
    await drain(app)
    assert len(discarded) == 1
    assert await nothing_left(app)


async def test_give_up_fails_whatever_attempts_are_left(app: Tenure) -> None:
    await app.job(give_up).push()
    await drain(app, tries=0)
    record = await only_failure(app)
    assert (record.failure.reason, record.failure.message, record.attempts) == ("gave-up", "hopeless", 1)


async def test_an_unknown_job_is_given_back_without_an_attempt_and_run_by_a_worker_that_knows_it(app: Tenure) -> None:
    released = heard(app, JobReleased)
    await push_unknown(app, "note")
    assert await drain(app) is ExitReason.EMPTY
    await until_counts(app, ready=0, delayed=1, failed=0)
    assert [(event.delay, event.free) for event in released] == [(5.0, True)]


async def test_an_unknown_job_fails_when_nobody_has_known_it_for_too_long(app: Tenure) -> None:
    await push_unknown(app)
    await drain(app, unknown_limit=0)
    assert (await only_failure(app)).failure.reason == "unknown-job"


async def test_a_record_that_cannot_be_read_is_set_aside_and_work_goes_on(app: Tenure) -> None:
    aside = heard(app, JobSetAside)
    for data in (b"", b"\x80\x04\x95\x1a", b'{"v": 1, "id"', b"[" * 50_000):
        await push_raw(app, data)
    await app.job(note).push(1)
    await drain(app)
    assert seen == [1]
    assert len(aside) == 4
    await until_counts(app, ready=0, leased=0, failed=0, unreadable=4)


async def test_arguments_that_no_longer_fit_fail_at_once_and_are_not_shown(
    app: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    app.job(name="note")(note)
    app.job(name="greet")(Greet)
    await push_raw(app, b'{"v":1,"id":"a","name":"note","queue":"default","args":["hunter2"]}', "a")
    await push_raw(app, b'{"v":1,"id":"b","name":"note","queue":"default","args":[1,"hunter2"]}', "b")
    await push_raw(app, b'{"v":1,"id":"c","name":"greet","queue":"default","args":["nobody"]}', "c")
    await drain(app)
    records = await app.failed("default")
    assert {(record.id, record.failure.reason, record.attempts) for record in records} == {
        ("a", "arguments", 1), ("b", "arguments", 1), ("c", "arguments", 1),
    }  # fmt: skip
    assert "hunter2" not in caplog.text + str([record.failure for record in records])


async def test_a_plain_function_that_returns_a_coroutine_fails_instead_of_vanishing(app: Tenure) -> None:
    await app.job(returns_coroutine).push(1)
    await drain(app, tries=1)
    assert "nobody awaits" in (await only_failure(app)).failure.message
    assert seen == []


async def test_an_async_function_behind_a_plain_wrapper_runs(quick: Tenure) -> None:
    await quick.job(name="wrapped")(behind_a_decorator).push(5)
    await drain(quick)
    assert seen == [5]


async def test_what_a_handler_returns_is_not_kept_and_does_no_harm(app: Tenure) -> None:
    await app.job(returns_a_lot).push()
    await drain(app)
    assert await nothing_left(app)


async def test_a_handler_may_push_and_the_worker_is_not_empty_before_that_ran(app: Tenure) -> None:
    job = app.job(pushes_another)
    pushes[:] = [job.push]
    await job.push(5)
    await drain(app)
    assert seen == [5, 4, 3, 2, 1, 0]


async def test_an_idle_worker_takes_a_pushed_job_at_once(app: Tenure) -> None:
    job = app.job(note)
    async with working(app, sleep=0.2) as worker:
        await until(lambda: worker.ready)
        for number in range(5):
            began = asyncio.get_running_loop().time()
            await job.push(number)
            await until(lambda: number in seen, what="the job runs")  # noqa: B023
            assert asyncio.get_running_loop().time() - began < 0.5
    await until_counts(app, ready=0, leased=0)


async def test_the_life_of_a_worker_is_told(quick: Tenure) -> None:
    started, stopped, attempts = (heard(quick, kind) for kind in (WorkerStarted, WorkerStopped, AttemptStarted))
    await quick.job(name="note")(note).push(1)
    await drain(quick, concurrency=3)
    assert [(event.queues, event.concurrency) for event in started] == [(("default",), 3)]
    assert [event.reason for event in stopped] == ["empty"]
    assert [event.name for event in attempts] == ["note"]


async def test_an_observer_that_fails_changes_nothing(quick: Tenure) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("observer")

    for kind in (AttemptStarted, JobSucceeded, WorkerStarted, WorkerStopped):
        quick.events.on(kind, broken)
    await quick.job(note).push(1)
    await drain(quick)
    assert seen == [1]
    assert await nothing_left(quick)


async def test_a_worker_runs_once(quick: Tenure) -> None:
    worker = Worker(quick)
    worker.stop()
    assert await worker.run() is ExitReason.SHUTDOWN
    with pytest.raises(ValueError, match="once"):
        await worker.run()

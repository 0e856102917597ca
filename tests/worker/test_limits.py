"""When a worker has done enough, and why it says it ended."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tenure import Tenure
from tenure.worker import ExitReason, Worker, WorkerOptions
from tenure.worker.line import Line
from tests.worker.support import drain, until, until_counts

started: list[Any] = []
seen: list[Any] = []


@pytest.fixture(autouse=True)
def _seen() -> Iterator[None]:
    started.clear()
    seen.clear()
    yield
    seen.clear()


async def note(value: int, seconds: float = 0) -> None:
    started.append(value)
    await asyncio.sleep(seconds)  # handler
    seen.append(value)


async def run(app: Tenure, **options: Any) -> ExitReason:
    return await Worker(app, WorkerOptions(queues=("default",), **options)).run()


async def test_once_runs_one_job_to_its_end(app: Tenure) -> None:
    job = app.job(note)
    await app.push_many(job.bind(number, 0.2) for number in range(3))
    assert await run(app, once=True) is ExitReason.COMPLETED
    assert seen == [0]
    await until_counts(app, ready=2, leased=0)


async def test_once_on_an_empty_queue_waits_for_one_claim_and_ends(app: Tenure) -> None:
    assert await run(app, once=True, sleep=0.05) is ExitReason.EMPTY


# W9
async def test_max_jobs_is_exact(app: Tenure) -> None:
    job = app.job(note)
    await app.push_many(job.bind(number) for number in range(50))
    assert await run(app, max_jobs=17, concurrency=5) is ExitReason.MAX_JOBS
    assert sorted(seen) == list(range(17))
    await until_counts(app, ready=33, leased=0)


async def test_max_jobs_counts_none_that_was_claimed_ahead_and_has_not_run(
    quick: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if it had been quick until now.
    monkeypatch.setattr(Line, "_pace", lambda line: setattr(line, "_ahead_limit", line.size))
    job = quick.job(note)
    await quick.push_many(job.bind(number, 0.02) for number in range(50))
    assert await run(quick, max_jobs=17, concurrency=5) is ExitReason.MAX_JOBS
    assert sorted(seen) == list(range(17))
    await until_counts(quick, ready=33, leased=0)


async def test_max_time_ends_an_idle_worker(app: Tenure) -> None:
    began = asyncio.get_running_loop().time()
    assert await run(app, max_time=0.2, sleep=30) is ExitReason.MAX_TIME
    assert asyncio.get_running_loop().time() - began < 3


async def test_what_runs_when_a_limit_is_reached_is_finished(app: Tenure) -> None:
    job = app.job(note)
    await app.push_many(job.bind(number, 0.6) for number in range(4))
    assert await run(app, max_time=0.2, concurrency=2, drain_timeout=0) is ExitReason.MAX_TIME
    assert seen == [0, 1]
    await until_counts(app, ready=2, leased=0)


# S6
async def test_empty_is_when_nothing_is_ready_and_nothing_runs(app: Tenure) -> None:
    job = app.job(note)
    await job.push(1, 0.4)
    await job.options(delay=60).push(2)
    assert await drain(app) is ExitReason.EMPTY
    assert seen == [1]
    await until_counts(app, delayed=1)


async def test_a_stop_in_the_middle_finishes_what_runs_and_gives_back_the_rest(app: Tenure) -> None:
    job = app.job(note)
    await app.push_many(job.bind(number, 0.3) for number in range(40))
    worker = Worker(app, WorkerOptions(queues=("default",), concurrency=10))
    running = asyncio.create_task(worker.run())
    await until(lambda: len(started) == 10)
    worker.stop()
    assert await running is ExitReason.SHUTDOWN
    assert len(seen) == 10
    await until_counts(app, ready=30, leased=0)


async def test_a_second_stop_gives_back_at_once_without_charging_an_attempt(app: Tenure) -> None:
    await app.job(note).push(1, 30)
    worker = Worker(app, WorkerOptions(queues=("default",)))
    running = asyncio.create_task(worker.run())
    await until(lambda: started == [1])
    worker.stop()
    worker.stop()
    assert await asyncio.wait_for(running, 5) is ExitReason.SHUTDOWN
    await until_counts(app, ready=1, leased=0)
    claimed = await app.queue().claim(["default"], limit=1, lease=5, wait=0)
    assert (claimed.leases[0].attempt, claimed.leases[0].deliveries) == (1, 2)


async def test_a_worker_whose_task_is_cancelled_gives_its_jobs_back(app: Tenure) -> None:
    await app.job(note).push(1, 30)
    running = asyncio.create_task(Worker(app, WorkerOptions(queues=("default",))).run())
    await until(lambda: started == [1])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until_counts(app, ready=1, leased=0)


async def test_a_quiet_worker_finishes_and_claims_no_more(app: Tenure) -> None:
    job = app.job(note)
    await job.push(1, 0.3)
    worker = Worker(app, WorkerOptions(queues=("default",), concurrency=4))
    running = asyncio.create_task(worker.run())
    await until(lambda: started == [1])
    worker.quiet()
    await job.push(2)
    await until(lambda: seen == [1])
    await until_counts(app, ready=1, leased=0)
    worker.stop()
    assert await running is ExitReason.SHUTDOWN
    assert seen == [1]


async def test_without_queues_a_worker_serves_those_of_its_jobs(quick: Tenure) -> None:
    await quick.job(queue="mail")(note).push(1)
    assert await Worker(quick, WorkerOptions(stop_when_empty=True)).run() is ExitReason.EMPTY
    assert seen == [1]


async def test_queues_are_served_in_the_order_given(app: Tenure) -> None:
    job = app.job(note)
    await job.options(queue="low").push(1)
    await job.options(queue="high").push(2)
    await job.options(queue="other").push(3)
    await drain(app, queues=("high", "low"), concurrency=1)
    assert seen == [2, 1]

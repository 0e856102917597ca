"""A worker that is alive and deaf ends; one that waits for a good reason does not."""

import asyncio
import logging
from typing import Any

import pytest

from tenure import Tenure
from tenure.worker import ExitReason, Worker, WorkerOptions, watch
from tests.worker.support import for_a_while, push_unknown, until, until_counts, working

seen: list[str] = []


async def sleeps(label: str, seconds: float) -> None:
    seen.append(f"{label} start")
    await asyncio.sleep(seconds)  # handler
    seen.append(f"{label} end")


async def known_to_the_newer_release_only() -> None:
    seen.append("newer")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    seen.clear()
    monkeypatch.setattr(watch, "STALLED_TICKS", 3)
    monkeypatch.setattr(watch, "TICK", 0.1)


async def test_a_claim_that_never_answers_ends_the_worker(
    quick: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def never(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(quick.queue(), "claim", never)
    async with asyncio.timeout(10):
        assert await Worker(quick, WorkerOptions(queues=("default",))).run() is ExitReason.ERROR
    assert "no claim was answered" in caplog.text


async def test_a_full_a_quiet_and_an_idle_worker_are_well(quick: Tenure, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "tenure.worker")
    await quick.job(sleeps).push("long", 1.0)
    async with working(quick, concurrency=1, sleep=0.05) as worker:
        await until(lambda: "long end" in seen)
        await for_a_while(0.6)
        worker.quiet()
        await for_a_while(0.6)
    assert caplog.records == []


async def test_a_job_claimed_ahead_of_a_long_one_is_given_back_and_not_kept_waiting(quick: Tenure) -> None:
    job = quick.job(sleeps)
    await quick.push_many(job.bind("quick", 0) for _ in range(2_000))
    await quick.push_many(job.bind("long", 2.5) for _ in range(2))
    await job.push("behind", 0)
    async with working(quick, concurrency=2):
        await until(lambda: seen.count("long start") == 2)
        await until_counts(quick, 4, ready=1, leased=2)
        assert "behind start" not in seen
        await until(lambda: "behind end" in seen)
    claimed = await quick.counts("default")
    assert (claimed.ready, claimed.leased, claimed.failed) == (0, 0, 0)


async def test_jobs_that_only_the_newer_release_knows_survive_the_older_one(app: Tenure) -> None:
    ids = [await push_unknown(app, "newer") for _ in range(20)]
    async with working(app, sleep=0.1):
        await until_counts(app, ready=0, leased=0, delayed=20, failed=0)
    app.job(name="newer")(known_to_the_newer_release_only)
    async with working(app, sleep=0.1):
        await until(lambda: len(seen) == len(ids), 15, what="the newer release runs all of them")
        await until_counts(app, ready=0, leased=0, delayed=0, failed=0)

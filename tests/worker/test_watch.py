"""A worker that is alive and deaf ends; one that waits for a good reason does not."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from tenure import Tenure
from tenure.errors import ConnectionFailed
from tenure.queue import Keeper, Lease, Renewal
from tenure.worker import ExitReason, Worker, WorkerOptions, ending, watch, worker
from tests.worker.support import for_a_while, push_unknown, until, until_counts, working

seen: list[str] = []


async def sleeps(label: str, seconds: float) -> None:
    seen.append(f"{label} start")
    await asyncio.sleep(seconds)  # handler
    seen.append(f"{label} end")


async def blocks() -> None:
    time.sleep(1.0)  # handler  # noqa: ASYNC251
    seen.append("blocked")


async def blocks_in_a_task() -> None:
    await asyncio.gather(sleeps("beside", 0), blocks())


async def known_to_the_newer_release_only() -> None:
    seen.append("newer")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    seen.clear()
    monkeypatch.setattr(watch, "TICK", 0.1)
    for module in (ending, worker):
        monkeypatch.setattr(module, "LAST_SETTLE", 0.2)


class Deaf:
    """A driver's keeper that never comes back, until it is let go."""

    def __init__(self, keeper: Keeper, let_go: threading.Event) -> None:
        self._keeper = keeper
        self._let_go = let_go

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        self._let_go.wait(30)
        return self._keeper.renew(leases)

    def close(self) -> None:
        self._keeper.close()


@pytest.mark.parametrize(
    ("call", "said"), [("claim", "no claim was answered for"), ("settle", "no settlement was answered for")]
)
async def test_a_call_that_never_answers_ends_the_worker(
    quick: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str, said: str
) -> None:
    async def never(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    await quick.job(sleeps).push("brief", 0)
    monkeypatch.setattr(quick.queue(), call, never)
    options = WorkerOptions(queues=("default",), stall_timeout=0.3, sleep=0.1)
    async with asyncio.timeout(10):
        assert await Worker(quick, options).run() is ExitReason.ERROR
    assert said in caplog.text


async def test_a_keeper_that_hangs_ends_the_worker(
    quick: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    let_go = threading.Event()
    make = quick.queue().keeper
    monkeypatch.setattr(quick.queue(), "keeper", lambda: Deaf(make(), let_go))
    await quick.job(sleeps).push("long", 30)
    try:
        async with asyncio.timeout(10):
            options = WorkerOptions(queues=("default",), stall_timeout=0.3, lease=0.9)
            assert await Worker(quick, options).run() is ExitReason.ERROR
    finally:
        let_go.set()
    assert "no lease was renewed for" in caplog.text
    # What it held is given back, for a worker that is well.
    counts = await quick.counts("default")
    assert (counts.ready, counts.leased) == (1, 0)


async def test_a_store_that_is_away_is_no_stall(quick: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise ConnectionFailed("away")

    await quick.job(sleeps).push("brief", 0.2)
    async with working(quick, stall_timeout=0.3, sleep=0.05):
        await until(lambda: "brief start" in seen)
        with monkeypatch.context() as patched:
            patched.setattr(quick.queue(), "claim", away)
            patched.setattr(quick.queue(), "settle", away)
            await for_a_while(1.2)
        await until_counts(quick, ready=0, leased=0)


async def test_a_full_a_quiet_and_an_idle_worker_are_well(quick: Tenure, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "tenure.worker")
    await quick.job(sleeps).push("long", 1.0)
    async with working(quick, concurrency=1, sleep=0.05, stall_timeout=0.3) as worker:
        await until(lambda: "long end" in seen)
        await for_a_while(0.6)
        worker.quiet()
        await for_a_while(0.6)
    assert caplog.records == []


@pytest.mark.parametrize("job", [blocks, blocks_in_a_task])
async def test_who_blocks_the_loop_is_named(
    quick: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, job: Any
) -> None:
    if job is blocks_in_a_task and sys.version_info < (3, 12):
        pytest.skip("Python 3.11 does not show a task's context")
    monkeypatch.setattr(watch, "BLOCKED_SECONDS", 0.3)
    pushed = await quick.job(name="culprit")(job).push()
    async with working(quick, lease=0.6):
        await until(lambda: "blocked" in seen)
        await until(lambda: "the event loop turns again" in caplog.text)
    assert f"job {pushed.id} (culprit) has blocked the event loop for" in caplog.text


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

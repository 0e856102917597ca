"""Handlers that end, cut off or confuse their process: each costs its own job an attempt, and nothing else."""

import os
import pathlib
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tenure import Tenure
from tenure.context import Current
from tenure.queue import Fail, Failure, Lease
from tenure.surroundings import CallNext
from tests.support.processes import alive
from tests.worker import apart
from tests.worker.program import Journal
from tests.worker.support import drain, nothing_left, only_failure, until, until_counts, working


@pytest.fixture
async def app(namespace: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tenure]:
    monkeypatch.setenv("TENURE_TEST_JOURNAL", str(tmp_path / "journal"))
    made = apart.build("memory://", namespace)
    monkeypatch.setattr(apart, "app", made)
    yield made
    await made.aclose()


@pytest.fixture
def journal(tmp_path: pathlib.Path) -> Journal:
    return Journal(tmp_path / "journal")


async def push(app: Tenure, name: str, *args: Any, **options: Any) -> str:
    return (await app.push(app.call(name, args), **options)).id


CRASHES = {
    "exits": "ended with exit code 3",
    "dereferences_null": "ended with SIGSEGV",
    "kills_itself": "ended with SIGKILL",
    "hangs_up": "ended with SIGKILL",
    "talks_nonsense": "sent its worker what is no message",
    "talks_without_end": "sent its worker what is no message",
    "closes_everything": "ended with exit code 70",
    "closes_and_opens_another": "ended with exit code 70",
}


async def test_the_death_of_a_process_is_a_crash_of_its_job_alone(
    app: Tenure, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    identities = {job: await push(app, job) for job in CRASHES}
    for number in range(4):
        await push(app, "tells", f"{number}")
    async with working(app, concurrency=3, tries=1):
        await until_counts(app, timeout=30, failed=len(CRASHES), ready=0, leased=0)
    assert {record.id for record in await app.failed("default")} == set(identities.values())
    assert {record.failure.reason for record in await app.failed("default")} == {"crashed"}
    for job, how in CRASHES.items():
        assert f"job {identities[job]} ({job}) crashed: its process {how} on attempt 1" in caplog.text
    assert [line["attempt"] for line in journal.lines("ran")] == [1] * 4
    assert (journal.path.parent / "journal.other").read_bytes() == b"", "nothing was said to what is no worker"


async def test_a_job_that_takes_down_its_process_fails_at_its_crash_limit(app: Tenure) -> None:
    await push(app, "exits")
    async with working(app, concurrency=2, tries=2):
        await until_counts(app, failed=1)
    record = await only_failure(app)
    assert (record.attempts, record.failure.reason) == (2, "crashed")
    assert record.failure.message == "its process ended with exit code 3; it has crashed 2 times, which is its limit"


async def test_what_a_handler_does_beside_its_work_disturbs_nobody(app: Tenure, journal: Journal) -> None:
    beside = ["forks_and_both_return", "forks_and_leaves", "forks_a_pool", "prints_to_everything", "leaves_a_thread"]
    for job in beside:
        await push(app, job)
        await push(app, "tells", job)
    await drain(app, concurrency=1)
    assert await nothing_left(app)
    assert [(line["label"][0], line["attempt"]) for line in journal.lines("ran")] == [(job, 1) for job in beside]
    assert [line["label"] for line in journal.lines("sum")] == [6]
    assert [line["label"] for line in journal.lines("terminated")] == [-signal.SIGTERM]


# -------------------------------------------------------------------------------------------------------- told to stop


async def test_over_its_time_a_process_is_killed_with_what_it_started(app: Tenure, journal: Journal) -> None:
    await push(app, "starts_another", "x", timeout=0.3)
    async with working(app, concurrency=1, tries=1):
        await until_counts(app, failed=1)
        [start] = journal.lines("start")
        assert not alive(start["pid"])
        await until(lambda: not alive(start["label"]), what="the grandchild is gone")
    failure = (await only_failure(app)).failure
    assert (failure.reason, failure.message) == ("timeout", "it ran longer than its timeout of 0.3 s")


@pytest.mark.parametrize(("job", "told"), [("looks", True), ("sleeps", False), ("sleeps_async", False)])
async def test_a_cancelled_job_may_see_it_and_is_killed_soon(
    app: Tenure, journal: Journal, job: str, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    identity = await push(app, job, "x", *([] if told else [60]))
    async with working(app, concurrency=1):
        await until(lambda: journal.lines("start"))
        await app.cancel("default", [identity])
        await until_counts(app, timeout=3, leased=0, ready=0)
        assert len(journal.lines("saw it")) == told
        assert alive(journal.lines("start")[0]["pid"]) is told, "one that answered is used again"
    assert await nothing_left(app)
    assert "abandoned" not in caplog.text


async def test_a_lost_lease_kills_the_process(app: Tenure, journal: Journal) -> None:
    leases: list[Lease] = []

    @app.middleware
    async def note_the_lease(current: Current, call_next: CallNext) -> Any:
        leases.append(current.lease)
        return await call_next()

    await push(app, "sleeps", "x", 60)
    async with working(app, concurrency=1, lease=0.6):
        await until(lambda: journal.lines("start"))
        [pid] = [line["pid"] for line in journal.lines("start")]
        os.kill(pid, signal.SIGSTOP)  # what does not even run is killed as well
        await app.queue().settle([Fail(lease, Failure(reason="exception")) for lease in leases])
        await until(lambda: not alive(pid), what="the process is gone")


async def test_at_the_end_of_the_drain_time_a_process_is_killed_and_its_job_given_back_free(
    app: Tenure, journal: Journal
) -> None:
    await push(app, "sleeps", "long", 60)
    await push(app, "sleeps", "short", 0.5)
    async with working(app, concurrency=2, drain_timeout=20) as worker:
        await until(lambda: len(journal.lines("start")) == 2)
        worker.stop()
        await until(lambda: journal.lines("end"), what="what ends within the drain time has its time")
    assert not any(alive(line["pid"]) for line in journal.lines("start"))
    [lease] = (await app.queue().claim(["default"], limit=2, lease=1, wait=0)).leases
    assert (lease.attempt, lease.deliveries, lease.crashes) == (1, 2, 0)

"""Jobs in processes of their own: what a handler finds there, and what comes out of it."""

import os
import pathlib
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import date
from typing import Any, cast

import pytest

from tenure import ConfigurationError, JobState, Progress, ResultUnavailable, Snooze, Tenure, correlated
from tenure.call import Registered
from tenure.context import Current
from tenure.definition import JobDefinition
from tenure.surroundings import CallNext
from tenure.worker import HandlerRaised, Worker, WorkerOptions, decide
from tenure.worker.judgement import NoWireForm
from tenure.worker.processes import pool
from tests.support.processes import alive, eventually_async
from tests.worker import apart
from tests.worker.program import Journal
from tests.worker.support import drain, nothing_left, only_failure, until, until_counts, working
from tests.worker.toxic import ERRORS


@pytest.fixture
async def app(namespace: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tenure]:
    monkeypatch.setenv("TENURE_TEST_JOURNAL", str(tmp_path / "journal"))
    made = apart.build("memory://", namespace)
    monkeypatch.setattr(apart, "app", made)  # where a process of its own looks for one
    yield made
    await made.aclose()


@pytest.fixture
def journal(tmp_path: pathlib.Path) -> Journal:
    return Journal(tmp_path / "journal")


async def push(app: Tenure, name: str, *args: Any, **options: Any) -> str:
    return (await app.push(app.call(name, args), **options)).id


async def test_handlers_run_elsewhere_one_after_the_other_in_one_process(app: Tenure, journal: Journal) -> None:
    await push(app, "tells", "plain", meta={"who": "me"}, max_attempts=7)
    await push(app, "tells_async", "asynchronous")
    await push(app, "runs_a_loop_of_its_own")
    await drain(app, concurrency=1)
    assert await nothing_left(app)
    first, second = journal.lines("ran")
    assert (first["label"], first["attempt"]) == (["plain", "me", 7, "tells", False], 1)
    assert first["fence"] > 0
    assert second["label"] == ["asynchronous", True]
    assert first["pid"] == second["pid"] != os.getpid()


async def test_a_handler_knows_its_connection_and_what_it_belongs_to(app: Tenure, journal: Journal) -> None:
    with correlated("request-1"):
        await push(app, "knows")
    await drain(app)
    [line] = journal.lines("knew")
    assert line["label"] == ["request-1", "default"]


async def test_as_many_processes_work_as_jobs_run_and_end_with_the_worker(app: Tenure, journal: Journal) -> None:
    for _ in range(6):
        await push(app, "meets", 3)
    await drain(app, concurrency=3)
    assert await nothing_left(app)
    pids = {line["pid"] for line in journal.lines("start")}
    assert len(pids) == 3
    assert not any(alive(pid) for pid in pids)


async def test_services_are_made_in_the_process_and_closed_after_each_attempt(
    app: Tenure, journal: Journal, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_TEST_LIVES", str(tmp_path / "lives"))
    await app.push(apart.Told(date(2030, 1, 1)))
    await push(app, "asks")
    await drain(app, concurrency=1)
    assert [line["what"] for line in journal.lines()] == ["opened", "ran", "closed"] * 2
    assert [line["label"] for line in journal.lines("ran")] == [["Opened", "Database"], "Opened"]
    [process] = {line["pid"] for line in journal.lines()}
    lived = (tmp_path / "lives").read_text().split()
    assert sorted(lived) == sorted(map(str, [process, os.getpid()])), "both have lived the lifespan to its end"


async def test_a_result_comes_out_as_its_annotation_says(app: Tenure) -> None:
    seen: list[Any] = []

    @app.middleware
    async def see(current: Current, call_next: CallNext) -> Any:
        seen.append(await call_next())
        return seen[-1]

    await app.push(apart.Told(date(2030, 1, 1)))
    for kind in ("nothing", "a list", "an object", "far too much"):
        await push(app, "returns", kind)
    await drain(app, concurrency=1)
    assert seen[:3] == [date(2030, 1, 2), None, [1, "two"]]
    assert all(isinstance(value, NoWireForm) for value in seen[3:])
    assert "over the limit" in repr(seen[4])
    assert await nothing_left(app), "a result that nobody keeps is no reason to fail"


async def test_decisions_are_heard(app: Tenure, journal: Journal) -> None:
    caught: list[BaseException] = []

    @app.middleware
    async def see(current: Current, call_next: CallNext) -> Any:
        try:
            return await call_next()
        except Exception as error:
            caught.append(error)
            raise

    await push(app, "decides", "once")
    await push(app, "decides", "never")
    await drain(app, concurrency=1)
    assert [line["attempt"] for line in journal.lines("ran") if line["label"] == "once"] == [1, 2, 2]
    failure = (await only_failure(app)).failure
    assert (failure.reason, failure.type, failure.message) == ("gave-up", "tenure.outcomes.GiveUp", "hopeless")
    assert "in decides" in failure.traceback
    assert any(isinstance(error, Snooze) for error in caught)


@pytest.mark.parametrize("job", ["raises", "raises_async"])
async def test_whatever_a_handler_raises_is_a_failure_as_data(app: Tenure, job: str) -> None:
    kinds = [kind for kind in ERRORS if kind != "a text of 100 MB" or job == "raises"]
    for kind in kinds:
        await push(app, job, kind)
    await drain(app, concurrency=1, tries=1)
    failures = [record.failure for record in await app.failed("default")]
    assert len(failures) == len(kinds)
    assert {failure.reason for failure in failures} == {"exception"}
    assert all(len(failure.message) <= 1_000 and f"in {job}" in failure.traceback for failure in failures)
    assert {"SystemExit", "KeyboardInterrupt", "ExceptionGroup"} <= {failure.type for failure in failures}


async def test_the_policies_of_a_job_judge_what_it_raised_there(app: Tenure) -> None:
    await push(app, "picky", "a KeyError")
    await drain(app, tries=3)
    record = await only_failure(app)
    assert (record.attempts, record.failure.reason, record.failure.type) == (1, "gave-up", "KeyError")


async def test_middleware_meets_what_was_raised_as_data(app: Tenure) -> None:
    @app.middleware
    async def wraps(current: Current, call_next: CallNext) -> Any:
        try:
            return await call_next()
        except HandlerRaised as error:
            raise ConnectionError("its own") from error

    await push(app, "raises", "StopIteration")
    await drain(app, tries=1)
    failure = (await only_failure(app)).failure
    assert (failure.type, failure.message) == ("ConnectionError", "its own")
    assert "in raises" in failure.traceback


# ----------------------------------------------------------------------------------------------------- the processes


async def test_a_process_that_is_idle_for_long_is_ended_in_order(
    app: Tenure, journal: Journal, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_TEST_LIVES", str(tmp_path / "lives"))
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.3)
    async with working(app, concurrency=2):
        await push(app, "tells", "first")
        await until(lambda: journal.lines("ran"))
        pid = journal.lines("ran")[0]["pid"]
        await until(lambda: not alive(pid), what="the idle process ends")
        assert (tmp_path / "lives").read_text().split() == [str(pid)]
        await push(app, "tells", "second")
        await until(lambda: len(journal.lines("ran")) == 2)
        assert journal.lines("ran")[1]["pid"] != pid


async def test_a_process_that_dies_while_idle_costs_no_job_an_attempt(app: Tenure, journal: Journal) -> None:
    async with working(app, concurrency=1):
        await push(app, "tells", "first")
        await until(lambda: journal.lines("ran"))
        pid = journal.lines("ran")[0]["pid"]
        await until_counts(app, leased=0)
        os.kill(pid, 9)
        await push(app, "tells", "second")
        await until(lambda: len(journal.lines("ran")) == 2)
        await until_counts(app, leased=0)
    second = journal.lines("ran")[1]
    assert second["attempt"] == 1
    assert second["pid"] != pid
    assert await nothing_left(app)


async def test_a_job_for_which_no_process_starts_is_given_back_free(
    app: Tenure, journal: Journal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(app, concurrency=1):
        await push(app, "tells", "first")
        await until(lambda: journal.lines("ran"))
        monkeypatch.setenv("TENURE_TEST_UNLOADABLE", "1")
        monkeypatch.setattr(decide, "UNSTARTED_DELAY", 0.2)
        os.kill(journal.lines("ran")[0]["pid"], 9)
        await push(app, "tells", "second")
        await until(lambda: "a job is given back" in caplog.text)
    assert "RuntimeError while it loaded the application" in caplog.text
    assert len(journal.lines("ran")) == 1
    [lease] = (await app.queue().claim(["default"], limit=1, lease=1, wait=5)).leases
    assert (lease.attempt, lease.crashes) == (1, 0)


async def test_a_worker_whose_processes_cannot_load_the_application_ends_before_it_claims(
    app: Tenure, monkeypatch: pytest.MonkeyPatch, namespace: str
) -> None:
    await push(app, "tells", "kept")

    async def refused(problem: str) -> None:
        with pytest.raises(ConfigurationError, match=problem):
            await Worker(apart.app, WorkerOptions(queues=("default",))).run()

    with monkeypatch.context() as patch:
        patch.setenv("TENURE_TEST_UNLOADABLE", "1")
        await refused("RuntimeError while it loaded")
    with monkeypatch.context() as patch:
        patch.setattr(apart, "app", apart.build("memory://", namespace))
        apart.app.job(name="later", executor="process")(apart.exits)
        await refused("later: not registered when")
    with monkeypatch.context() as patch:
        patch.setattr(apart.exits, "__module__", "__main__")
        patch.setattr(apart, "app", Tenure("memory://"))
        apart.app.job(name="exits", executor="process")(apart.exits)
        await refused("defined in __main__")
    with monkeypatch.context() as patch:
        patch.delattr(apart, "app")
        with pytest.raises(ConfigurationError, match="no global variable"):
            await Worker(app, WorkerOptions()).run()
    assert (await app.counts("default")).ready == 1


def test_a_child_process_loads_what_it_is_told_to_prepare_first(tmp_path: pathlib.Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import logging\n"
        "from tenure import Tenure\n"
        "app = Tenure('sqlite:///jobs.db')\n"
        "logging.getLogger('shop').info('is imported')\n"
        "@app.job(executor='process')\n"
        "def order() -> None:\n"
        "    logging.getLogger('shop').info('is run')\n"
        "order.push_sync()\n"
    )
    command = [sys.executable, "-m", "tenure", "worker", "shop:app", "--stop-when-empty", "--log-format", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr.count('"logger": "shop", "message": "is imported"') == 2, "in the worker, and in the process"
    assert '"logger": "shop", "message": "is run"' in done.stderr


async def test_no_process_is_started_for_an_application_without_such_jobs(quick: Tenure) -> None:
    async def nothing() -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "Process", None)
        await drain(quick)
    await eventually_async(lambda: nothing_left(quick))


async def test_results_and_progress_come_out_of_a_process(app: Tenure, tmp_path: pathlib.Path) -> None:
    go = tmp_path / "go"
    handle = await app.push(app.call("steps", [str(go)]), result_ttl=60)
    unkept = await app.push(app.call("returns", ["an object"]), result_ttl=60)
    plain = await app.push(app.call("steps", [str(go)]))
    async with working(app, concurrency=3):

        async def told() -> bool:
            return await handle.progress() == Progress(0.5, "half way")

        await eventually_async(told)
        assert await plain.progress() is None
        go.touch()
        assert await handle.result(timeout=20) == date(2030, 1, 1)
        assert await handle.progress() is None
        assert await plain.wait(timeout=20) is JobState.GONE
        with pytest.raises(ResultUnavailable, match="could not be kept"):
            await unkept.result(timeout=20)


async def test_a_result_is_passed_on_from_process_to_process(app: Tenure, journal: Journal) -> None:
    doubles = Registered()
    doubles.definition = the(app, "doubles")
    doubled: Any = app.call("doubles", [3])
    handle = await app.push(doubled.then(doubles).then(doubles), result_ttl=60)
    stuck = await app.push(app.call("returns", ["an object"]).then(cast("Any", doubles)))
    async with working(app, concurrency=1):
        assert await handle.result(timeout=30) == 24
        assert await stuck.wait(timeout=30) is JobState.CANCELLED
    assert [line["label"] for line in journal.lines("ran")] == [[3, True], [6, True], [12, True]]
    assert (await only_failure(app)).failure.reason == "result"


async def test_a_batch_is_not_added_to_from_another_process(app: Tenure) -> None:
    handle = await app.batch([app.call("adds").options(max_attempts=1)]).push()
    async with working(app, concurrency=1):
        await handle.wait(timeout=30)
    failure = (await only_failure(app)).failure
    assert failure.type == "tenure.errors.WrongContext"
    assert "executor='thread'" in failure.message


def the(app: Tenure, name: str) -> JobDefinition:
    found = app.registry.get(name)
    assert found is not None
    return found

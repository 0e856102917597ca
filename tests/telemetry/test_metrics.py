"""Metrics: what a worker counts, what the store tells, that both parse, and that a dashboard names only what exists."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tenure import Discard, Retry, Snooze, Tenure
from tenure.events import AttemptStarted, JobSucceeded
from tenure.ext.prometheus import StoreMetrics, WorkerMetrics
from tenure.ext.prometheus.crew import TallyCollector
from tenure.ext.prometheus.worker import UNKNOWN
from tenure.operations import QueueOverview
from tenure.outgoing import OutboxLag
from tenure.queue import Counts
from tenure.worker import Worker, WorkerOptions
from tenure.worker.supervisor import Tally
from tenure.worker.vitals import Vitals
from tests.cli.conftest import Program
from tests.support import processes
from tests.support.servers import ROOT
from tests.telemetry.asking import answering, ask, samples, value
from tests.worker.support import push_raw, push_unknown

SECRET = "hunter2-canary"


async def works(text: str) -> None:
    await asyncio.sleep(0.01)  # handler


def works_in_a_thread(text: str) -> None:
    time.sleep(0.01)  # handler


async def fails(text: str) -> None:
    raise LookupError(text)


async def fails_once(text: str) -> None:
    raise Retry(text, after=60)


async def discards(text: str) -> None:
    raise Discard(text)


async def snoozes(text: str) -> None:
    raise Snooze(60, text)


EXPECTED = {
    "works": "succeeded",
    "works_in_a_thread": "succeeded",
    "fails": "failed",
    "fails_once": "retried",
    "discards": "discarded",
    "snoozes": "released",
}


async def test_each_outcome_is_counted_by_queue_and_name(quick: Tenure) -> None:
    app = quick
    for function in (works, works_in_a_thread, fails, fails_once, discards, snoozes):
        app.job(name=function.__name__, max_attempts=1 if function is fails else 3)(function)
        await app.push(app.call(function.__name__, [SECRET]))
    for number in range(3):
        await push_unknown(app, f"nobody.knows.{SECRET}.{number}")
        await push_raw(app, b"not an envelope")
    worker = Worker(app, WorkerOptions(queues=("default",), stop_when_empty=True))
    with WorkerMetrics(app, worker.vitals) as metrics:
        await worker.run()
        text = metrics.text().decode()
    assert SECRET not in text
    found = samples(text)
    for name, outcome in EXPECTED.items():
        assert value(found, "tenure_jobs_total", queue="default", name=name, outcome=outcome) == 1
    assert value(found, "tenure_jobs_total", queue="default", name=UNKNOWN, outcome="released") == 3
    assert value(found, "tenure_jobs_total", queue="default", name=UNKNOWN, outcome="set_aside") == 3
    assert {dict(labels)["name"] for name, labels in found if name == "tenure_jobs_total"} == {*EXPECTED, UNKNOWN}
    assert value(found, "tenure_run_seconds_count", queue="default", name="works") == 1
    assert 0.01 <= value(found, "tenure_run_seconds_sum", queue="default", name="works_in_a_thread") < 10
    assert value(found, "tenure_wait_seconds_count", queue="default") == len(EXPECTED)
    assert value(found, "tenure_claims_total") >= 1
    assert value(found, "tenure_concurrency") == 50
    assert value(found, "tenure_ready") == 1
    # Outside of the block nobody observes, so that nothing is paid for.
    assert not app.events.wants(AttemptStarted)
    assert not app.events.wants(JobSucceeded)


async def test_a_store_that_is_away_is_counted(namespace: str) -> None:
    app = Tenure("redis://127.0.0.1:1", namespace=namespace)
    worker = Worker(app, WorkerOptions(queues=("default", "other"), max_time=1.0))
    with WorkerMetrics(app, worker.vitals) as metrics:
        await worker.run()
        found = samples(metrics.text().decode())
    await app.aclose()
    assert value(found, "tenure_store_calls_failed_total", call="claim") >= 2
    assert value(found, "tenure_store_outages_total", call="claim") == 1
    assert value(found, "tenure_store_calls_failed_total", call="renew") == 0
    assert value(found, "tenure_ready") == 0


def test_a_worker_serves_them_and_the_store_s_view_is_a_command(everywhere: Program) -> None:
    tenure = everywhere
    for arguments in (["greet", '["Ana"]'], ["fail", json.dumps([SECRET])], ["greet", '["Cy"]', "--delay", "600"]):
        tenure("push", *arguments, "--app", "shop:app")
    tenure("push", "sleep", "[600]", "--app", "shop:app")
    with answering(tenure) as (worker, port):
        processes.eventually(lambda: "tenure_jobs_in_flight 1.0" in ask(port, "/metrics")[1], what="one job runs")
        processes.eventually(lambda: 'outcome="failed"' in ask(port, "/metrics")[1], what="one job has failed")
        status, text, headers = ask(port, "/metrics")
        assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert SECRET not in text
        found = samples(text)
        assert value(found, "tenure_jobs_total", queue="default", name="greet", outcome="succeeded") == 1
        assert value(found, "tenure_wait_seconds_count", queue="default") == 2
        done = tenure("metrics")
        told = samples(done.stdout)
        states = {state: value(told, "tenure_queue_jobs", queue="default", state=state) for state in STATES}
        assert states == {"ready": 0, "delayed": 1, "leased": 0, "lapsed": 0, "failed": 1, "unreadable": 0}
        assert value(told, "tenure_queue_jobs", queue="slow", state="leased") == 1
        tenure("pause", "slow")
        listed = json.loads(tenure("metrics", "--json", "-q", "slow").stdout)["metrics"]
        assert {"name": "tenure_queue_paused", "labels": {"queue": "slow"}, "value": 1.0} in listed
        worker.kill9()


STATES = ("ready", "delayed", "leased", "lapsed", "failed", "unreadable")


def test_without_the_library_probes_are_answered_and_metrics_say_what_is_missing(tenure: Program) -> None:
    tenure.write("prometheus_client.py", "raise ImportError")
    tenure.env["PYTHONPATH"] = f"{tenure.directory}:{tenure.env['PYTHONPATH']}"
    with answering(tenure) as (_, port):
        assert ask(port, "/livez")[0] == 200
        status, body, _ = ask(port, "/metrics")
        assert (status, "pip install 'tenure[prometheus]'" in body) == (501, True)
    done = tenure.process("metrics")
    assert (done.returncode, "tenure[prometheus]" in done.stderr) == (2, True)


def test_queues_are_told_of_up_to_a_thousand() -> None:
    nothing = Counts(ready=0, delayed=0, leased=0, lapsed=0, failed=0, unreadable=0, oldest_age=None)
    told = samples(StoreMetrics([QueueOverview("a", nothing, None)], known=5000).text().decode())
    assert value(told, "tenure_queues") == 5000
    assert value(told, "tenure_queue_oldest_age_seconds", queue="a") == 0
    assert not [name for name, _ in told if name == "tenure_queue_paused"]


def exposed() -> set[str]:
    """The names of all metrics that there are, and those of their samples."""
    app = Tenure("memory://")
    nothing = Counts(ready=0, delayed=0, leased=0, lapsed=0, failed=0, unreadable=0, oldest_age=None)
    waiting = OutboxLag(connection="default", queue="a", jobs=1, oldest_age=1.0)
    supervised = CollectorRegistry()
    supervised.register(TallyCollector(Tally(), 1))
    texts = (
        WorkerMetrics(app, Vitals(1)).text(),
        StoreMetrics([QueueOverview("a", nothing, False)], outbox=[waiting]).text(),
        generate_latest(supervised),
    )
    declared = [line.split()[2:4] for text in texts for line in text.decode().splitlines() if "# TYPE" in line]
    suffixes = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
    return {f"{name}{suffix}" for name, kind in declared for suffix in suffixes[kind]}


def expressions(board: Any) -> Iterator[str]:
    if isinstance(board, dict):
        yield from (text for key, text in board.items() if key in {"expr", "query"} and isinstance(text, str))
        board = list(board.values())
    if isinstance(board, list):
        for part in board:
            yield from expressions(part)


def test_the_dashboard_and_the_page_name_only_metrics_that_exist_and_the_page_names_all() -> None:
    known = exposed()
    board = json.loads((ROOT / "docs/grafana.json").read_text())
    named = {name for text in expressions(board) for name in re.findall(r"\b(?:tenure|process)_\w+", text)}
    assert len(named) > 15
    assert named - known == set()
    page = (ROOT / "docs/metrics.md").read_text()
    rows = set(re.findall(r"^\| `(tenure_\w+)`", page, re.MULTILINE))
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in known if name.startswith("tenure_")}
    assert {name for name in families if not name.endswith("_created")} == rows
    assert set(re.findall(r"\btenure_\w+", page)) <= known | families


@pytest.mark.parametrize("url", ["valkey", "sqlite"])
def test_the_store_s_view_costs_the_same_whatever_waits(
    url: str, request: pytest.FixtureRequest, namespace: str, tmp_path: Path
) -> None:
    """A slice of what docs/benchmarks.md has for a million jobs: the cost must not grow with the backlog."""
    where = request.getfixturevalue("valkey").url if url == "valkey" else f"sqlite:///{tmp_path / 'jobs.db'}"
    app = Tenure(where, namespace=namespace)
    app.job(name="works")(works)

    async def scraped() -> float:
        times = []
        for _ in range(20):
            begun = time.perf_counter()
            (await StoreMetrics.of(app, queues=["default"])).text()
            times.append(time.perf_counter() - begun)
        return min(times)

    async def run() -> tuple[float, float]:
        try:
            await app.push(app.call("works", ["x"]))
            few = await scraped()
            call = app.call("works", ["x"])
            await app.push_many([call] * 20_000)
            return few, await scraped()
        finally:
            await app.clear("default")
            await app.aclose()

    few, many = asyncio.run(run())
    assert many < 0.005
    assert many < few * 5

"""Spans of pushes, claims, runs and settlements: their names, parents and links, and what they never tell."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.semconv._incubating.attributes import error_attributes, messaging_attributes
from opentelemetry.trace import SpanContext

from tenure import Discard, Snooze, Tenure, current
from tenure.envelope import decode
from tenure.errors import ConnectionFailed, InvalidOption, MissingExtra, PayloadTooLarge, PushIncomplete
from tenure.ext.otel import conventions, instrument
from tests.support.servers import ROOT
from tests.telemetry.spans import Recorded, dumped
from tests.worker.support import drain, for_a_while, working

SECRET = "hunter2-canary"
GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

seen: list[Any] = []


@pytest.fixture
def recorded() -> Recorded:
    seen.clear()
    return Recorded()


@pytest.fixture
def traced(quick: Tenure, recorded: Recorded) -> Tenure:
    """An application in memory, with jobs of each kind."""
    instrument(quick, provider=recorded.provider)
    for function in (notes, notes_in_a_thread, fails, discards, snoozes):
        quick.job(name=function.__name__, max_attempts=1)(function)
    return quick


def here() -> SpanContext:
    return trace.get_current_span().get_span_context()


async def notes(text: str) -> None:
    seen.append((f"{here().span_id:016x}", dict(current().meta)))
    await asyncio.sleep(0)


def notes_in_a_thread(text: str) -> None:
    seen.append((f"{here().span_id:016x}", dict(current().meta)))


async def fails(text: str) -> None:
    raise LookupError(text)


async def discards(text: str) -> None:
    raise Discard(text)


async def snoozes(text: str) -> None:
    raise Snooze(60, text)


def test_the_names_are_those_of_the_conventions() -> None:
    ours = {name: value for name, value in vars(conventions).items() if name.isupper()}
    theirs = {
        value
        for module in (messaging_attributes, error_attributes)
        for name, value in vars(module).items()
        if name.isupper()
    }
    for name in ("SYSTEM", "OPERATION_NAME", "OPERATION_TYPE", "DESTINATION_NAME", "MESSAGE_ID", "MESSAGE_COUNT"):
        assert ours[name] in theirs
    assert ours["ERROR_TYPE"] in theirs
    kinds = {kind.value for kind in messaging_attributes.MessagingOperationTypeValues}
    assert {ours["SEND"], ours["RECEIVE"], ours["PROCESS"], ours["SETTLE"]} <= kinds


async def test_a_handler_runs_inside_its_span_also_in_a_thread(traced: Tenure, recorded: Recorded) -> None:
    await traced.push(traced.call("notes", [SECRET]))
    await traced.push(traced.call("notes_in_a_thread", [SECRET]))
    await drain(traced)
    assert {span for span, _ in seen} == {span["span"] for span in recorded.named("run default")}
    assert not here().is_valid
    assert SECRET not in dumped(recorded.all())


async def test_a_failure_is_told_by_its_class_alone(traced: Tenure, recorded: Recorded) -> None:
    for name in ("fails", "discards", "snoozes"):
        await traced.push(traced.call(name, [SECRET]))
    await drain(traced)
    told = {
        span["attributes"]["messaging.tenure.job.name"]: (span["status"], span["description"], span["events"])
        for span in recorded.named("run default")
    }
    assert told == {
        "fails": ("ERROR", "LookupError", 0),
        "discards": ("UNSET", None, 0),
        "snoozes": ("UNSET", None, 0),
    }
    assert SECRET not in dumped(recorded.all())


async def test_many_are_pushed_in_one_span_and_each_run_is_its_child(traced: Tenure, recorded: Recorded) -> None:
    await traced.push_many([traced.call("notes", ["x"]) for _ in range(600)])
    pushed = recorded.one("push default")
    assert pushed["attributes"]["messaging.batch.message_count"] == 600
    await drain(traced, concurrency=100)
    runs = recorded.named("run default")
    assert len(runs) == 600
    assert {run["parent"] for run in runs} == {pushed["span"]}
    claims = recorded.named("claim default")
    assert sum(claim["attributes"]["messaging.batch.message_count"] for claim in claims) == 600
    assert {link for claim in claims for link in claim["links"]} == {pushed["span"]}
    assert max(len(claim["links"]) for claim in claims) <= 128


async def test_an_idle_worker_makes_no_spans(traced: Tenure, recorded: Recorded) -> None:
    async with working(traced, sleep=0.05):
        await for_a_while(0.2)
    assert recorded.all() == []


async def test_a_run_may_begin_a_trace_of_its_own_that_links_to_the_push(quick: Tenure, recorded: Recorded) -> None:
    instrument(quick, provider=recorded.provider, one_trace=False)
    quick.job(name="notes")(notes)
    await quick.push(quick.call("notes", ["x"]))
    await drain(quick)
    pushed, run = recorded.one("push default"), recorded.one("run default")
    assert (run["parent"], run["links"]) == (None, [pushed["span"]])
    assert run["trace"] != pushed["trace"]


@pytest.mark.parametrize("observed", [True, False])
async def test_a_context_that_the_caller_gives_travels_unchanged(
    quick: Tenure, recorded: Recorded, observed: bool
) -> None:
    if observed:
        instrument(quick, provider=recorded.provider)
    quick.job(name="notes")(notes)
    given = {"traceparent": GIVEN, "tracestate": "vendor=7", "tenant": 3}
    await quick.push(quick.call("notes", ["x"]), meta=given)
    await drain(quick)
    assert [meta for _, meta in seen] == [given]
    if observed:
        run = recorded.one("run default")
        assert (run["trace"], run["parent"]) == (GIVEN[3:35], GIVEN[36:52])


@pytest.mark.parametrize("given", ["", "nonsense", 7, None, f"00-{'0' * 32}-{GIVEN[36:52]}-01"])
async def test_a_context_that_cannot_be_read_is_none(traced: Tenure, recorded: Recorded, given: object) -> None:
    await traced.push(traced.call("notes", ["x"]), meta={"traceparent": given})
    await drain(traced)
    run = recorded.one("run default")
    assert (run["parent"], run["links"]) == (None, [])


async def test_the_context_is_no_part_of_the_caller_s_meta_and_its_limits(traced: Tenure, recorded: Recorded) -> None:
    full = {"note": "x" * 4080}
    await traced.push(traced.call("notes", ["x"]), meta=full)
    [lease] = (await traced.queue().claim(["default"], limit=1, lease=5, wait=0)).leases
    pushed = recorded.one("push default")
    meta = decode(lease.envelope).meta
    assert meta.pop("traceparent").startswith(f"00-{pushed['trace']}-{pushed['span']}-")
    assert meta == full
    with pytest.raises(InvalidOption):
        await traced.push(traced.call("notes", ["x"]), meta={"note": "x" * 4100})
    with pytest.raises(PayloadTooLarge):
        await traced.push(traced.call("notes", ["x" * 60_000]))
    assert recorded.one("push")["description"] == "tenure.errors.PayloadTooLarge"


async def test_a_push_that_fails_says_so_on_its_span(recorded: Recorded) -> None:
    app = Tenure(f"redis://:{SECRET}@127.0.0.1:1", namespace="traces")
    instrument(app, provider=recorded.provider)
    app.job(name="notes")(notes)
    with pytest.raises(ConnectionFailed):
        await app.push(app.call("notes", ["x"]))
    with pytest.raises((ConnectionFailed, PushIncomplete)):
        await app.push_many([app.call("notes", ["x"])])
    await app.aclose()
    assert {(span["status"], span["description"]) for span in recorded.all()} == {
        ("ERROR", "tenure.errors.ConnectionFailed")
    }
    assert SECRET not in dumped(recorded.all())


async def test_an_application_is_instrumented_once(traced: Tenure, recorded: Recorded) -> None:
    instrument(traced, provider=recorded.provider)
    await traced.push(traced.call("notes", ["x"]))
    await drain(traced)
    assert len(recorded.named("run default")) == 1
    app = Tenure("memory://")
    app.tracing = traced.tracing
    instrument(app)
    app.tracing = object()  # type: ignore[assignment]
    with pytest.raises(InvalidOption):
        instrument(app)


async def test_on_the_sync_driver_the_run_is_inside_the_push(recorded: Recorded) -> None:
    app = Tenure("sync://", namespace="traces")
    instrument(app, provider=recorded.provider)
    app.job(name="notes")(notes)
    await app.push(app.call("notes", ["x"]))
    assert recorded.one("run default")["parent"] == recorded.one("push default")["span"]


UNTRACED = """
import asyncio, sys
from tenure import Tenure
from tenure.worker import WorkerOptions, run_worker
app = Tenure("memory://")
@app.job(name="nothing")
async def nothing() -> None: ...
nothing.push_sync()
app.close_sync()
run_worker(app, WorkerOptions(stop_when_empty=True))
print(sorted(name for name in sys.modules if name.split(".")[0] in {"opentelemetry", "prometheus_client"}))
print([name for name in sys.modules if name.startswith(("tenure.ext.otel", "tenure.ext.prometheus"))])
"""


def test_without_it_nothing_of_it_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNTRACED], capture_output=True, text=True, timeout=30, check=True, cwd=ROOT
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


def test_without_its_library_it_says_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tenure.ext.otel")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tenure\[otel\]'"):
        import tenure.ext.otel  # noqa: F401, PLC0415

"""A trace goes on in a handler that runs in a process of its own, and each span is made once."""

import json
from typing import Any

from tenure.ext.otel import instrument
from tests.cli.conftest import Program
from tests.support.servers import ROOT
from tests.telemetry.spans import Recorded

SHOP = """
import json, os
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from tenure import Tenure, current
from tenure.ext.otel import instrument
from tests.telemetry.spans import told


class Lines(SpanExporter):
    def export(self, spans):
        with open("spans", "a") as out:
            for span in spans:
                out.write(json.dumps({**told(span), "pid": os.getpid()}) + "\\n")
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Lines()))
tracer = provider.get_tracer("shop")
app = Tenure()
instrument(app, provider=provider)


@app.middleware
async def surrounds(attempt, call_next):
    with tracer.start_as_current_span("middleware"):
        return await call_next()


@app.job(name="receipt", queue="receipts")
async def receipt() -> None: ...


@app.job(name="plain", queue="payments", executor="process")
def plain() -> None:
    with tracer.start_as_current_span("handler", attributes={"meta": current().meta["traceparent"]}):
        receipt.push_sync()


@app.job(name="asynchronous", queue="payments", executor="process")
async def asynchronous() -> None:
    with tracer.start_as_current_span("handler", attributes={"meta": current().meta["traceparent"]}):
        await receipt.push()
"""


# W1
def test_a_handler_in_a_process_goes_on_with_the_trace_of_its_push(tenure: Program) -> None:
    tenure.write("traced.py", SHOP)
    tenure.env["PYTHONPATH"] += f":{ROOT}"
    recorded = Recorded()
    app = tenure.app
    instrument(app, provider=recorded.provider)
    for name in ("plain", "asynchronous"):
        app.job(name=name, queue="payments")(nothing)
        with recorded.tracer.start_as_current_span(f"GET /{name}"):
            app.push_sync(app.call(name, []))
    app.close_sync()
    done = tenure.process("worker", "traced:app", "-q", "payments", "-c", "1", "--stop-when-empty")
    assert done.returncode == 0, done.stderr
    spans = [json.loads(line) for line in (tenure.directory / "spans").read_text().splitlines()]
    pushes = {push["span"]: push for push in recorded.named("push payments")}
    assert len(pushes) == 2
    for push in pushes.values():
        mine = {span["name"]: span for span in spans if span["trace"] == push["trace"]}
        assert sorted(mine) == ["handler", "middleware", "push receipts", "run payments"]
        assert mine["run payments"]["parent"] == push["span"]
        assert parents(mine) == ["run payments", "middleware", "handler"]
        # What the push gave is there as well.
        assert mine["handler"]["attributes"]["meta"].split("-")[1:3] == [push["trace"], push["span"]]
        assert mine["run payments"]["pid"] == mine["middleware"]["pid"] != mine["handler"]["pid"]
        assert mine["handler"]["pid"] == mine["push receipts"]["pid"]
    # Each was made once, and nothing but claims and settlements beside them.
    others = [span["name"] for span in spans if span["trace"] not in {push["trace"] for push in pushes.values()}]
    assert len(spans) - len(others) == 8
    assert set(others) == {"claim payments", "settle payments"}


def nothing() -> None:
    """Stands for a job that the worker has."""


def parents(spans: dict[str, dict[str, Any]]) -> list[str]:
    """The names of those above the last one, from the top."""
    names = {span["span"]: name for name, span in spans.items()}
    return [names[spans[name]["parent"]] for name in ("middleware", "handler", "push receipts")]

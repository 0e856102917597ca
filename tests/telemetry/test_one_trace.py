"""A trace that begins in a web request goes on in the worker that runs the job, in another process."""

import json
import os
import pathlib

from tenure.ext.otel import instrument
from tests.support import processes
from tests.support.servers import Server
from tests.telemetry import traced
from tests.telemetry.spans import Recorded


# W1
def test_a_request_its_push_and_the_run_are_one_trace_across_two_processes(
    valkey: Server, namespace: str, tmp_path: pathlib.Path
) -> None:
    recorded = Recorded()
    app = traced.build(valkey.url, namespace)
    instrument(app, provider=recorded.provider)
    with recorded.tracer.start_as_current_span("GET /checkout"):
        handle = app.push_sync(app.call(traced.NAME, [7]))
    app.close_sync()
    request, pushed = recorded.one("GET /checkout"), recorded.one("push payments")
    assert (pushed["parent"], pushed["trace"], pushed["kind"]) == (request["span"], request["trace"], "PRODUCER")

    file = tmp_path / "spans.json"
    with processes.python("-m", "tests.telemetry.traced", valkey.url, namespace, file) as worker:
        assert worker.wait(20) == 0, worker.output
    app.close_sync()
    spans = json.loads(file.read_text())
    run = next(span for span in spans if span["attributes"].get("messaging.message.id") == handle.id)
    assert run["name"] == "run payments"
    assert (run["trace"], run["parent"], run["links"]) == (request["trace"], pushed["span"], [pushed["span"]])
    assert (run["kind"], run["status"]) == ("CONSUMER", "UNSET")
    assert run["attributes"] == {
        "messaging.system": "tenure",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "payments",
        "messaging.message.id": handle.id,
        "messaging.tenure.job.name": "charge",
        "messaging.tenure.attempt": 1,
        "messaging.tenure.deliveries": 1,
    }
    [own] = [span for span in spans if span["name"] == "the handler's own" and span["trace"] == request["trace"]]
    assert own["parent"] == run["span"]
    assert own["attributes"]["pid"] != os.getpid()
    # What was received and settled in a batch belongs to no one job's trace: it links to the pushes.
    for name, kind in (("claim payments", "receive"), ("settle payments", "settle")):
        batches = [span for span in spans if span["name"] == name]
        assert pushed["span"] in [link for batch in batches for link in batch["links"]]
        assert {batch["attributes"]["messaging.operation.type"] for batch in batches} == {kind}
        assert {(batch["kind"], batch["parent"]) for batch in batches} == {("CLIENT", None)}

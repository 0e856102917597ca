"""A traced worker process: `python -m tests.telemetry.traced URL NAMESPACE FILE` writes its spans into the file."""

import json
import os
import pathlib
import sys

from opentelemetry import trace

from tenure import Tenure
from tenure.ext.otel import instrument
from tenure.worker import WorkerOptions, run_worker
from tests.telemetry.spans import Recorded

NAME = "charge"


async def charge(order: int) -> None:
    with trace.get_tracer("shop").start_as_current_span("the handler's own") as span:
        span.set_attribute("pid", os.getpid())


def build(url: str, namespace: str) -> Tenure:
    app = Tenure(url, namespace=namespace)
    app.job(name=NAME, queue="payments")(charge)
    return app


def main() -> None:
    url, namespace, file = sys.argv[1:]
    recorded = Recorded()
    trace.set_tracer_provider(recorded.provider)
    app = build(url, namespace)
    instrument(app)
    run_worker(app, WorkerOptions(queues=("payments",), stop_when_empty=True))
    pathlib.Path(file).write_text(json.dumps(recorded.all()))


if __name__ == "__main__":
    main()

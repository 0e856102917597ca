"""What a worker says when it starts: what it works on, and what of that is probably not meant."""

import os
from collections.abc import Iterator

from tenure.app import Tenure
from tenure.registry import DEFAULT_QUEUE
from tenure.worker import WorkerOptions


def banner(app: Tenure, options: WorkerOptions) -> str:
    """Return the line that a worker starts with, without hosts and credentials."""
    settings = app.settings.connection(options.connection)
    selected = app.infrastructure(options.connection).selected
    queues = options.queues or sorted(app.registry.queues() | {DEFAULT_QUEUE})
    if options.weights is not None:
        queues = [f"{queue}:{weight}" for queue, weight in options.weights.items()]
    jobs = sum(1 for _ in app.registry)
    return (
        f"worker starts: store {selected}, namespace {settings.namespace}, queues {','.join(queues)}, "
        f"concurrency {options.concurrency}, {jobs} job{'' if jobs == 1 else 's'} registered, process {os.getpid()}"
    )


def warnings(app: Tenure, options: WorkerOptions) -> Iterator[str]:
    """Yield what a worker on this application should be warned of; opening its connection warns of the rest."""
    capabilities = app.queue(options.connection).capabilities
    if not list(app.registry):
        yield "no job is registered: import the modules that define them where the application is made"
    if not capabilities.shared:
        yield f"the store {capabilities.driver} is this process's own memory: nobody else can push to this worker"

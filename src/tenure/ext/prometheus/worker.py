"""The metrics of one worker process, counted from the application's events.

Every label has few values: queues are those that the worker claims from, names are those of registered jobs (all
others are ``unknown``), outcomes are a fixed set.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest

from tenure.app import Tenure
from tenure.events import (
    AttemptEnded,
    AttemptStarted,
    JobCancelled,
    JobDiscarded,
    JobFailed,
    JobReleased,
    JobSetAside,
    JobSucceeded,
    LeaseLost,
    SettlementLost,
)
from tenure.ext.prometheus.families import encoded
from tenure.ext.prometheus.vitals import VitalsCollector
from tenure.worker.vitals import Vitals

RUN_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
WAIT_SECONDS: Final = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 86400)
UNKNOWN: Final = "unknown"

_OUTCOMES: Final = {
    JobSucceeded: "succeeded",
    JobFailed: "failed",
    JobDiscarded: "discarded",
    JobCancelled: "cancelled",
    JobSetAside: "set_aside",
}


class WorkerMetrics:
    """Counts while it is entered; before and after that nothing is observed."""

    def __init__(self, app: Tenure, vitals: Vitals) -> None:
        self._app = app
        self._names: dict[str, str] = {}
        self._off: list[Callable[[], None]] = []
        self._registry = CollectorRegistry()
        registry = self._registry
        self._jobs = Counter(
            "tenure_jobs", "Attempts that ended, by outcome.", ["queue", "name", "outcome"], registry=registry
        )
        self._run = Histogram(
            "tenure_run_seconds", "How long handlers ran.", ["queue", "name"], buckets=RUN_SECONDS, registry=registry
        )
        self._wait = Histogram(
            "tenure_wait_seconds",
            "How long jobs had been ready, or due, when they were claimed; by the store's clock.",
            ["queue"],
            buckets=WAIT_SECONDS,
            registry=registry,
        )
        self._lost = Counter(
            "tenure_leases_lost", "Leases that another worker may have got.", ["queue"], registry=registry
        )
        self._refused = Counter(
            "tenure_settlements_lost", "Outcomes that the store did not take.", ["queue"], registry=registry
        )
        registry.register(VitalsCollector(vitals))
        ProcessCollector(registry=registry)

    def __enter__(self) -> "WorkerMetrics":
        on = self._app.events.on
        self._off = [
            on(AttemptStarted, self._started),
            on(AttemptEnded, self._ended),
            on(LeaseLost, lambda event: self._lost.labels(event.lease.queue).inc()),
            on(SettlementLost, lambda event: self._refused.labels(event.lease.queue).inc()),
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._off:
            self._off.pop()()

    def text(self) -> bytes:
        """Return all of them in Prometheus' text form. Safe from any thread."""
        return generate_latest(self._registry)

    def data(self) -> bytes:
        """Return all of them for the supervisor, which adds up those of its children. Safe from any thread."""
        return encoded(self._registry.collect())

    def _started(self, event: AttemptStarted) -> None:
        if event.lease.waited is not None:
            self._wait.labels(event.lease.queue).observe(event.lease.waited)

    def _ended(self, event: AttemptEnded) -> None:
        queue, name = event.lease.queue, self._known(event.name)
        self._jobs.labels(queue, name, _outcome(event)).inc()
        if event.seconds:
            self._run.labels(queue, name).observe(event.seconds)

    def _known(self, name: str) -> str:
        known = self._names.get(name)
        if known is None:
            definition = self._app.registry.get(name)
            if definition is None:
                return UNKNOWN  # not kept: there is no end to the names that others may push
            known = self._names[name] = definition.name
        return known


def _outcome(event: AttemptEnded) -> str:
    if isinstance(event, JobReleased):
        return "released" if event.failure is None else "retried"
    return _OUTCOMES.get(type(event), UNKNOWN)

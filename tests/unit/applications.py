"""An application as a user builds one, for the tests of the jobs layer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tenure import Tenure
from tenure.queue import Lease
from tests.unit import jobs


class Clock:
    """A clock that stands still."""

    def monotonic(self) -> float:
        return 0.0

    def time(self) -> float:
        return datetime(2030, 1, 1, tzinfo=UTC).timestamp()


def make_app() -> Tenure:
    """Return an application with three jobs, one of them with options."""
    app = Tenure("memory://", namespace="tests", clock=Clock())
    app.job(queue="own", max_attempts=5, timeout=30, priority=3, expires_in=600)(jobs.ordinary)
    app.job(jobs.asynchronous)
    app.job(jobs.Report)
    return app


def bind(app: Tenure, number: int = 1, name: str = "ordinary", **options: Any) -> Any:
    call = app.call(f"tests.unit.jobs.{name}", [number])
    return call.options(**options) if options else call


async def claimed(app: Tenure, queue: str = "own", limit: int = 1) -> Sequence[Lease]:
    return (await app.queue().claim([queue], limit=limit, lease=60, wait=0)).leases

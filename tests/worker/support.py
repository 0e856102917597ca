"""A worker that runs beside a test, and what tests wait for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tenure import Tenure
from tenure.envelope import Envelope, encode
from tenure.events import Event
from tenure.naming import new_job_id
from tenure.queue import FailedRecord, Push
from tenure.worker import ExitReason, Worker, WorkerOptions
from tests.support.processes import eventually_async


@asynccontextmanager
async def working(app: Tenure, **options: Any) -> AsyncIterator[Worker]:
    """Run a worker for the length of the block, and stop it at once at the end."""
    worker = Worker(app, WorkerOptions(**{"queues": ("default",), **options}))
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        worker.stop()
        assert await task is not ExitReason.ERROR


async def drain(app: Tenure, **options: Any) -> ExitReason:
    """Run a worker until nothing is ready."""
    options = {"queues": ("default",), "stop_when_empty": True, "backoff": 0.0, **options}
    return await Worker(app, WorkerOptions(**options)).run()


async def until(fact: Callable[[], Any], timeout: float = 10, *, what: str = "") -> Any:
    """Wait for a fact of this process."""

    async def probe() -> Any:
        return fact()

    return await eventually_async(probe, timeout, what=what)


async def until_counts(app: Tenure, timeout: float = 10, **expected: int) -> None:
    """Wait until the default queue's counts are these."""

    async def probe() -> bool:
        counts = await app.counts("default")
        return all(getattr(counts, name) == number for name, number in expected.items())

    await eventually_async(probe, timeout, what=f"counts {expected}")


async def nothing_left(app: Tenure) -> bool:
    """Tell whether nothing is stored, failed jobs included."""
    counts = await app.counts("default")
    return (counts.ready, counts.delayed, counts.leased, counts.failed, counts.unreadable) == (0, 0, 0, 0, 0)


async def only_failure(app: Tenure) -> FailedRecord:
    """Return the one failed job."""
    [record] = await app.failed("default")
    return record


async def push_raw(app: Tenure, envelope: bytes, job_id: str | None = None) -> str:
    """Store a record by hand, as another program would."""
    identity = job_id or new_job_id()
    await app.queue().push([Push(queue="default", id=identity, envelope=envelope)])
    return identity


async def push_unknown(app: Tenure, name: str = "only.the.newer.release.knows.it") -> str:
    """Store a job that this application does not know."""
    identity = new_job_id()
    return await push_raw(app, encode(Envelope(v=1, id=identity, name=name, queue="default")), identity)


def heard(app: Tenure, kind: type[Event]) -> list[Any]:
    """Return the list that events of this kind will be in."""
    events: list[Any] = []
    app.events.on(kind, events.append)
    return events


async def for_a_while(seconds: float) -> None:
    """Let time pass in which nothing should happen; where something should, wait for that."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()

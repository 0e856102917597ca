"""Jobs in every state, put into a store without running any."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from tenure import Tenure
from tenure.envelope import Envelope, encode
from tenure.naming import new_job_id
from tenure.queue import Fail, Failure, Lease, Push, SetAside
from tests.cli.conftest import Program

T = TypeVar("T")
SECRET = "hunter2-canary"


def on(program: Program, action: Callable[[Tenure], Awaitable[T]]) -> T:
    """Do something to the store that the program is configured for."""

    async def run() -> T:
        app = program.app
        try:
            return await action(app)
        finally:
            await app.aclose()

    return asyncio.run(run())


def record(job_id: str, name: str = "fail", queue: str = "default") -> bytes:
    """Return a job's record whose only argument is a secret."""
    args = msgspec.Raw(msgspec.json.encode([SECRET]))
    return encode(Envelope(v=1, id=job_id, name=name, queue=queue, args=args, max_attempts=1))


def waiting(
    program: Program, *ids: str, queue: str = "default", name: str = "greet", delay: float = 0.0, priority: int = 0
) -> Sequence[str]:
    """Push jobs of these ids, ready or delayed."""
    jobs = [
        Push(queue=queue, id=job_id, envelope=record(job_id, name, queue), delay=delay, priority=priority)
        for job_id in ids
    ]

    async def push(app: Tenure) -> Sequence[str]:
        assert {pushed.outcome for pushed in await app.queue().push(jobs)} <= {"stored"}
        return ids

    return on(program, push)


async def lease(app: Tenure, queue: str, number: int, seconds: float = 60) -> list[Lease]:
    """Take that many jobs of a queue."""
    leases: list[Lease] = []
    while len(leases) < number:
        claimed = await app.queue().claim([queue], limit=min(500, number - len(leases)), lease=seconds, wait=0)
        assert claimed.leases, f"{len(leases)} of {number}"
        leases += claimed.leases
    return leases


def running(program: Program, *ids: str, queue: str = "default", seconds: float = 60) -> Sequence[Lease]:
    """Push jobs to a queue in which nothing is ready, and hold them under leases of that length."""
    waiting(program, *ids, queue=queue)
    leases = on(program, lambda app: lease(app, queue, len(ids), seconds))
    assert [held.id for held in leases] == list(ids)
    return leases


def failed(
    program: Program,
    number: int,
    *,
    queue: str = "default",
    name: str = "fail",
    failure: Failure | None = None,
    ids: Sequence[str] | None = None,
) -> Sequence[str]:
    """Push jobs to a queue in which nothing is ready, fail them, and return their ids in the order of that."""
    chosen = list(ids or (new_job_id() for _ in range(number)))
    why = failure or Failure(
        reason="exception", type="ValueError", message=f"no luck with {SECRET}", traceback=f"ValueError: {SECRET}"
    )
    waiting(program, *chosen, queue=queue, name=name)

    async def fail(app: Tenure) -> Sequence[str]:
        leases = await lease(app, queue, len(chosen))
        assert [held.id for held in leases] == chosen
        for start in range(0, len(leases), 500):
            await app.queue().settle([Fail(held, why) for held in leases[start : start + 500]])
        return chosen

    return on(program, fail)


def unreadable(program: Program, content: bytes, *, job_id: str = "odd", queue: str = "default") -> str:
    """Store a record that nobody can read, have it set aside, and return its key."""

    async def put(app: Tenure) -> str:
        await app.queue().push([Push(queue=queue, id=job_id, envelope=content)])
        [held] = await lease(app, queue, 1)
        await app.queue().settle([SetAside(held, "it is not a record")])
        return (await app.operate.unreadable(queue))[-1].key

    return on(program, put)

"""The steps that behaviours are written in. Each one asserts what it stands on.

Nothing here sleeps for a result: a step waits for a fact that the store tells, until a deadline.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import pytest

from tenure.naming import new_job_id
from tenure.operating import FailedJobs, Inspector
from tenure.queue import (
    DEFAULT_CRASH_LIMIT,
    Ack,
    Counts,
    Fail,
    FailedRecord,
    Failure,
    Lease,
    Push,
    Queue,
    Release,
    Renewal,
    Settled,
    Settlement,
    feature,
)

T = TypeVar("T")

Q = "q"
"""The queue of a behaviour that needs one."""
LONG = 60.0
"""A lease that does not lapse while a behaviour runs."""
SHORT = 0.1
"""A lease that is meant to lapse."""
EMPTY = Counts(ready=0, delayed=0, leased=0, lapsed=0, failed=0, unreadable=0, oldest_age=None)
NOTHING = b'{"v":1}'
WHY = Failure(reason="exception", type="ValueError", message="no", traceback="Traceback")


def job(job_id: str | None = None, *, queue: str = Q, envelope: bytes = NOTHING, **options: Any) -> Push:
    """Return a job to push."""
    return Push(queue=queue, id=job_id or new_job_id(), envelope=envelope, **options)


def jobs(*ids: str, queue: str = Q, **options: Any) -> list[Push]:
    """Return one job for each id."""
    return [job(one, queue=queue, **options) for one in ids]


def numbered(count: int, *, queue: str = Q, **options: Any) -> list[Push]:
    """Return so many jobs with ids that sort as they are pushed."""
    return [job(f"j{number:05}", queue=queue, **options) for number in range(count)]


async def push(queue: Queue, *pushes: Push) -> None:
    """Push new jobs."""
    answers = await queue.push(pushes)
    assert [(one.id, one.outcome) for one in answers] == [(one.id, "stored") for one in pushes]


async def claim(
    queue: Queue,
    limit: int = 1,
    *,
    queues: Sequence[str] = (Q,),
    lease: float = LONG,
    wait: float = 0.0,
    crash_limit: int = DEFAULT_CRASH_LIMIT,
    suspects: bool = True,
    holder: str | None = None,
) -> list[Lease]:
    """Return what one claim brings; it can read everything."""
    claimed = await queue.claim(
        queues, limit=limit, lease=lease, wait=wait, crash_limit=crash_limit, suspects=suspects, holder=holder
    )
    assert list(claimed.unreadable) == []
    assert len({(lease.queue, lease.id) for lease in claimed.leases}) == len(claimed.leases) <= limit
    return list(claimed.leases)


async def claim_one(queue: Queue, **options: Any) -> Lease:
    """Return the lease that a claim of one brings."""
    leases = await claim(queue, 1, **options)
    assert len(leases) == 1, "the claim brought nothing"
    return leases[0]


async def pushed_and_claimed(queue: Queue, pushed: Push | None = None, **options: Any) -> Lease:
    """Return the lease of a job that was just pushed to an empty queue."""
    wanted = pushed or job()
    await push(queue, wanted)
    lease = await claim_one(queue, queues=(wanted.queue,), **options)
    assert lease.id == wanted.id
    return lease


async def settle(queue: Queue, settlement: Settlement) -> Settled:
    """Return what became of one settlement."""
    (answer,) = await queue.settle([settlement])
    return answer


async def done(queue: Queue, *settlements: Settlement) -> None:
    """Settle leases that are held."""
    assert list(await queue.settle(settlements)) == [Settled.DONE] * len(settlements)


async def renew(queue: Queue, lease: Lease) -> Renewal:
    """Return what became of one renewal."""
    (answer,) = await queue.renew([lease])
    return answer


async def eventually(probe: Callable[[], Awaitable[T]], *, within: float = 10.0, what: str = "") -> T:
    """Return the probe's first true answer; fail when there is none in time."""
    deadline = time.monotonic() + within
    while not (answer := await probe()):
        assert time.monotonic() < deadline, f"not within {within} s: {what or probe}; the last answer was {answer!r}"
        await asyncio.sleep(0.005)
    return answer


async def lapsed(queue: Queue, count: int = 1, *, name: str = Q) -> None:
    """Return when so many leases have lapsed."""

    async def probe() -> bool:
        return (await queue.counts(name)).lapsed == count

    await eventually(probe, what=f"{count} lapsed leases")


async def pass_time(queue: Queue, seconds: float) -> None:
    """Return when so much time has passed by the store's clock: a delayed job of a queue of its own comes back."""
    bell = job(queue="egg-timer", delay=seconds)
    await push(queue, bell)
    lease = await claim_one(queue, queues=["egg-timer"], wait=seconds + 10)
    await done(queue, Ack(lease))


async def crashed(queue: Queue, times: int, *, crash_limit: int = DEFAULT_CRASH_LIMIT) -> None:
    """Let the queue's only job crash so often, each time given back by a supervisor."""
    for _ in range(times):
        lease = await claim_one(queue, crash_limit=crash_limit)
        assert lease.doomed is None
        await done(queue, Release(lease, crashed=True))


async def suspected(queue: Queue, job_id: str) -> None:
    """Push a job to an empty queue and bring it one crash short of its limit."""
    await push(queue, job(job_id, crash_limit=2))
    await crashed(queue, 1)


async def failed_once(queue: Queue, pushed: Push | None = None, failure: Failure = WHY) -> FailedRecord:
    """Push a job to an empty queue, let it fail, and return its record."""
    lease = await pushed_and_claimed(queue, pushed)
    await done(queue, Fail(lease, failure))
    record = await failed_jobs(queue).failed_record(lease.queue, lease.id)
    assert record is not None
    return record


async def drained(queue: Queue, count: int, *, name: str = Q, batch: int = 50) -> list[Lease]:
    """Claim and acknowledge until so many jobs are done, then find the queue without work; return the leases."""
    leases: list[Lease] = []
    deadline = time.monotonic() + 30
    while len(leases) < count:
        assert time.monotonic() < deadline, f"{len(leases)} of {count} jobs in 30 s"
        got = await claim(queue, batch, queues=[name], wait=0.2)
        await done(queue, *map(Ack, got))
        leases += got
    left = await queue.counts(name)
    assert (left.ready, left.delayed, left.leased) == (0, 0, 0)
    return leases


async def assert_empty(queue: Queue, name: str = Q) -> None:
    """Assert that nothing at all is left in the queue."""
    assert await queue.counts(name) == EMPTY
    assert await claim(queue, 10, queues=[name]) == []


async def where(queue: Queue, name: str = Q) -> dict[str, int]:
    """Return the counts that are not zero."""
    counts = await queue.counts(name)
    fields = {
        state: getattr(counts, state) for state in ("ready", "delayed", "leased", "lapsed", "failed", "unreadable")
    }
    return {state: number for state, number in fields.items() if number}


def failed_jobs(queue: Queue) -> FailedJobs:
    """Return the driver as what reads and operates the failed store, or skip."""
    if not feature(queue, FailedJobs):
        pytest.skip(f"the driver {queue.capabilities.driver!r} has no failed store to read")
    return cast("FailedJobs", queue)


def inspector(queue: Queue) -> Inspector:
    """Return the driver as what reads the states of jobs, or skip."""
    if not feature(queue, Inspector):
        pytest.skip(f"the driver {queue.capabilities.driver!r} cannot be inspected")
    return cast("Inspector", queue)


def ids(leases: Sequence[Lease]) -> list[str]:
    """Return the ids of leases, in order."""
    return [lease.id for lease in leases]

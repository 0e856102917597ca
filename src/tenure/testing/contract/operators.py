"""The driver as what operators use, or a skip that says which protocol it lacks."""

from typing import cast

import msgspec
import pytest

from tenure import envelope
from tenure.operating import Control, Holdings, JobLister, JobSummary, Pruning, UnreadableStore
from tenure.queue import JobState, Queue, feature
from tenure.results import Results
from tenure.testing.contract.steps import Q


def lister(queue: Queue) -> JobLister:
    """Return the driver as what lists jobs, or skip."""
    if not feature(queue, JobLister):
        pytest.skip(f"the driver {queue.capabilities.driver!r} lists no jobs (JobLister)")
    return cast("JobLister", queue)


def unreadable_store(queue: Queue) -> UnreadableStore:
    """Return the driver as what reads and empties the unreadable store, or skip."""
    if not feature(queue, UnreadableStore):
        pytest.skip(f"the driver {queue.capabilities.driver!r} has no unreadable store to read (UnreadableStore)")
    return cast("UnreadableStore", queue)


def pruning(queue: Queue) -> Pruning:
    """Return the driver as what forgets old failures, or skip."""
    if not feature(queue, Pruning):
        pytest.skip(f"the driver {queue.capabilities.driver!r} cannot prune (Pruning)")
    return cast("Pruning", queue)


def control(queue: Queue) -> Control:
    """Return the driver as what tells workers what to do, or skip."""
    if not feature(queue, Control):
        pytest.skip(f"the driver {queue.capabilities.driver!r} cannot pause queues or restart workers (Control)")
    return cast("Control", queue)


def holdings(queue: Queue) -> Holdings:
    """Return the driver as what finds the leases of a process, or skip."""
    if not feature(queue, Holdings):
        pytest.skip(f"the driver {queue.capabilities.driver!r} does not tell who holds what (Holdings)")
    return cast("Holdings", queue)


def results(queue: Queue) -> Results:
    """Return the driver as what keeps the ends and the progress of jobs, or skip."""
    if not feature(queue, Results):
        pytest.skip(f"the driver {queue.capabilities.driver!r} keeps no results (Results)")
    assert queue.capabilities.results
    return cast("Results", queue)


async def listed(queue: Queue, state: JobState, *, name: str = Q, limit: int = 100) -> list[JobSummary]:
    """Return all jobs of a state, read page by page."""
    jobs: list[JobSummary] = []
    cursors: set[str] = set()
    page = await lister(queue).jobs(name, state, limit=limit)
    while True:
        assert len(page.jobs) <= limit
        jobs += page.jobs
        if page.cursor is None:
            return jobs
        assert page.cursor not in cursors, "the listing goes round and round"
        cursors.add(page.cursor)
        page = await lister(queue).jobs(name, state, limit=limit, cursor=page.cursor)


def written(name: str, *, args: bytes = b"[]", job_id: str = "any") -> bytes:
    """Return the envelope of a call of the job ``name``."""
    call = envelope.Envelope(v=envelope.VERSION, id=job_id, name=name, queue=Q, args=msgspec.Raw(args))
    return envelope.encode(call)

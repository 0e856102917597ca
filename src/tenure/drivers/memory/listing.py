"""A page of a queue's waiting or running jobs, without their payloads; a page of what one holder holds, with them."""

from collections.abc import Mapping, Sequence
from typing import Final

from tenure.drivers.memory.line import Hold, Job, Key, Line
from tenure.naming import check_holder, held_prefix
from tenure.operating import HeldPage, JobPage, JobSummary
from tenure.queue import Doom, JobState, Lease
from tenure.summaries import Cursors, job_name, page_length

CURSORS: Final = Cursors("dq")
"""A cursor holds the key of the last job of its page."""


def page(
    queue: str,
    state: JobState,
    lines: Mapping[JobState, Sequence[Line]],
    ready_since: Mapping[str, float],
    *,
    now: float,
    limit: int,
    cursor: str | None,
) -> JobPage:
    """Return the first jobs behind the cursor of the lines that make up a state."""
    limit = page_length(state, limit)
    place: Key | None = None
    if cursor is not None:
        rank, entry = CURSORS.read(cursor, state)
        place = rank, entry
    found = [entry for line in lines[state] for entry in line.behind(place, limit + 1)]
    found.sort(key=_key)
    shown = found[:limit]
    return JobPage(
        jobs=[
            JobSummary(
                queue=queue,
                id=job.id,
                state=state,
                name=job_name(job.envelope),
                priority=job.priority,
                attempts=job.deliveries - job.free,
                crashes=job.crashes,
                seconds=now - ready_since[job.id] if state == JobState.READY else key[0] - now,
            )
            for key, job in shown
        ],
        cursor=CURSORS.written(state, *shown[-1][0]) if len(found) > limit else None,
    )


def held(queue: str, leased: Line, holder: str, *, limit: int, cursor: str | None) -> HeldPage:
    """Return the leases of one holder among as many as a page may hold, behind the cursor."""
    prefix = held_prefix(check_holder(holder))
    limit = page_length(JobState.RUNNING, limit)
    place: Key | None = None
    if cursor is not None:
        rank, entry = CURSORS.read(cursor, JobState.RUNNING)
        place = rank, entry
    looked_at = leased.behind(place, limit)
    return HeldPage(
        leases=[
            lease(queue, job, job.hold, job.hold.deadline)
            for _, job in looked_at
            if job.hold is not None and job.hold.token.startswith(prefix)
        ],
        cursor=CURSORS.written(JobState.RUNNING, *looked_at[-1][0]) if len(looked_at) == limit else None,
    )


def lease(
    queue: str,
    job: Job,
    hold: Hold,
    deadline: float,
    *,
    doomed: Doom | None = None,
    suspect: bool = False,
    waited: float | None = None,
) -> Lease:
    """Return what the holder of a job has of it."""
    return Lease(
        queue=queue,
        id=job.id,
        incarnation=job.incarnation,
        token=hold.token,
        fence=hold.fence,
        deliveries=job.deliveries,
        free=job.free,
        crashes=job.crashes,
        length=hold.length,
        deadline=deadline,
        envelope=job.envelope,
        doomed=doomed,
        suspect=suspect,
        waited=waited,
        keep=job.keep,
        composition="" if job.member is None else job.member.graph.made.id,
        input=job.input,
        gives=job.member is not None and job.member.gives,
    )


def _key(entry: tuple[Key, Job]) -> Key:
    return entry[0]

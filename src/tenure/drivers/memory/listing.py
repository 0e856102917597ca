"""A page of a queue's waiting or running jobs, without their payloads."""

from collections.abc import Mapping, Sequence
from typing import Final

from tenure.drivers.memory.line import Job, Key, Line
from tenure.operating import JobPage, JobSummary
from tenure.queue import JobState
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


def _key(entry: tuple[Key, Job]) -> Key:
    return entry[0]

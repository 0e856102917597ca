"""What the databases have in common about the rows of schedules."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tenure.queue import JobState
from tenure.schedules import ScheduleRecord

BUSY: Final = frozenset({JobState.READY, JobState.DELAYED, JobState.RUNNING})
"""Where a job is that has not ended."""


def last_jobs(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the ids of the jobs that were pushed last."""
    return sorted({row[3] for row in rows if row[3]})


def records(queue: str, rows: Iterable[Sequence[Any]], states: dict[str, JobState]) -> list[ScheduleRecord]:
    """Return schedules; a row is a name, a cursor, whether it is paused, the last job, and the definition."""
    return [
        ScheduleRecord(
            queue=queue,
            name=name,
            definition=bytes(definition),
            cursor=cursor / 1000,
            paused=bool(paused),
            last_job=last_job,
            busy=states.get(last_job) in BUSY,
        )
        for name, cursor, paused, last_job, definition in rows
    ]

"""Stored schedules, as they are shown."""

from collections.abc import Container
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tenure.errors import Undecodable
from tenure.schedules import ScheduleRecord
from tenure.timetables.definition import decode


class ScheduleInfo(NamedTuple):
    """A stored schedule, as it is shown."""

    name: str
    queue: str
    job: str
    """The name of its job; '' when its definition cannot be read here."""
    when: str
    """Its cron expression, or its interval; why it cannot be read, if it cannot."""
    tz: str
    next: datetime | None
    """When it is due next, in its zone; None when it is paused, or never is again."""
    paused: bool
    busy: bool
    """The last job that it pushed waits or runs."""
    last_job: str
    source: str
    """``code``, ``api`` or ``cli``; '' when its definition cannot be read here."""
    orphaned: bool
    """It was defined in code, and this application defines it no more; always False for one that defines none."""
    catch_up: str
    overlap: bool


def info(record: ScheduleRecord, code: Container[str] | None) -> ScheduleInfo:
    """Return what is shown of a schedule, beside the names that the application defines; None: it is not known."""
    try:
        definition = decode(record.definition)
    except Undecodable as error:
        return ScheduleInfo(
            name=record.name, queue=record.queue, job="", when=f"unreadable: {error}", tz="", next=None,
            paused=record.paused, busy=record.busy, last_job=record.last_job, source="", orphaned=False,
            catch_up="", overlap=True,
        )  # fmt: skip
    due = None if record.paused else definition.timetable.next(max(record.cursor, definition.since))
    return ScheduleInfo(
        name=record.name,
        queue=record.queue,
        job=definition.envelope.name,
        when=definition.timetable.text,
        tz=definition.when.tz,
        next=None if due is None else datetime.fromtimestamp(due, ZoneInfo(definition.when.tz)),
        paused=record.paused,
        busy=record.busy,
        last_job=record.last_job,
        source=definition.source,
        orphaned=definition.source == "code" and code is not None and record.name not in code,
        catch_up=definition.catch_up,
        overlap=definition.overlap,
    )

"""``tenure schedule list`` and ``next``."""

from datetime import datetime
from typing import Any, Final

import click

from tenure.app import Tenure
from tenure.cli import output
from tenure.cli.opened import with_store
from tenure.cli.options import json_option, queue_option, setting, store_options
from tenure.cli.output import say, table
from tenure.cli.store import Where
from tenure.scheduling import ScheduleInfo

_COLUMNS: Final = ("name", "queue", "when", "next", "state", "from", "last job")


@click.command("list")
@queue_option
@json_option
@store_options
def list_(queue: str | None, *, as_json: bool, **where: Any) -> None:
    """List the stored schedules, each with its next time and the zone of that.

    With --app, those that its code defined once and defines no more are told.
    """
    place = Where(**where)

    async def listed(app: Tenure) -> list[ScheduleInfo]:
        return list(await app.schedules.list(queue=queue, connection=place.connection))

    schedules = with_store(place, listed)
    if as_json:
        say(output.as_json({"schedules": [_row(schedule) for schedule in schedules]}))
    else:
        say(table(_COLUMNS, [_cells(schedule) for schedule in schedules]))


def _row(schedule: ScheduleInfo) -> dict[str, Any]:
    return {**schedule._asdict(), "next": None if schedule.next is None else schedule.next.isoformat()}


def _cells(schedule: ScheduleInfo) -> tuple[object, ...]:
    state = "paused" if schedule.paused else "busy" if schedule.busy else None
    source = f"{schedule.source}, gone from it" if schedule.orphaned else schedule.source or None
    due = None if schedule.next is None else shown(schedule.next)
    return schedule.name, schedule.queue, schedule.when, due, state, source, schedule.last_job or None


@click.command("next")
@click.argument("name")
@setting("--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="So many.")
@queue_option
@json_option
@store_options
def next_(name: str, count: int, queue: str | None, *, as_json: bool, **where: Any) -> None:
    """Show when the schedule NAME is due next, in its zone, as if it were not paused."""
    place = Where(**where)

    async def upcoming(app: Tenure) -> list[datetime]:
        return list(await app.schedules.upcoming(name, count=count, queue=queue, connection=place.connection))

    times = with_store(place, upcoming)
    if as_json:
        say(output.as_json({"name": name, "next": [time.isoformat() for time in times]}))
    else:
        for time in times:
            say(shown(time))


def shown(time: datetime) -> str:
    """Return a time for people, with its zone: ``2026-11-01 01:30:00 -07:00 America/Los_Angeles``."""
    offset = time.isoformat(timespec="seconds")[19:]
    return f"{time:%Y-%m-%d %H:%M:%S} {offset} {time.tzinfo}"

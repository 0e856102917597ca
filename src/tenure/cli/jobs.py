"""``tenure jobs``."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import click

from tenure.cli import output
from tenure.cli.options import json_option, queues, setting, spoken, store_options
from tenure.cli.output import age, note, say, table
from tenure.cli.store import Store, Where, operate
from tenure.operating import JobSummary
from tenure.queue import JobState

_STATES: Final = (JobState.RUNNING, JobState.READY, JobState.DELAYED)
_COLUMNS: Final = ("id", "queue", "state", "name", "priority", "attempts", "crashes")


class Place(NamedTuple):
    """Where a listing goes on: in a queue, at a state, behind the store's own cursor."""

    queue: str
    state: JobState
    cursor: str | None = None

    def __str__(self) -> str:
        return f"{self.queue}/{self.state}/{self.cursor or ''}"


class Page(NamedTuple):
    """A part of the listing, and where the rest of it begins, if there is one."""

    jobs: Sequence[JobSummary]
    rest: Place | None = None


@click.command()
@queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
@setting("--state", type=click.Choice([str(state) for state in _STATES]), help="Only those.  [default: all three]")
@setting("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many.")
@spoken("--cursor", metavar="TEXT", help="Go on where an earlier listing ended.")
@json_option
@store_options
def jobs(
    names: tuple[str, ...] | None,
    state: str | None,
    limit: int,
    cursor: str | None,
    *,
    as_json: bool,
    **where: Any,
) -> None:
    """List jobs that run or wait, those first that are first in line, without their arguments.

    Failed ones are listed by `tenure failed`.
    """
    states = _STATES if state is None else (JobState(state),)
    start = None if cursor is None else _read(cursor, names, states)
    page = operate(Where(**where), lambda store: _list(store, names, states, start, limit))
    (_print_json if as_json else _print_table)(page)


def _read(text: str, names: Sequence[str] | None, states: Sequence[JobState]) -> Place:
    queue, _, rest = text.partition("/")
    state, _, cursor = rest.partition("/")
    if state not in states or (names is not None and queue not in names):
        raise click.UsageError("--cursor is not one that a listing of these queues and states has shown")
    return Place(queue, JobState(state), cursor or None)


async def _list(
    store: Store, names: Sequence[str] | None, states: Sequence[JobState], start: Place | None, limit: int
) -> Page:
    found: list[JobSummary] = []
    for place in _places(await store.queues(names), states, start):
        cursor = place.cursor
        # A page of the store's may be shorter than asked for although there are more.
        while True:
            room = limit - len(found)
            part = await store.operations.jobs(place.queue, place.state, limit=room or 1, cursor=cursor, **store.on)
            if not room and part.jobs:
                return Page(found, place._replace(cursor=cursor))
            found += part.jobs
            cursor = part.cursor
            if cursor is None:
                break
            if len(found) >= limit:
                return Page(found, place._replace(cursor=cursor))
    return Page(found)


def _places(names: Sequence[str], states: Sequence[JobState], start: Place | None) -> Iterator[Place]:
    """Yield what is to be listed, in order, from the start on. A queue that is gone meanwhile is passed over."""
    if start is not None:
        after = names[names.index(start.queue) :] if start.queue in names else [q for q in names if q > start.queue]
        names = after
    for name in names:
        for state in states:
            if start is None or name != start.queue or states.index(state) > states.index(start.state):
                yield Place(name, state)
            elif state == start.state:
                yield start


def _print_json(page: Page) -> None:
    rows = [{**_row(job), "seconds": job.seconds} for job in page.jobs]
    say(output.as_json({"jobs": rows, "cursor": None if page.rest is None else str(page.rest)}))


def _print_table(page: Page) -> None:
    say(table((*_COLUMNS, "time"), [(*_row(job).values(), _when(job)) for job in page.jobs]))
    if page.rest is not None:
        note(f"there are more: go on with --cursor {output.inert(page.rest)}")


def _row(job: JobSummary) -> dict[str, Any]:
    # A record that cannot be read has no name.
    return {column: getattr(job, column) for column in _COLUMNS} | {"name": job.name or None}


def _when(job: JobSummary) -> str | None:
    if job.seconds is None:
        return None
    if job.state is JobState.RUNNING:
        return f"lapses in {age(job.seconds)}" if job.seconds >= 0 else f"lapsed {age(-job.seconds)} ago"
    return f"due in {age(job.seconds)}" if job.state is JobState.DELAYED else f"for {age(job.seconds)}"

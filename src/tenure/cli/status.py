"""``tenure status``."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.cli import output
from tenure.cli.options import json_option, queues, store_options
from tenure.cli.output import age, say, table
from tenure.cli.store import Store, Where, operate
from tenure.queue import Counts

_COLUMNS = ("ready", "delayed", "leased", "lapsed", "failed", "unreadable")


@click.command()
@queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
@json_option
@store_options
def status(names: tuple[str, ...] | None, *, as_json: bool, **where: Any) -> None:
    """Count the jobs of each queue.

    Leased jobs are running, or were when their worker died: lapsed ones are past their deadline and go to the next
    worker that claims.
    """
    counted = operate(Where(**where), lambda store: _count(store, names))
    (_print_json if as_json else _print_table)(counted)


async def _count(store: Store, names: Sequence[str] | None) -> Sequence[tuple[str, Counts]]:
    return [(name, await store.counts(name)) for name in await store.queues(names)]


def _print_json(counted: Sequence[tuple[str, Counts]]) -> None:
    rows = [
        {"queue": name, **{column: getattr(counts, column) for column in _COLUMNS}, "oldest_age": counts.oldest_age}
        for name, counts in counted
    ]
    say(output.as_json({"queues": rows}))


def _print_table(counted: Sequence[tuple[str, Counts]]) -> None:
    rows = [
        (name, *(getattr(counts, column) for column in _COLUMNS), age(counts.oldest_age)) for name, counts in counted
    ]
    say(table(("queue", *_COLUMNS, "oldest"), rows))

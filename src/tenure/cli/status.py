"""``tenure status``."""

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from tenure.cli import output
from tenure.cli.options import json_option, queues, store_options
from tenure.cli.output import age, say, table
from tenure.cli.store import Store, Where, operate
from tenure.operations import QueueOverview, overview
from tenure.outgoing import OutboxLag

_COLUMNS: Final = ("ready", "delayed", "leased", "lapsed", "failed", "unreadable", "size")


@click.command()
@queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
@json_option
@store_options
def status(names: tuple[str, ...] | None, *, as_json: bool, **where: Any) -> None:
    """Count the jobs of each queue.

    Leased jobs are running, or were when their worker died: lapsed ones are past their deadline and go to the next
    worker that claims. The size is what waits: ready, delayed and lapsed. Where an outbox is configured, a second table
    tells what waits in it for a relay.
    """
    counted = operate(Where(**where), lambda store: _count(store, names))
    (_print_json if as_json else _print_table)(*counted)


async def _count(
    store: Store, names: Sequence[str] | None
) -> tuple[Sequence[QueueOverview], Sequence[OutboxLag] | None]:
    counted = await overview(store.operations, await store.queues(names), **store.on)
    return counted, await store.outbox(names)


def _print_json(counted: Sequence[QueueOverview], waiting: Sequence[OutboxLag] | None) -> None:
    rows = [
        {
            "queue": queue.name,
            **{column: getattr(queue.counts, column) for column in _COLUMNS},
            "oldest_age": queue.counts.oldest_age,
            "paused": queue.paused,
        }
        for queue in counted
    ]
    more = {} if waiting is None else {"outbox": [msgspec.structs.asdict(one) for one in waiting]}
    say(output.as_json({"queues": rows, **more}))


def _print_table(counted: Sequence[QueueOverview], waiting: Sequence[OutboxLag] | None) -> None:
    rows = [
        (
            queue.name,
            *(getattr(queue.counts, column) for column in _COLUMNS),
            age(queue.counts.oldest_age),
            "yes" if queue.paused else None,
        )
        for queue in counted
    ]
    say(table(("queue", *_COLUMNS, "oldest", "paused"), rows))
    if waiting:
        say("\nin the outbox")
        rows = [(one.connection, one.queue, one.jobs, age(one.oldest_age)) for one in waiting]
        say(table(("connection", "queue", "jobs", "oldest"), rows))

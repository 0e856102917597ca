"""``tenure forget``."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.cli import failures
from tenure.cli.errors import CommandFailed
from tenure.cli.options import job_ids, queues, store_options
from tenure.cli.output import say
from tenure.cli.store import Store, Where, operate


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, callback=job_ids)
@queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
@store_options
def forget(ids: tuple[str, ...], names: tuple[str, ...] | None, **where: Any) -> None:
    """Remove failed jobs for good."""
    operate(Where(**where), lambda store: _forget(store, names, ids))


async def _forget(store: Store, names: Sequence[str] | None, ids: Sequence[str]) -> None:
    # All are found before the first is removed: a mistyped id changes nothing.
    records = [await failures.find(store, names, job_id) for job_id in ids]
    answers = await store.failures.forget(records)
    for record, forgotten in zip(records, answers, strict=True):
        if forgotten:
            say(f"forgot {record.id}")
    if missing := [record.id for record, forgotten in zip(records, answers, strict=True) if not forgotten]:
        raise CommandFailed(f"no longer among the failed jobs: {', '.join(missing)}")

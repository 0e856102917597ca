"""``tenure retry``."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.cli import failures
from tenure.cli.errors import CommandFailed
from tenure.cli.options import job_ids, queues, spoken, store_options
from tenure.cli.output import say
from tenure.cli.store import Store, Where, operate


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, callback=job_ids)
@spoken("--all", "everything", is_flag=True, help="Retry all that failed until now; needs --force.")
@spoken("--force", is_flag=True, help="Confirm --all.")
@queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
@store_options
def retry(ids: tuple[str, ...], names: tuple[str, ...] | None, *, everything: bool, force: bool, **where: Any) -> None:
    """Make failed jobs ready again, with all their attempts before them.

    A job that fails again at once is not retried again by the same command.
    """
    if everything == bool(ids):
        raise click.UsageError("Name the jobs by their ids, or give --all")
    if everything and not force:
        raise click.UsageError("--all retries every failed job: confirm it with --force")
    if everything:
        say(f"retried {operate(Where(**where), lambda store: _all(store, names)):,}")
    else:
        operate(Where(**where), lambda store: _some(store, names, ids))


async def _all(store: Store, names: Sequence[str] | None) -> int:
    return sum([await failures.retry_all(store, name) for name in await store.queues(names)])


async def _some(store: Store, names: Sequence[str] | None, ids: Sequence[str]) -> None:
    # All are found before the first is retried: a mistyped id changes nothing.
    records = [await failures.find(store, names, job_id) for job_id in ids]
    answers = await store.failures.retry(records)
    for record, retried in zip(records, answers, strict=True):
        if retried:
            say(f"retried {record.id}")
    if missing := [record.id for record, retried in zip(records, answers, strict=True) if not retried]:
        raise CommandFailed(f"no longer among the failed jobs: {', '.join(missing)}")

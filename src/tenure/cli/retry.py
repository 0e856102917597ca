"""``tenure retry``."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.cli import failures
from tenure.cli.errors import CommandFailed
from tenure.cli.options import job_ids, queues, spoken, store_options
from tenure.cli.output import say
from tenure.cli.store import Store, Where, operate
from tenure.operations import Retried


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
    answers = operate(Where(**where), lambda store: _retry(store, names, None if everything else ids))
    retried = [answer.id for answer in answers if answer.outcome == "retried"]
    if everything:
        say(f"retried {len(retried):,}")
    else:
        for job_id in retried:
            say(f"retried {job_id}")
    _judge([answer for answer in answers if answer.outcome == "refused" or (ids and answer.outcome == "gone")])


async def _retry(store: Store, names: Sequence[str] | None, ids: Sequence[str] | None) -> Sequence[Retried]:
    if ids is None:
        return [answer for name in await store.queues(names) for answer in await store.retry(name, None)]
    # All are found before the first is retried: a mistyped id changes nothing.
    records = [await failures.find(store, names, job_id) for job_id in ids]
    return [answer for record in records for answer in await store.retry(record.queue, [record.id])]


def _judge(left: Sequence[Retried]) -> None:
    if left:
        more = f", and {len(left) - 1:,} more" if len(left) > 1 else ""
        raise CommandFailed(f"not retried: {left[0].id}, {left[0].problem}{more}")

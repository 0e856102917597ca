"""``tenure retry``."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.cli.errors import CommandFailed
from tenure.cli.finding import FAILED, find
from tenure.cli.options import chosen_queues, job_ids, job_name, spoken, store_options
from tenure.cli.output import say
from tenure.cli.store import Store, Where, operate
from tenure.operations import Retried


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, callback=job_ids)
@spoken("--all", "everything", is_flag=True, help="Retry all that failed until now; needs --force.")
@spoken("--force", is_flag=True, help="Confirm --all.")
@spoken("--name", "job", metavar="NAME", callback=job_name, help="Retry what failed of this job, by its name.")
@chosen_queues
@store_options
def retry(
    ids: tuple[str, ...],
    job: str | None,
    names: tuple[str, ...] | None,
    *,
    everything: bool,
    force: bool,
    **where: Any,
) -> None:
    """Make failed jobs ready again, with all their attempts before them.

    Without IDs, those of the queues of --queue, of the job of --name, or --all. A job that fails again at once is not
    retried again by the same command.
    """
    if ids and (everything or job):
        raise click.UsageError(f"Name the jobs by their ids, or give {'--all' if everything else '--name'}")
    if not (ids or everything or job or names):
        raise click.UsageError("Name the jobs by their ids, or give --queue, --name or --all")
    if everything and not force:
        raise click.UsageError("--all retries every failed job: confirm it with --force")
    answers = operate(Where(**where), lambda store: _retry(store, names, ids, job))
    retried = [answer.id for answer in answers if answer.outcome == "retried"]
    if ids:
        for job_id in retried:
            say(f"retried {job_id}")
    else:
        say(f"retried {len(retried)}")
    _judge([answer for answer in answers if answer.outcome == "refused" or (ids and answer.outcome == "gone")])


async def _retry(store: Store, names: Sequence[str] | None, ids: Sequence[str], job: str | None) -> Sequence[Retried]:
    if not ids:
        return [
            answer
            for name in await store.queues(names)
            for answer in await store.operations.retry(name, name=job, **store.on)
        ]
    answers: dict[str, Retried] = {}
    for name, there in (await find(store, names, ids, FAILED, "failed job")).items():
        answers |= {answer.id: answer for answer in await store.operations.retry(name, there, **store.on)}
    return [answers[job_id] for job_id in ids]


def _judge(left: Sequence[Retried]) -> None:
    if left:
        more = f", and {len(left) - 1:,} more" if len(left) > 1 else ""
        raise CommandFailed(f"not retried: {left[0].id}, {left[0].problem}{more}")

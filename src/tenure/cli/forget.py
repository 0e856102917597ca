"""``tenure forget``."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.cli.errors import CommandFailed
from tenure.cli.finding import FAILED, find
from tenure.cli.options import chosen_queues, job_ids, store_options
from tenure.cli.output import say
from tenure.cli.store import Store, Where, operate


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, callback=job_ids)
@chosen_queues
@store_options
def forget(ids: tuple[str, ...], names: tuple[str, ...] | None, **where: Any) -> None:
    """Remove failed jobs for good."""
    forgotten = operate(Where(**where), lambda store: _forget(store, names, ids))
    for job_id in forgotten:
        say(f"forgot {job_id}")
    if missing := [job_id for job_id in ids if job_id not in forgotten]:
        raise CommandFailed(f"no longer among the failed jobs: {', '.join(missing)}")


async def _forget(store: Store, names: Sequence[str] | None, ids: Sequence[str]) -> Sequence[str]:
    forgotten: set[str] = set()
    for name, there in (await find(store, names, ids, FAILED, "failed job")).items():
        answers = await store.operations.forget(name, there, **store.on)
        forgotten.update(job_id for job_id, done in zip(there, answers, strict=True) if done)
    return [job_id for job_id in ids if job_id in forgotten]

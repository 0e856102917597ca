"""``tenure cancel``."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from tenure.cli.errors import CommandFailed
from tenure.cli.finding import OPEN, find
from tenure.cli.options import chosen_queues, job_ids, store_options
from tenure.cli.output import say
from tenure.cli.store import Store, Where, operate
from tenure.queue import Cancelled


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, callback=job_ids)
@chosen_queues
@store_options
def cancel(ids: tuple[str, ...], names: tuple[str, ...] | None, **where: Any) -> None:
    """Remove jobs that wait, and ask the workers of those that run to stop them."""
    answers = operate(Where(**where), lambda store: _cancel(store, names, ids))
    for job_id in ids:
        if answers[job_id] is Cancelled.REMOVED:
            say(f"cancelled {job_id}")
        elif answers[job_id] is Cancelled.REQUESTED:
            say(f"requested {job_id}: it runs, and its worker is told")
    if ended := [job_id for job_id in ids if answers[job_id] is Cancelled.NOT_FOUND]:
        raise CommandFailed(f"ended meanwhile: {', '.join(ended)}")


async def _cancel(store: Store, names: Sequence[str] | None, ids: Sequence[str]) -> Mapping[str, Cancelled]:
    answers: dict[str, Cancelled] = {}
    for name, there in (await find(store, names, ids, OPEN, "waiting or running job")).items():
        answers |= zip(there, await store.operations.cancel(name, there, **store.on), strict=True)
    return answers

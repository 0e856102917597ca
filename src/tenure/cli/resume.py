"""``tenure resume``."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from tenure.cli.options import queue_names, store_options
from tenure.cli.output import say
from tenure.cli.store import Store, Where, operate


@click.command()
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True, callback=queue_names)
@store_options
def resume(names: tuple[str, ...], **where: Any) -> None:
    """Hand out the jobs of paused queues again."""
    answers = operate(Where(**where), lambda store: _resume(store, names))
    for name in names:
        say(f"resumed {name}" if answers[name] else f"{name} was not paused")


async def _resume(store: Store, names: Sequence[str]) -> Mapping[str, bool]:
    return {name: await store.operations.resume(name, **store.on) for name in names}

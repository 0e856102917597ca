"""``tenure pause``."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from tenure.cli.options import queue_names, store_options
from tenure.cli.output import note, say
from tenure.cli.store import Store, Where, operate


@click.command()
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True, callback=queue_names)
@store_options
def pause(names: tuple[str, ...], **where: Any) -> None:
    """Stop handing out the jobs of queues; what runs and all else goes on.

    Jobs may still be pushed, settled, cancelled and cleared. `tenure resume` ends it.
    """
    answers, unknown = operate(Where(**where), lambda store: _pause(store, names))
    for name in names:
        say(f"paused {name}" if answers[name] else f"{name} was paused already")
    if unknown:
        note(f"nothing was ever pushed to {', '.join(unknown)}")


async def _pause(store: Store, names: Sequence[str]) -> tuple[Mapping[str, bool], Sequence[str]]:
    answers = {name: await store.operations.pause(name, **store.on) for name in names}
    known = frozenset(await store.queues())
    return answers, [name for name in names if name not in known]

"""``tenure prune``."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.cli.options import chosen_queues, finite, spoken, store_options
from tenure.cli.output import say
from tenure.cli.store import Store, Where, operate


@click.command()
@spoken(
    "--hours", type=float, metavar="N", required=True, callback=finite("hours", above=True),
    help="Those that failed at least so long ago.",
)  # fmt: skip
@chosen_queues
@store_options
def prune(hours: float, names: tuple[str, ...] | None, **where: Any) -> None:
    """Remove old failed jobs for good, and print their exact number."""
    say(f"pruned {operate(Where(**where), lambda store: _prune(store, names, hours))}")


async def _prune(store: Store, names: Sequence[str] | None, hours: float) -> int:
    return sum([await store.operations.prune(name, hours=hours, **store.on) for name in await store.queues(names)])

"""``tenure clear``."""

from typing import Any

import click

from tenure.cli.options import queue_name, spoken, store_options
from tenure.cli.output import say
from tenure.cli.store import Where, operate


@click.command()
@spoken("-q", "--queue", "name", metavar="NAME", required=True, callback=queue_name, help="The queue.")
@spoken("--force", is_flag=True, help="Confirm it.")
@store_options
def clear(name: str, *, force: bool, **where: Any) -> None:
    """Remove all ready and delayed jobs of a queue, and print their exact number.

    Jobs that run, and those whose leases have lapsed, stay; so do failed ones.
    """
    if not force:
        raise click.UsageError(f"This removes all jobs that wait in queue {name}: confirm it with --force")
    number = operate(Where(**where), lambda store: store.operations.clear(name, **store.on))
    say(f"cleared {number}")

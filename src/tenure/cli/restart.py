"""``tenure restart``."""

from typing import Any

import click

from tenure.cli.options import store_options
from tenure.cli.output import say
from tenure.cli.store import Where, operate


@click.command()
@store_options
def restart(**where: Any) -> None:
    """Ask all workers of the namespace to finish what runs and exit.

    Each looks between attempts, about once a second, and ends with 0: whatever supervises it starts it again.
    """
    operate(Where(**where), lambda store: store.operations.restart(**store.on))
    say("restart requested")

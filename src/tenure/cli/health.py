"""``tenure health``."""

from typing import Any

import click
import msgspec

from tenure.cli import output
from tenure.cli.errors import ExitCode
from tenure.cli.opened import with_app
from tenure.cli.options import json_option, queues, seconds, store_options
from tenure.cli.output import say
from tenure.cli.store import Where
from tenure.health import TIMEOUT, Health


@click.command()
@queues("-q", "--queue", "names", help="Count the jobs of these queues.  [default: default]")
@seconds("--within", default=TIMEOUT, show_default=True, above=True, help="How long the store may take to answer.")
@json_option
@store_options
def health(names: tuple[str, ...] | None, *, within: float, as_json: bool, **where: Any) -> ExitCode:
    """Tell whether the store can be used: for probes.

    One cheap read through the queue's own keys. Ends with 0 when the store is ready, and with 1 and the reason when it
    is not.
    """
    place = Where(**where)
    found = with_app(place, lambda app: app.health(place.connection, queues=names or ("default",), timeout=within))
    say(output.as_json(msgspec.to_builtins(found)) if as_json else _line(found))
    return ExitCode.DONE if found.ready else ExitCode.FAILED


def _line(found: Health) -> str:
    return f"ready, {found.waiting:,} waiting" if found.ready else output.inert(f"not ready: {found.reason}")

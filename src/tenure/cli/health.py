"""``tenure health``."""

from typing import Any

import click
import msgspec

from tenure.cli import output
from tenure.cli.address import http_option
from tenure.cli.errors import ExitCode
from tenure.cli.opened import with_app
from tenure.cli.options import json_option, queues, seconds, spoken, store_options
from tenure.cli.output import say
from tenure.cli.store import Where
from tenure.health import TIMEOUT, Health
from tenure.web.asking import asked
from tenure.web.paths import LIVE
from tenure.web.server import Address


@click.command()
@queues("-q", "--queue", "names", help="Count the jobs of these queues.  [default: default]")
@seconds("--within", default=TIMEOUT, show_default=True, above=True, help="How long an answer may take.")
@spoken("--live", is_flag=True, help="Ask the worker at --http whether it lives, instead of the store.")
@http_option(help="Where the worker answers that runs with the same option.")
@json_option
@store_options
def health(
    names: tuple[str, ...] | None, *, within: float, live: bool, http: Address | None, as_json: bool, **where: Any
) -> ExitCode:
    """Tell whether the store can be used: for probes.

    One cheap read through the queue's own keys. Ends with 0 when the store is ready, and with 1 and the reason when it
    is not. With --live, the same about the worker that answers at --http; its store may be away.
    """
    if live:
        if http is None:
            raise click.UsageError("--live needs --http [HOST:]PORT, as the worker has it")
        illness = asked(http, LIVE, within)
        say(output.as_json({"live": not illness, "reason": illness}) if as_json else _life(illness))
        return ExitCode.FAILED if illness else ExitCode.DONE
    place = Where(**where)
    found = with_app(place, lambda app: app.health(place.connection, queues=names or ("default",), timeout=within))
    say(output.as_json(msgspec.to_builtins(found)) if as_json else _line(found))
    return ExitCode.DONE if found.ready else ExitCode.FAILED


def _line(found: Health) -> str:
    return f"ready, {found.waiting:,} waiting" if found.ready else output.inert(f"not ready: {found.reason}")


def _life(illness: str) -> str:
    return output.inert(f"not alive: {illness}") if illness else "alive"

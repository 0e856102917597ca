"""``tenure doctor``."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import click
import msgspec

from tenure.app import Tenure
from tenure.cli import output
from tenure.cli.errors import ExitCode
from tenure.cli.opened import with_app
from tenure.cli.options import json_option, setting, store_options
from tenure.cli.output import inert, say
from tenure.cli.store import Where
from tenure.errors import NotSupported
from tenure.operating import Diagnosis, Finding, Severity
from tenure.queue import feature

_PLURAL = {Severity.SERIOUS: "serious", Severity.WARNING: "warnings", Severity.NOTE: "notes"}
_SINGULAR = {Severity.SERIOUS: "serious", Severity.WARNING: "warning", Severity.NOTE: "note"}


@click.command()
@setting(
    "--durability",
    type=click.IntRange(1, 3),
    default=1,
    show_default=True,
    help="The highest class that pushes ask for.",
)
@json_option
@store_options
def doctor(*, durability: int, as_json: bool, **where: Any) -> ExitCode:
    """Look at the store for what loses jobs, or will.

    Each finding tells what it risks and how to mend it. Changes nothing; ends with 1 when a finding is serious.
    """
    place = Where(**where)
    found = with_app(place, lambda app: _diagnosed(app, place.connection, durability))
    (_print_json if as_json else _print)(found)
    serious = any(finding.severity is Severity.SERIOUS for finding in found)
    return ExitCode.FAILED if serious else ExitCode.DONE


async def _diagnosed(app: Tenure, connection: str, durability: int) -> Sequence[Finding]:
    queue = app.queue(connection)
    if not feature(queue, Diagnosis):
        raise NotSupported(queue.capabilities.driver, "a diagnosis", "there is no store to look at")
    return await cast("Diagnosis", queue).diagnose(durability=durability)


def _print_json(found: Sequence[Finding]) -> None:
    say(output.as_json({"findings": msgspec.to_builtins(found)}))


def _print(found: Sequence[Finding]) -> None:
    for finding in found:
        say(inert(f"{finding.severity}: {finding.found}  [{finding.check}]"))
        say(inert(f"    risk:   {finding.risk}"))
        say(inert(f"    remedy: {finding.remedy}"))
    numbers = Counter(finding.severity for finding in found)
    counted = [
        f"{n} {(_SINGULAR if n == 1 else _PLURAL)[severity]}" for severity in Severity if (n := numbers[severity])
    ]
    say(", ".join(counted) or "nothing found")

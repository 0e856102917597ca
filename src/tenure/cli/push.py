"""``tenure push``."""

import json
from typing import Any

import click
import msgspec

from tenure.app import Tenure
from tenure.call import Call
from tenure.cli.errors import CommandFailed, ExitCode
from tenure.cli.options import seconds, setting, spoken
from tenure.cli.output import note, say
from tenure.cli.target import find_app
from tenure.errors import NotRegistered, Undecodable
from tenure.naming import shown
from tenure.options import UNSET


@click.command()
@click.argument("name")
@click.argument("arguments", metavar="[ARGS]", default="[]")
@spoken("--kwargs", "keywords", metavar="JSON", default="{}", help="The arguments by name, as a JSON object.")
@spoken("--id", "id_", metavar="ID", help="The job's id; an existing job of this id is left as it is.")
@setting("--app", "target", metavar="MODULE:ATTRIBUTE", help="The application.  [default: app under [tool.tenure]]")
@setting("--queue", metavar="NAME", help="The queue.  [default: the job's own]")
@seconds("--delay", help="Not before so much time has passed.")
@setting("--priority", type=click.IntRange(-100, 100), help="Higher first.")
@setting("--connection", help="The named connection.")
def push(name: str, arguments: str, *, keywords: str, id_: str | None, target: str | None, **options: Any) -> None:
    """Push the job NAME with ARGS, a JSON list, and print its id.

    The arguments are checked against the job's own parameters, and nothing is sent that would not fit.
    """
    app = find_app(target)
    given = {key: value for key, value in {**options, "id": id_}.items() if value is not None}
    call = _call(app, name, _json(arguments, list, "ARGS"), _json(keywords, dict, "--kwargs"))
    try:
        handle = app.push_sync(call.options(**given))
    finally:
        app.close_sync()
    say(handle.id)
    if handle.held:
        note(f"a job {handle.id} exists: nothing was changed")


def _call(app: Tenure, name: str, arguments: bytes, keywords: bytes) -> Call[Any]:
    definition = app.registry.get(name)
    if definition is None:
        raise NotRegistered(f"{shown(name)} is not a job of this application; nothing was sent")
    try:
        args, kwargs = definition.codec.decode(msgspec.Raw(arguments), msgspec.Raw(keywords))
    except Undecodable as error:
        raise CommandFailed(f"the arguments do not fit {definition.name}: {error}", ExitCode.USAGE) from None
    return Call(definition, *definition.encode(args, kwargs), UNSET)


def _json(text: str, kind: type, where: str) -> bytes:
    """Check the text to be JSON of this kind, and return it as it is: integers of any size stay what they are."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise click.UsageError(f"{where} is not JSON") from None
    if not isinstance(value, kind):
        raise click.UsageError(f"{where} must be a JSON {'list' if kind is list else 'object'}")
    return text.encode()

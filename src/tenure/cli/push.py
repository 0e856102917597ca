"""``tenure push``."""

import inspect
import json
from typing import Any, TypeVar

import click
import msgspec

from tenure.app import Tenure
from tenure.call import Call
from tenure.cli.options import seconds, setting, spoken
from tenure.cli.output import note, say
from tenure.cli.target import find_app
from tenure.errors import InvalidOption, NotRegistered, Undecodable
from tenure.naming import shown

T = TypeVar("T")


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
    call = call_of(app, name, arguments, keywords)
    try:
        handle = app.push_sync(call.options(**given))
    finally:
        app.close_sync()
    say(handle.id)
    if handle.held:
        note(f"a job {handle.id} exists: nothing was changed")


def call_of(app: Tenure, name: str, arguments: str, keywords: str) -> Call[Any]:
    """Return a call of a job by its name and JSON arguments; raises ``Refused`` for what does not fit."""
    definition = app.registry.get(name)
    if definition is None:
        raise NotRegistered(f"{shown(name)} is not a job of this application; nothing was sent")
    args, kwargs = _json(arguments, list, "ARGS"), _json(keywords, dict, "--kwargs")
    try:
        inspect.Signature(definition.parameters).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidOption(f"{definition.name}: {error}; nothing was sent") from None
    try:
        # The text itself and not what was read from it: 1e400 would have become infinity, which has no wire form.
        restored = definition.codec.decode(msgspec.Raw(arguments.encode()), msgspec.Raw(keywords.encode()))
    except (Undecodable, UnicodeEncodeError) as error:
        raise InvalidOption(f"{definition.name}: {error}; nothing was sent") from None
    return Call(definition, *definition.encode(*restored))


def _json(text: str, kind: type[T], where: str) -> T:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise click.UsageError(f"{where} is not JSON") from None
    if not isinstance(value, kind):
        raise click.UsageError(f"{where} must be a JSON {'list' if kind is list else 'object'}")
    return value

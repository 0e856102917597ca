"""``tenure unreadable``: the records that nobody could read."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from tenure.cli import output
from tenure.cli.errors import CommandFailed, ExitCode
from tenure.cli.options import chosen_queues, json_option, queues, refuse_misplaced, setting, spoken, store_options
from tenure.cli.output import hand_over, note, say, table, utc
from tenure.cli.store import Store, Where, operate
from tenure.operating import UnreadableRecord

_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_COLUMNS: Final = ("key", "queue", "id", "reason", "bytes", "set_aside_at")

_queues = queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
_limit = setting(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many, oldest first."
)


@click.group(invoke_without_command=True)
@_queues
@_limit
@json_option
@store_options
@click.pass_context
def unreadable(
    ctx: click.Context, /, names: tuple[str, ...] | None, limit: int, *, as_json: bool, **where: Any
) -> None:
    """List records that nobody could read, which were set aside byte for byte."""
    if ctx.invoked_subcommand is not None:
        refuse_misplaced(ctx)
        return
    _show(names, limit, as_json=as_json, where=Where(**where))


@unreadable.command("list")
@_queues
@_limit
@json_option
@store_options
def list_(names: tuple[str, ...] | None, limit: int, *, as_json: bool, **where: Any) -> None:
    """List them; the same as without a subcommand."""
    _show(names, limit, as_json=as_json, where=Where(**where))


def _show(names: Sequence[str] | None, limit: int, *, as_json: bool, where: Where) -> None:
    records = operate(where, lambda store: _list(store, names, limit))
    rows = [_row(record) for record in records[:limit]]
    if as_json:
        say(output.as_json({"unreadable": rows}))
    else:
        heads = [column.replace("_", " ") for column in _COLUMNS]
        say(table(heads, [[row[column] for column in _COLUMNS] for row in rows]))
    if len(records) > limit:
        note(f"there are more: the oldest {limit} are shown (--limit)")


async def _list(store: Store, names: Sequence[str] | None, limit: int) -> Sequence[UnreadableRecord]:
    records = [
        record
        for name in await store.queues(names)
        for record in await store.operations.unreadable(name, limit=limit + 1, **store.on)
    ]
    return sorted(records, key=lambda record: record.set_aside_at)[: limit + 1]


def _row(record: UnreadableRecord) -> dict[str, Any]:
    return {
        "key": record.key,
        "queue": record.queue,
        "id": record.id,
        "reason": record.reason,
        "bytes": record.size,
        "set_aside_at": utc(record.set_aside_at),
    }


def _keys(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for key in value:
        if not _KEY.fullmatch(key):
            raise click.BadParameter("a key is 1 to 64 of letters, digits, '.', '_' and '-', as the listing shows it")
    return tuple(dict.fromkeys(value))


@unreadable.command()
@click.argument("key", callback=lambda ctx, param, value: _keys(ctx, param, (value,))[0])
@queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
@store_options
def export(key: str, names: tuple[str, ...] | None, **where: Any) -> None:
    """Write a record's bytes to standard output, as they are; a terminal is refused."""
    if sys.stdout.isatty():
        raise CommandFailed(
            f"its bytes could do anything to a terminal: write them to a file, tenure unreadable export {key} > file",
            ExitCode.USAGE,
        )
    [[content]] = operate(Where(**where), lambda store: _find(store, names, [key])).values()
    hand_over(content[1])


@unreadable.command()
@click.argument("chosen", metavar="KEY...", nargs=-1, required=True, callback=_keys)
@spoken("--force", is_flag=True, help="Confirm it.")
@chosen_queues
@store_options
def drop(chosen: tuple[str, ...], names: tuple[str, ...] | None, *, force: bool, **where: Any) -> None:
    """Remove records for good."""
    if not force:
        raise click.UsageError("What is dropped is gone for good: confirm it with --force")
    dropped = operate(Where(**where), lambda store: _drop(store, names, chosen))
    for key in chosen:
        if key in dropped:
            say(f"dropped {key}")
    if missing := [key for key in chosen if key not in dropped]:
        raise CommandFailed(f"dropped by someone else meanwhile: {', '.join(missing)}")


async def _drop(store: Store, names: Sequence[str] | None, keys: Sequence[str]) -> frozenset[str]:
    dropped: set[str] = set()
    for name, found in (await _find(store, names, keys)).items():
        there = [key for key, _ in found]
        answers = await store.operations.drop_unreadable(name, there, **store.on)
        dropped.update(key for key, done in zip(there, answers, strict=True) if done)
    return frozenset(dropped)


async def _find(
    store: Store, names: Sequence[str] | None, keys: Sequence[str]
) -> Mapping[str, Sequence[tuple[str, bytes]]]:
    """Return the records of the keys by queue; raises ``CommandFailed`` when one is nowhere, or in several queues."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    chosen = await store.queues(names)
    for key in keys:
        places = []
        for name in chosen:
            content = await store.operations.unreadable_bytes(name, key, **store.on)
            if content is not None:
                places.append((name, content))
        if not places:
            raise CommandFailed(f"there is no unreadable record {key}")
        if len(places) > 1:
            where = ", ".join(name for name, _ in places)
            raise CommandFailed(
                f"there is an unreadable record {key} in several queues ({where}): choose one with --queue"
            )
        found.setdefault(places[0][0], []).append((key, places[0][1]))
    return found

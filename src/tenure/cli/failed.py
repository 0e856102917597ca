"""``tenure failed`` and ``tenure failed show``."""

import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from tenure import envelope
from tenure.cli import failures, output
from tenure.cli.errors import CommandFailed, ExitCode
from tenure.cli.finding import FAILED, find
from tenure.cli.options import job_ids, json_option, queues, refuse_misplaced, setting, spoken, store_options
from tenure.cli.output import inert_lines, note, say, table
from tenure.cli.store import Store, Where, operate
from tenure.errors import Undecodable
from tenure.queue import FailedRecord


@click.group(invoke_without_command=True)
@queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
@setting("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most this many, oldest first.")
@json_option
@store_options
@click.pass_context
def failed(ctx: click.Context, /, names: tuple[str, ...] | None, limit: int, *, as_json: bool, **where: Any) -> None:
    """List failed jobs, without their arguments and their errors' texts.

    What those are, `tenure failed show ID --reveal` tells.
    """
    if ctx.invoked_subcommand is not None:
        refuse_misplaced(ctx)
        return
    records = operate(Where(**where), lambda store: _list(store, names, limit))
    rows = [failures.summary(record) for record in records[:limit]]
    _print(rows, in_json=as_json)
    if len(records) > limit:
        note(f"there are more: the oldest {limit} are shown (--limit)")


async def _list(store: Store, names: Sequence[str] | None, limit: int) -> Sequence[FailedRecord]:
    """Return the oldest of all queues together, one more than asked for when there are more."""
    records = [
        record
        for name in await store.queues(names)
        for record in await store.operations.failed(name, limit=limit + 1, **store.on)
    ]
    return sorted(records, key=lambda record: record.failed_at)[: limit + 1]


def _print(rows: Sequence[dict[str, Any]], *, in_json: bool) -> None:
    if in_json:
        say(output.as_json({"failed": rows}))
        return
    columns = ("id", "queue", "name", "error", "attempts", "failed_at")
    say(table([column.replace("_", " ") for column in columns], [[row[column] for column in columns] for row in rows]))


@failed.command()
@click.argument("job_id", metavar="ID", callback=lambda ctx, param, value: job_ids(ctx, param, (value,))[0])
@queues("-q", "--queue", "names", help="Only these queues.  [default: all]")
@spoken("--reveal", is_flag=True, help="Show the arguments and the error's text too; asks first.")
@spoken("--yes", is_flag=True, help="Do not ask.")
@json_option
@store_options
def show(job_id: str, names: tuple[str, ...] | None, *, reveal: bool, yes: bool, as_json: bool, **where: Any) -> None:
    """Show one failed job."""
    if reveal and not yes:
        _confirm()
    record = operate(Where(**where), lambda store: _find(store, names, job_id))
    shown = _details(record) | (_revealed(record) if reveal else {})
    if as_json:
        say(output.as_json(shown))
        return
    width = max(map(len, shown)) + 2
    for field, value in shown.items():
        text = value if isinstance(value, str) else "-" if value is None else output.as_json(value)
        lines = inert_lines(text).split("\n")
        say(f"{field.replace('_', ' '):{width}}{lines[0]}")
        for line in lines[1:]:
            say(f"{'':{width}}{line}")


async def _find(store: Store, names: Sequence[str] | None, job_id: str) -> FailedRecord:
    [name] = await find(store, names, [job_id], FAILED, "failed job")
    record = await store.operations.failed_record(name, job_id, **store.on)
    if record is None:
        raise CommandFailed(f"there is no failed job {job_id} any more")
    return record


def _confirm() -> None:
    question = "This shows the job's arguments and the text of its error, which may hold secrets. Go on?"
    if not sys.stdin.isatty():
        raise CommandFailed("--reveal asks first, and there is nobody to ask: give --yes too", ExitCode.USAGE)
    if not click.confirm(question, err=True):
        raise CommandFailed("nothing was shown")


def _details(record: FailedRecord) -> dict[str, Any]:
    return failures.summary(record) | {
        "reason": record.failure.reason,
        "incarnation": record.incarnation,
        "bytes": len(record.envelope),
    }


def _revealed(record: FailedRecord) -> dict[str, Any]:
    shown: dict[str, Any] = {"message": record.failure.message, "traceback": record.failure.traceback.rstrip()}
    try:
        job = envelope.decode(record.envelope)
        parts = {"args": job.args, "kwargs": job.kwargs}
        shown |= {part: msgspec.json.decode(raw) for part, raw in parts.items()} | {"meta": job.meta}
    except (Undecodable, msgspec.DecodeError, ValueError):
        shown["envelope"] = record.envelope.decode("utf-8", "backslashreplace")
    return shown

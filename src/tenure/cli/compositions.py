"""``tenure compositions``: list, show, cancel and prune."""

from collections.abc import Sequence
from typing import Any

import click

from tenure.cli import output
from tenure.cli.errors import CommandFailed
from tenure.cli.options import (
    chosen_queues,
    finite,
    job_ids,
    json_option,
    queues,
    refuse_misplaced,
    setting,
    spoken,
    store_options,
)
from tenure.cli.output import note, say, table, utc
from tenure.cli.store import Store, Where, operate
from tenure.compositions import CompositionState, CompositionStatus

_COLUMNS = ("id", "kind", "name", "queue", "state", "progress", "total", "succeeded", "failed", "cancelled", "created")


@click.group(invoke_without_command=True)
@click.pass_context
@queues("-q", "--queue", "names", help="Only those whose first job's queue is one of these.  [default: all]")
@setting("--state", type=click.Choice([str(state) for state in CompositionState]), help="Only those.  [default: all]")
@setting("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many, the newest first.")
@json_option
@store_options
def compositions(
    ctx: click.Context,
    /,
    names: tuple[str, ...] | None,
    state: str | None,
    limit: int,
    *,
    as_json: bool,
    **where: Any,
) -> None:
    """List chains, batches and workflows: how far they have come, in numbers of jobs."""
    if ctx.invoked_subcommand is not None:
        refuse_misplaced(ctx)
        return
    _show_list(names, state, limit, as_json=as_json, where=where)


@compositions.command("list")
@queues("-q", "--queue", "names", help="Only those whose first job's queue is one of these.  [default: all]")
@setting("--state", type=click.Choice([str(state) for state in CompositionState]), help="Only those.  [default: all]")
@setting("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many, the newest first.")
@json_option
@store_options
def list_(names: tuple[str, ...] | None, state: str | None, limit: int, *, as_json: bool, **where: Any) -> None:
    """Do the same."""
    _show_list(names, state, limit, as_json=as_json, where=where)


def _show_list(
    names: Sequence[str] | None, state: str | None, limit: int, *, as_json: bool, where: dict[str, Any]
) -> None:
    found = operate(Where(**where), lambda store: _list(store, names))
    chosen = [status for status in found if state in {None, status.state}]
    chosen.sort(key=lambda status: (-status.created_at, status.id))
    rows = [_row(status) for status in chosen[:limit]]
    if as_json:
        say(output.as_json({"compositions": rows}))
    else:
        say(table(_COLUMNS, [[row[column] for column in _COLUMNS] for row in rows]))
    if len(chosen) > limit:
        note(f"there are more: the newest {limit} are shown (--limit)")


async def _list(store: Store, names: Sequence[str] | None) -> list[CompositionStatus]:
    found: dict[tuple[str, str], CompositionStatus] = {}
    for name in await store.queues(names):
        cursor: str | None = None
        while True:
            page = await store.operations.compositions.listed(name, limit=500, cursor=cursor, **store.on)
            found |= {(one.home, one.id): one for one in page.compositions}  # those that begin meanwhile may come twice
            cursor = page.cursor
            if cursor is None:
                break
    return list(found.values())


def _row(status: CompositionStatus) -> dict[str, Any]:
    return {
        "id": status.id,
        "kind": str(status.kind),
        "name": status.name or None,
        "queue": status.home,
        "state": str(status.state),
        "progress": status.progress,
        "total": status.total,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "cancelled": status.cancelled,
        "created": utc(status.created_at),
    }


@compositions.command()
@click.argument("composition_id", metavar="ID", callback=lambda ctx, param, value: job_ids(ctx, param, (value,))[0])
@queues("-q", "--queue", "names", help="Look only in these queues.  [default: all]")
@json_option
@store_options
def show(composition_id: str, names: tuple[str, ...] | None, *, as_json: bool, **where: Any) -> None:
    """Show how far one has come."""
    status = operate(Where(**where), lambda store: _find(store, names, composition_id))
    shown = _row(status) | {
        "pending": status.pending,
        "finished": None if status.finished_at is None else utc(status.finished_at),
    }
    if as_json:
        say(output.as_json(shown))
        return
    width = max(map(len, shown)) + 2
    for field, value in shown.items():
        say(f"{field:{width}}{'-' if value is None else output.inert(value)}")


@compositions.command()
@click.argument("composition_id", metavar="ID", callback=lambda ctx, param, value: job_ids(ctx, param, (value,))[0])
@chosen_queues
@store_options
def cancel(composition_id: str, names: tuple[str, ...] | None, **where: Any) -> None:
    """Remove those of its jobs that wait, and ask the workers of those that run to stop them."""
    operate(Where(**where), lambda store: _cancel(store, names, composition_id))
    say(f"cancelled {composition_id}: what runs is told to stop, and what it has done stays done")


async def _cancel(store: Store, names: Sequence[str] | None, composition_id: str) -> None:
    status = await _find(store, names, composition_id)
    if not await store.operations.compositions.cancel(composition_id, queue=status.home, **store.on):
        raise CommandFailed(f"composition {composition_id} is over")


async def _find(store: Store, names: Sequence[str] | None, composition_id: str) -> CompositionStatus:
    for name in await store.queues(names):
        status = await store.operations.compositions.status(composition_id, queue=name, **store.on)
        if status is not None:
            return status
    raise CommandFailed(f"there is no composition {composition_id}: it is unknown, has not begun, or was forgotten")


@compositions.command()
@spoken(
    "--hours", type=float, metavar="N", required=True, callback=finite("hours"),
    help="Those of which all had ended at least so long ago.",
)  # fmt: skip
@chosen_queues
@store_options
def prune(hours: float, names: tuple[str, ...] | None, **where: Any) -> None:
    """Forget those that are over, and print their exact number."""
    say(f"pruned {operate(Where(**where), lambda store: _prune(store, names, hours))}")


async def _prune(store: Store, names: Sequence[str] | None, hours: float) -> int:
    pruned = [
        await store.operations.compositions.prune(hours=hours, queue=name, **store.on)
        for name in await store.queues(names)
    ]
    return sum(pruned)

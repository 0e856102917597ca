"""``tenure relay``."""

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from tenure.app import Tenure
from tenure.cli import logs
from tenure.cli.errors import CommandFailed
from tenure.cli.opened import with_app
from tenure.cli.options import names, setting, spoken, store_options_without_connection
from tenure.cli.store import Where
from tenure.outbox import Relay
from tenure.worker import platform

logger: logging.Logger = logging.getLogger("tenure.relay")


@click.command()
@spoken(
    "--database",
    metavar="URL",
    help="The database that holds the outbox; a password in it can be seen by others on this host.  "
    "[env var: TENURE_OUTBOX_URL, DATABASE_URL]",
)
@names("--connection", "connections", help="Move jobs for these connections alone.  [default: all]")
@setting("--once", is_flag=True, help="Move what waits, and stop.")
@setting("--log-level", type=click.Choice(logs.LEVELS, case_sensitive=False), default="info", show_default=True)
@setting(
    "--log-format",
    type=click.Choice(logs.FORMATS),
    default="auto",
    show_default=True,
    help="Lines of text or of JSON; auto: text on a terminal, JSON elsewhere.",
)
@store_options_without_connection
def relay(
    *,
    database: str | None,
    connections: tuple[str, ...] | None,
    once: bool,
    log_level: str,
    log_format: logs.Format,
    **where: Any,
) -> None:
    """Move jobs from the outbox to the stores that they are for.

    In order per queue, each once. Several relays may run: one at a time moves a queue, the others take over when it
    dies. An outage of the database or of a store does not end a relay. SIGTERM and Ctrl-C end it in order: a call that
    is under way is finished, for five seconds at most, and repeated by the next relay otherwise.
    """
    say = logs.set_up(log_level, log_format)

    async def move(app: Tenure) -> int:
        moving = Relay(app, connections=connections or (), database=database)
        if once:
            return await moving.once()
        stopping = asyncio.Event()
        with _told_to_stop(stopping):
            logger.info("relay started")
            return await moving.run(stopping)

    try:
        moved = with_app(Where(connection="default", **where), move)
    except asyncio.CancelledError:
        raise CommandFailed("broken off by a second signal; the next relay repeats what was under way") from None
    say(f"moved {moved} job{'' if moved == 1 else 's'}")


@contextmanager
def _told_to_stop(stopping: asyncio.Event) -> Iterator[None]:
    """Set the event when the process is asked to end; the second time, what runs is broken off."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def stop() -> None:
        if stopping.is_set() and task is not None:
            task.cancel()
        stopping.set()

    def handler(_: int, __: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    before = {number: signal.signal(number, handler) for number in platform.STOP}
    try:
        yield
    finally:
        for number, old in before.items():
            # None: it was not set from Python, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if old is None else old)

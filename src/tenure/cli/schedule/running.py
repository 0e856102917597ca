"""``tenure schedule run``: a process that fires schedules, and runs no jobs."""

import asyncio
import logging
import signal

import click

from tenure.app import Tenure
from tenure.cli import logs
from tenure.cli.options import setting
from tenure.cli.target import find_app
from tenure.errors import NotSupported
from tenure.schedule import Ticker
from tenure.worker.loops import loop_factory
from tenure.worker.signals import SignalActions, handled

logger: logging.Logger = logging.getLogger("tenure.schedule")


@click.command()
@click.argument("target", metavar="[APP]", required=False)
@setting("--connection", default="default", show_default=True, help="The named connection.")
@setting("--log-level", type=click.Choice(logs.LEVELS, case_sensitive=False), default="info", show_default=True)
@setting(
    "--log-format",
    type=click.Choice(logs.FORMATS),
    default="auto",
    show_default=True,
    help="Lines of text or of JSON; auto: text on a terminal, JSON elsewhere.",
)
def run(target: str | None, connection: str, log_level: str, log_format: logs.Format) -> None:
    """Fire schedules until SIGTERM or Ctrl-C; those of APP's code are stored first.

    Any number of processes may, `tenure worker --with-schedule` among them: each slot fires once. APP is
    module:attribute; without it, the environment's TENURE_APP names it, or app under [tool.tenure] in pyproject.toml.
    """
    say = logs.set_up(log_level, log_format)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app = find_app(target)
        if not app.queue(connection).capabilities.shared:
            raise NotSupported(app.queue(connection).capabilities.driver, "schedules fired by a process of their own")
        ticker = Ticker(app, connection)
        selected = app.infrastructure(connection).selected
        say(f"schedules are fired: store {selected}, {len(app.schedules.in_code)} in code")
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            actions = SignalActions(stop=ticker.stop, quiet=ticker.stop, dump=lambda: None)
            with handled(runner.get_loop(), actions):
                runner.run(_run(app, ticker))
    except KeyboardInterrupt:
        pass  # before there was anything to stop
    say("stopped")


async def _run(app: Tenure, ticker: Ticker) -> None:
    try:
        await ticker.run()
    finally:
        await app.aclose()

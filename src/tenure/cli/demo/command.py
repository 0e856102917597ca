"""``tenure demo``."""

import signal
from collections.abc import Sequence
from pathlib import Path

import click

from tenure.cli.demo import files, verdict
from tenure.cli.demo.expected import plain_loop
from tenure.cli.demo.play import Play
from tenure.cli.demo.screen import Screen, screen
from tenure.cli.demo.stage import Connection, built
from tenure.cli.errors import CommandFailed
from tenure.cli.options import setting


@click.command()
@setting(
    "--connection", type=click.Choice(["sqlite", "redis"]), default="sqlite", show_default=True,
    envvar="TENURE_DEMO_CONNECTION",
    help="A SQLite file, or a Valkey server that the demo starts; both are temporary.",
)  # fmt: skip
@setting("--limit", type=click.IntRange(1), envvar="TENURE_DEMO_LIMIT", help="Only so many files.  [default: all]")
def demo(connection: Connection, limit: int | None) -> None:
    """Watch real work survive a killed worker.

    Every source file of the running Python's standard library is a job that parses it and counts what is in it. Two
    worker processes run them; in the middle, one is killed. In the end all is compared with a plain loop.
    """
    # A supervisor's or a closing terminal's signal ends it as Ctrl-C does: in order.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    show = screen()
    root = files.library()
    with built(connection) as stage:
        found = _material(show, root, limit)
        with show.bar("plain loop", len(found)) as advance:
            expected = plain_loop(found, advance)
        if not expected.errors:
            broken = files.write_broken(stage.journal.parent / "broken")
            show.line(f"all of them parse; {len(broken)} broken files are added, so that some jobs fail")
            expected = expected.with_(plain_loop(broken, lambda _: None))
            found = [*found, *broken]
        outcome = Play(stage, show, found).run()
    for text in (
        verdict.summary(outcome, expected),
        verdict.failures(outcome, root),
        verdict.totals(outcome, expected),
    ):
        show.line("")
        for line in text.split("\n"):
            show.line(line)
    problems = list(verdict.differences(outcome, expected))
    if problems:
        raise CommandFailed(f"not as the plain loop says: {'; '.join(problems[:5])}")
    show.line("")
    show.line("The jobs and the plain loop agree in every file. Nothing was lost, nothing was counted twice.")


def _material(show: Screen, root: Path, limit: int | None) -> Sequence[Path]:
    found = files.sources(root)[:limit]
    if not found:
        raise CommandFailed(f"there are no source files below {root}")
    show.line(f"{len(found):,} source files of Python's standard library in {root}")
    show.line("first a plain loop over them, to know what the jobs must come to")
    return found

"""The command ``tenure``: its subcommands are imported when they are asked for."""

import importlib
import sys
from collections.abc import Mapping
from typing import Final, cast

import click

from tenure.cli.errors import run

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "worker": ("tenure.cli.worker:worker", "Run jobs."),
    "push": ("tenure.cli.push:push", "Push a job by its name."),
    "status": ("tenure.cli.status:status", "Count the jobs of each queue."),
    "jobs": ("tenure.cli.jobs:jobs", "List jobs that run or wait."),
    "failed": ("tenure.cli.failed:failed", "List failed jobs."),
    "retry": ("tenure.cli.retry:retry", "Make failed jobs ready again."),
    "forget": ("tenure.cli.forget:forget", "Remove failed jobs for good."),
    "prune": ("tenure.cli.prune:prune", "Remove old failed jobs for good."),
    "unreadable": ("tenure.cli.unreadable:unreadable", "List, export or drop records that nobody could read."),
    "clear": ("tenure.cli.clear:clear", "Remove all jobs that wait in a queue."),
    "cancel": ("tenure.cli.cancel:cancel", "Remove jobs that wait, stop those that run."),
    "pause": ("tenure.cli.pause:pause", "Stop handing out the jobs of queues."),
    "resume": ("tenure.cli.resume:resume", "Hand out the jobs of paused queues again."),
    "restart": ("tenure.cli.restart:restart", "Ask all workers to finish what runs and exit."),
    "compositions": ("tenure.cli.compositions:compositions", "List, show, cancel or prune chains, batches, workflows."),
    "schedule": ("tenure.cli.schedule.group:schedule", "List, change and fire schedules."),
    "migrate": ("tenure.cli.migrate:migrate", "Make a database's tables, or bring them to this version."),
    "relay": ("tenure.cli.relay:relay", "Move jobs from the outbox to their stores."),
    "health": ("tenure.cli.health:health", "Tell whether the store can be used."),
    "metrics": ("tenure.cli.metrics:metrics", "Print the store's view of its queues for Prometheus."),
    "doctor": ("tenure.cli.doctor:doctor", "Look at the store for what loses jobs."),
    "demo": ("tenure.cli.demo.command:demo", "Watch real work survive a killed worker."),
    "completion": ("tenure.cli.completion:completion", "Print a shell's completion script."),
}
"""Each command's place, and its line in the help: said here too, so that the help imports none of them."""


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 the application cannot be imported, "
    "4 the store is unreachable. Each option can be set in the environment, as TENURE_<OPTION>.",
)
@click.version_option(package_name="tenure", message="tenure %(version)s")
def cli() -> None:
    """Background jobs held under leases: nothing is lost when a worker dies."""


def main() -> None:
    """Run the command line of this process, and exit."""
    sys.exit(run(lambda: cli.main(prog_name="tenure", standalone_mode=False, windows_expand_args=False)))

"""``tenure schedule`` and its subcommands."""

import click

from tenure.cli.schedule.changing import add, pause, remove, resume
from tenure.cli.schedule.running import run
from tenure.cli.schedule.showing import list_, next_


@click.group()
def schedule() -> None:
    """List, change and fire schedules.

    Where no queue is named, a schedule is looked for in all queues of the store.
    """


for _command in (list_, next_, run, add, pause, resume, remove):
    schedule.add_command(_command)

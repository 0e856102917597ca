"""``tenure schedule add``, ``pause``, ``resume`` and ``remove``."""

from collections.abc import Awaitable, Callable
from typing import Any

import click

from tenure.app import Tenure
from tenure.cli.opened import with_store
from tenure.cli.options import queue_option, seconds, spoken, store_options
from tenure.cli.output import say
from tenure.cli.push import call_of
from tenure.cli.store import Where
from tenure.cli.target import find_app
from tenure.scheduling import Terms


@click.command()
@click.argument("name")
@click.argument("job")
@click.argument("arguments", metavar="[ARGS]", default="[]")
@spoken("--cron", metavar="EXPRESSION", help="Five fields, six with the second first, or @daily and the like.")
@spoken("--tz", default="UTC", show_default=True, metavar="ZONE", help="The time zone of --cron.")
@seconds("--every", above=True, envvar=None, help="Instead of --cron: multiples of so many seconds since 1970.")
@spoken("--kwargs", "keywords", metavar="JSON", default="{}", help="The arguments by name, as a JSON object.")
@spoken(
    "--catch-up",
    type=click.Choice(["skip", "last", "all"]),
    default="last",
    show_default=True,
    help="What becomes of times at which no process was there.",
)
@spoken("--no-overlap", is_flag=True, help="Push nothing while the last job waits or runs.")
@seconds("--jitter", default=0.0, envvar=None, help="Delay each job by up to so many seconds.")
@spoken("--app", "target", metavar="MODULE:ATTRIBUTE", help="The application.  [default: app under [tool.tenure]]")
@queue_option
def add(
    name: str,
    job: str,
    arguments: str,
    cron: str | None,
    tz: str,
    every: float | None,
    keywords: str,
    catch_up: Any,
    jitter: float,
    target: str | None,
    queue: str | None,
    *,
    no_overlap: bool,
) -> None:
    """Store the schedule NAME of the job JOB with ARGS, a JSON list, or give the one of that name another definition.

    The arguments are checked against the job's own parameters, and nothing is sent that would not fit.
    """
    app = find_app(target)
    call = call_of(app, job, arguments, keywords)
    call = call if queue is None else call.options(queue=queue)
    terms = Terms(catch_up=catch_up, overlap=not no_overlap, jitter=jitter)
    try:
        new = app.schedules.add_sync(name, call, cron=cron, tz=tz, every=every, source="cli", **terms)
    finally:
        app.close_sync()
    say(f"added {name}" if new else f"changed {name}")


@click.command()
@click.argument("name")
@queue_option
@store_options
def pause(name: str, queue: str | None, **where: Any) -> None:
    """Let the schedule NAME fire nothing, until it is resumed."""
    done = _changed(Where(**where), lambda app, on: app.schedules.pause(name, queue=queue, **on))
    say(f"paused {name}" if done else f"{name} was paused already")


@click.command()
@click.argument("name")
@queue_option
@store_options
def resume(name: str, queue: str | None, **where: Any) -> None:
    """Let the schedule NAME fire again, from now on: what was missed meanwhile was meant to be."""
    done = _changed(Where(**where), lambda app, on: app.schedules.resume(name, queue=queue, **on))
    say(f"resumed {name}" if done else f"{name} was not paused")


@click.command()
@click.argument("name")
@queue_option
@store_options
def remove(name: str, queue: str | None, **where: Any) -> None:
    """Forget the schedule NAME; jobs that it pushed stay.

    One that the code defines comes back when a process begins to fire schedules: pause it instead.
    """
    done = _changed(Where(**where), lambda app, on: app.schedules.remove(name, queue=queue, **on))
    say(f"removed {name}" if done else f"{name} was removed by someone else meanwhile")


def _changed(where: Where, change: Callable[[Tenure, dict[str, str]], Awaitable[bool]]) -> bool:
    return with_store(where, lambda app: change(app, {"connection": where.connection}))

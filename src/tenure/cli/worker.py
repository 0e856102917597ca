"""``tenure worker``."""

import logging
import signal
from collections.abc import Callable
from functools import partial

import click

from tenure.app import Tenure
from tenure.cli import logs
from tenure.cli.address import http_option
from tenure.cli.answering import answering, listening
from tenure.cli.banner import banner, warnings
from tenure.cli.child import exit_code, run_children
from tenure.cli.options import Claimed, claimed_queues, seconds, setting, size
from tenure.cli.reload import run_reloading
from tenure.cli.target import Target, find_target, load
from tenure.schedule import Ticker
from tenure.web.server import Address, Listener
from tenure.worker import Ended, ExitReason, WorkerOptions, run_worker
from tenure.worker.options import STALL_TIMEOUT

logger: logging.Logger = logging.getLogger("tenure.worker")


@click.command()
@click.argument("target", metavar="[APP]", required=False)
@setting("--connection", default="default", show_default=True, help="The named connection to claim from.")
@claimed_queues
@setting("-c", "--concurrency", type=click.IntRange(1), default=50, show_default=True, help="Jobs at the same time.")
@setting(
    "--tries",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Attempts of jobs that do not say; 0: no limit.",
)
@seconds("--backoff", help="Wait between attempts.  [default: growing, with jitter]")
@seconds("--timeout", above=True, help="Limit of an attempt of jobs that do not say.  [default: none]")
@seconds("--lease", above=True, help="Length of a lease.  [default: QUEUE_VISIBILITY_TIMEOUT_SECONDS, 300]")
@seconds("--sleep", above=True, help="The longest wait of one claim.  [default: QUEUE_POLL_TIMEOUT, 1]")
@setting("--with-schedule", is_flag=True, help="Fire schedules, too; any number of processes may.")
@setting("--once", is_flag=True, help="Run one job, and stop.")
@setting("--stop-when-empty", is_flag=True, help="Stop when nothing is ready, or its queue is paused.")
@setting("--max-jobs", type=click.IntRange(1), help="Stop after so many jobs.")
@seconds("--max-time", above=True, help="Stop after this time.")
@size("--memory", help="Stop when more memory than this is in use.")
@setting(
    "--workers",
    type=click.IntRange(1),
    help="Supervise so many worker processes; a limit replaces one then.  [default: be one]",
)
@seconds("--drain-timeout", default=25.0, show_default=True, help="How long running jobs may go on after a signal.")
@seconds(
    "--stall-timeout",
    above=True,
    default=STALL_TIMEOUT,
    show_default=True,
    help="End, with an error, when claims, settlements or renewals stand still for so long.",
)
@http_option(help="Answer /livez, /readyz and /metrics there, on 127.0.0.1 unless a host is given.")
@setting("--log-level", type=click.Choice(logs.LEVELS, case_sensitive=False), default="info", show_default=True)
@setting(
    "--log-format",
    type=click.Choice(logs.FORMATS),
    default="auto",
    show_default=True,
    help="Lines of text or of JSON; auto: text on a terminal, JSON elsewhere.",
)
@setting("--reload", is_flag=True, help="For development: start anew when a source file changes.")
def worker(
    target: str | None,
    claimed: Claimed,
    connection: str,
    concurrency: int,
    tries: int,
    backoff: float | None,
    timeout: float | None,
    lease: float | None,
    sleep: float | None,
    *,
    with_schedule: bool,
    once: bool,
    stop_when_empty: bool,
    max_jobs: int | None,
    max_time: float | None,
    memory: int | None,
    workers: int | None,
    drain_timeout: float,
    stall_timeout: float,
    http: Address | None,
    log_level: str,
    log_format: logs.Format,
    reload: bool,
) -> int:
    """Run the jobs of APP, which is module:attribute.

    Without APP, the environment's TENURE_APP names it, or app under [tool.tenure] in pyproject.toml. SIGTERM and
    Ctrl-C end the worker in order: it claims no more, lets running jobs end, gives back the rest. A second signal
    gives them back at once, and the exit code is 1 then.
    """
    if workers is not None and once:
        raise click.UsageError("--once is for one process, without --workers")
    say = logs.set_up(log_level, log_format, processes=workers is not None)
    options = WorkerOptions(
        queues=claimed.names,
        weights=claimed.weights,
        connection=connection,
        concurrency=concurrency,
        tries=tries,
        backoff=backoff,
        timeout=timeout,
        lease=lease,
        sleep=sleep,
        once=once,
        stop_when_empty=stop_when_empty,
        max_jobs=max_jobs,
        max_time=max_time,
        memory=memory,
        drain_timeout=drain_timeout,
        stall_timeout=stall_timeout,
        prepare=("tenure.cli.logs:set_up", log_level, log_format),
    )
    place = find_target(target)
    if reload:
        return run_reloading(place, say, supervised=workers is not None)
    several = None
    if workers is not None:
        several = partial(
            run_children,
            target=target,
            workers=workers,
            log_level=log_level,
            log_format=log_format,
            with_schedule=with_schedule,
        )
    ended = _run(place, options, http, say, several, with_schedule=with_schedule)
    say(f"stopped: {ended.reason.value}{', forced by a second signal' if ended.forced else ''}")
    return exit_code(ended)


def _run(
    target: Target,
    options: WorkerOptions,
    http: Address | None,
    say: Callable[[str], None],
    several: Callable[[Tenure, WorkerOptions, Listener | None], Ended] | None,
    *,
    with_schedule: bool,
) -> Ended:
    # The worker handles its signals from its start on. Before that, while the application is imported, either of the
    # two that stop a worker in order finds none that runs: the order is the same, and so is the exit code.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with listening(http) as listener:
            app = load(target)
            say(banner(app, options))
            for warning in warnings(app, options):
                logger.warning("%s", warning)
            if several is not None:
                return several(app, options, listener)
            beside = [Ticker(app, options.connection)] if with_schedule else []
            return run_worker(app, options, around=answering(listener, app) if listener else None, beside=beside)
    except KeyboardInterrupt:
        return Ended(ExitReason.SHUTDOWN)

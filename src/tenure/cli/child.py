"""The worker processes of ``tenure worker --workers``: how they are started, and the program that each of them is."""

import signal
import socket
import sys
from typing import Final

import msgspec

from tenure.app import Tenure
from tenure.cli import logs
from tenure.cli.answering import answering_for_all, telling
from tenure.cli.errors import ExitCode, run
from tenure.cli.target import find_app
from tenure.schedule import Ticker
from tenure.web.server import Listener
from tenure.worker import ExitReason, Worker, WorkerOptions
from tenure.worker.marker import RestartMarker, control
from tenure.worker.options import Ended
from tenure.worker.run import run_attended
from tenure.worker.supervisor import Attendance, Launch, RecycleAt, run_supervisor
from tenure.worker.supervisor.recycling import Recycling

MODULE: Final = "tenure.cli.child"


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is to do."""

    target: str | None
    options: WorkerOptions
    recycle: RecycleAt
    log_level: str
    log_format: logs.Format
    with_schedule: bool
    tells: bool
    """Whether it counts, and answers its supervisor."""


def run_children(
    app: Tenure,
    options: WorkerOptions,
    listener: Listener | None,
    *,
    target: str | None,
    workers: int,
    log_level: str,
    log_format: logs.Format,
    with_schedule: bool,
) -> Ended:
    """Supervise so many worker processes until they end, and return how. The limits are those of each."""
    assignment = Assignment(
        target=target,
        options=msgspec.structs.replace(options, max_jobs=None, max_time=None, memory=None, restarts=False),
        recycle=RecycleAt(max_jobs=options.max_jobs, max_time=options.max_time, memory=options.memory),
        log_level=log_level,
        log_format=log_format,
        with_schedule=with_schedule,
        tells=listener is not None,
    )

    def assigned(holder: str) -> bytes:
        options = msgspec.structs.replace(assignment.options, holder=holder)
        return msgspec.json.encode(msgspec.structs.replace(assignment, options=options)) + b"\n"

    launch = Launch(command=(sys.executable, "-m", MODULE), assignment=assigned)
    around = None if listener is None else answering_for_all(listener)
    return run_supervisor(app, launch, options, workers, around=around)


def main() -> None:
    """Be a child: the arguments are the numbers of two sockets that the supervisor is at the other end of."""
    # Until the worker handles its signals itself, they end it all the same, and in order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asked, talk = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    # Not for the processes that jobs start: as long as anybody has a line, it does not end.
    for end in (asked, talk):
        end.set_inheritable(False)
    sys.exit(run(lambda: _work(asked, talk)))


def _work(asked: socket.socket, talk: socket.socket) -> int:
    line = _first_line(talk)
    if line is None:
        return ExitCode.DONE
    assignment = msgspec.json.decode(line, type=Assignment)
    logs.set_up(assignment.log_level, assignment.log_format, processes=True)
    try:
        app = find_app(assignment.target)
        options = assignment.options
        beside = [Ticker(app, options.connection)] if assignment.with_schedule else []
        worker = Worker(app, options, beside=beside)
        marker = RestartMarker(control(app.queue(options.connection)))
        attendance = Attendance(
            app, worker, Recycling(assignment.recycle, marker, lambda: worker.vitals.finished), talk
        )
        around = telling(asked, app) if assignment.tells else None
        ended = run_attended(app, worker, attend=attendance.run, around=around)
    except KeyboardInterrupt:
        return ExitCode.DONE
    attendance.end(ended)
    return exit_code(ended)


def _first_line(end: socket.socket) -> bytes | None:
    """Return what the supervisor says first, which is all that it says until it has heard something; None: it died."""
    line = b""
    while not line.endswith(b"\n"):
        part = end.recv(65536)
        if not part:
            return None
        line += part
    return line


def exit_code(ended: Ended) -> ExitCode:
    """Return what a worker process ends with."""
    return ExitCode.FAILED if ended.forced or ended.reason is ExitReason.ERROR else ExitCode.DONE


if __name__ == "__main__":
    main()

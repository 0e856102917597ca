"""The demo's worker processes, one of which is killed in the middle of its jobs."""

import os
import signal
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from tenure.cli.demo.journal import Progress


class Killed(NamedTuple):
    """A worker that was killed, and how many jobs it was in the middle of."""

    pid: int
    running: int


class Crew:
    """Worker processes, made by ``start``."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], number: int) -> None:
        self._start = start
        self._workers = [start() for _ in range(number)]

    @property
    def ended(self) -> int | None:
        """The exit code of a worker that has ended by itself, if one has."""
        return next((worker.returncode for worker in self._workers if worker.poll() is not None), None)

    def kill_one(self, progress: Progress) -> Killed | None:
        """Kill a worker and start another in its place; None when it was between two jobs, and goes on."""
        victim = self._workers[0]
        # It stands still before it is looked at: what it is in the middle of now, it will never end.
        victim.send_signal(signal.SIGSTOP)
        if victim.returncode is not None:
            return None
        _, status = os.waitpid(victim.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            victim.returncode = os.waitstatus_to_exitcode(status)
            return None
        progress.refresh()
        running = len(progress.running(victim.pid))
        if not running:
            victim.send_signal(signal.SIGCONT)
            return None
        victim.kill()
        victim.wait()
        self._workers[0] = self._start()
        return Killed(victim.pid, running)

"""What a handler in a child process tells of its progress: the latest, a few times a second."""

import threading
import time
from collections.abc import Callable
from typing import Final

from tenure.queue import Lease
from tenure.results import Progress
from tenure.worker.processes.talk import Told, Word

PAUSE: Final = 0.1
"""Seconds between two words about the progress of a job."""


class Teller:
    """Sends from a thread of its own, so that a handler that tells does not wait, and nothing outside of a job."""

    def __init__(self, send: Callable[[Word], None]) -> None:
        self._send = send
        self._number = 0
        self._latest: Progress | None = None
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._news = threading.Event()
        self._started = False

    def begin(self, number: int) -> Callable[[Lease, Progress], None]:
        """Return what takes the progress of a job, from any thread; once it has ended, it takes nothing."""
        with self._lock:
            self._number = number

        def tell(_: Lease, progress: Progress) -> None:
            with self._lock:
                if number != self._number:
                    return
                self._latest = progress
                first, self._started = not self._started, True
            self._news.set()
            if first:
                threading.Thread(target=self._run, name="tenure-progress", daemon=True).start()

        return tell

    def end(self) -> None:
        """Send nothing more: from when this returns the link is the caller's alone."""
        with self._lock:
            self._number, self._latest = 0, None
        with self._sending:
            return

    def _run(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()
            with self._sending:
                with self._lock:
                    number, latest, self._latest = self._number, self._latest, None
                if latest is not None:
                    self._send(Told(number, latest.fraction, latest.note))
            time.sleep(PAUSE)

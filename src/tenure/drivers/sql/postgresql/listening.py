"""Hearing of jobs that other processes push, by LISTEN."""

import threading
from concurrent.futures import Future
from typing import Any, Final

import psycopg

from tenure.drivers.sql.postgresql.server import Postgres
from tenure.drivers.sql.server.polling import POLL
from tenure.errors import StoreError
from tenure.waiting import Waiters

LONGEST_SLEEP: Final = 1.0
"""Seconds after which a waiting claim looks in any case: what a lost wake-up costs at most."""
PAUSE: Final = 1.0
"""Seconds until a connection that broke is opened again."""


class Listening:
    """Waits for notices on a connection and a thread of its own, from the first waiting claim on.

    Behind a pooler that lends servers by the transaction no notice arrives. That is seen by the server's process not
    being the one that answered the connection; then claims look often, as they do while the connection is away.
    """

    def __init__(self, server: Postgres, channel: str, waiters: Waiters) -> None:
        self._server = server
        self._channel = channel
        self._waiters = waiters
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._hears = threading.Event()
        self._stopped = threading.Event()
        self._ended: Future[None] = Future()
        self._connection: psycopg.Connection[Any] | None = None

    def longest_sleep(self) -> float:
        """Return the seconds after which a waiting claim looks again in any case."""
        with self._lock:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="tenure-listen", daemon=True)
                self._thread.start()
        return LONGEST_SLEEP if self._hears.is_set() else POLL

    def stop(self) -> "Future[None]":
        """Let the thread end and close its connection, and return what is done when it has; idempotent."""
        self._stopped.set()
        with self._lock:
            if self._thread is None and not self._ended.done():
                self._ended.set_result(None)
        return self._ended

    def _run(self) -> None:
        try:
            self._hear()
        finally:
            self._ended.set_result(None)

    def _hear(self) -> None:
        while not self._stopped.is_set():
            try:
                with self._server.raw() as connection:
                    if not self._listens(connection):
                        return
                    self._hears.set()
                    self._waiters.wake_all()  # for what was told before
                    self._listen(connection)
            except (psycopg.Error, StoreError):
                self._hears.clear()
                self._waiters.wake_all()  # to look often from now on
                self._stopped.wait(PAUSE)

    def _listens(self, connection: psycopg.Connection[Any]) -> bool:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        if row is None or row[0] != connection.info.backend_pid:
            return False
        connection.execute(f'LISTEN "{self._channel}"'.encode())
        return True

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stopped.is_set():
            for notice in connection.notifies(timeout=0.5):
                self._waiters.wake([notice.payload])
                if self._stopped.is_set():
                    return

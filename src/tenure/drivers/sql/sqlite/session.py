"""One connection to the file, its transactions, and its death before a fork."""

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from tenure.clock import Clock
from tenure.drivers.sql.sqlite import faults, schema
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.errors import ConfigurationError, ConnectionFailed, StoreError
from tenure.waiting import Waiters

T = TypeVar("T")
Operation = Callable[[Transaction], Any]

OLDEST_SQLITE: Final = (3, 37)
"""STRICT tables came with it; RETURNING and UPSERT are older."""

LONGEST_LOG: Final = 64 * 1024 * 1024
"""Bytes to which the write-ahead log is cut back after it grew."""


SHORTEST_NAP: Final = 0.0001
LONGEST_NAP: Final = 0.001
"""Seconds between two tries to lock the file."""

COARSEST_TIME: Final = 2.5
"""Seconds that two writes to a file may lie apart and yet show the same time; two on the coarsest file systems."""


class LogState(NamedTuple):
    """What the file system says of the write-ahead log."""

    file: int
    size: int
    written: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Which file, which part of it, and how long to wait for it."""

    path: Path
    namespace: str
    timeout: float
    """Seconds to wait for a file that another process has locked."""
    max_bytes: int | None
    """What the file may grow to; None leaves it to the disk."""
    clock: Clock


class Session:
    """One connection: opened at first use, used by one thread at a time, never carried across a fork.

    ``suspend`` and ``resume`` are for the fork alone. SQLite's locks belong to a process, and its record of them to
    the memory that a child inherits: a child that opened the same file beside an inherited connection would believe
    itself protected by locks that only its parent has. So nothing is open while a process forks.
    """

    def __init__(self, location: Location, waiters: Waiters) -> None:
        self._location = location
        self._waiters = waiters
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._durable: bool | None = None
        self._version: int | None = None
        self._was_open = False
        self._log = f"{location.path}-wal"
        self._log_seen: LogState | None = None

    def write(self, operations: Sequence[Operation], *, durable: bool) -> list[Any]:
        """Run the operations in one transaction and return what each returned; all are done or none is.

        ``durable``: on disk when this returns, so that it survives a power cut too; otherwise it survives the death of
        every process, which is all that concerns a claim or a renewal.
        """
        woken: set[str] = set()
        with self._lock:
            connection = self._open()
            results = []
            try:
                if durable is not self._durable:
                    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                    self._durable = durable
                self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
                for operation in operations:
                    transaction = Transaction(connection, self._location.namespace, self._location.clock)
                    results.append(operation(transaction))
                    transaction.finish()
                    woken |= transaction.woken
            except sqlite3.Error as error:
                self._roll_back(connection)
                raise faults.translated(error, str(self._location.path)) from error
            except BaseException:
                self._roll_back(connection)
                raise
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back(connection)
                raise faults.translated_commit(error, str(self._location.path)) from error
        self._waiters.wake(woken)
        return results

    def read(self, operation: Callable[[Transaction], T]) -> T:
        """Run an operation that changes nothing, on one state of the file. It waits for no writer."""
        with self._lock:
            connection = self._open()
            try:
                return self._patiently(lambda: self._read(connection, operation))
            except sqlite3.Error as error:
                raise faults.translated(error, str(self._location.path)) from error

    def _read(self, connection: sqlite3.Connection, operation: Callable[[Transaction], T]) -> T:
        connection.execute("BEGIN")
        try:
            return operation(Transaction(connection, self._location.namespace, self._location.clock))
        finally:
            self._roll_back(connection)

    def changed_by_others(self) -> bool:
        """Tell whether another connection committed anything since this was last asked.

        Asked fifty times a second by an idle worker: a look at the log's time tells as much as SQLite can, at half
        the price, once that time is old enough for no two commits to share it.
        """
        log = self._log_seen
        self._log_seen = self._log_state()
        if log is not None and log == self._log_seen and time.time() - log.written > COARSEST_TIME:
            return False
        with self._lock:
            connection = self._open()
            try:
                version: int = self._patiently(lambda: connection.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error as error:
                raise faults.translated(error, str(self._location.path)) from error
            changed = version != self._version
            self._version = version
            return changed

    def close(self) -> None:
        """Close the connection; idempotent. The next use opens another."""
        with self._lock:
            self._close()

    def suspend(self) -> None:
        """Close the connection and keep everybody out, until ``resume``."""
        self._lock.acquire()
        self._close()

    def resume(self) -> None:
        """Let them in again."""
        self._lock.release()

    # --------------------------------------------------------------------------------------------------------- opening

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            if self._identity() == self._file:
                return self._connection
            self._close()  # somebody moved or removed the file: what is written to it now, nobody would find
        connection = self._connect()
        self._connection, self._durable, self._version = connection, None, None
        self._file = self._identity()
        self._was_open = True
        return connection

    def _connect(self) -> sqlite3.Connection:
        path = self._location.path
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise ConfigurationError("sqlite3", f"SQLite {sqlite3.sqlite_version} is too old; tenure needs 3.37")
        try:
            if not self._was_open:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Payloads are private: a new file is its owner's alone. SQLite gives its log the same permissions.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            problem = os.strerror(error.errno or 0)
            raise ConnectionFailed(f"the SQLite file {path} cannot be opened ({problem}); nothing was sent") from error
        try:
            connection = sqlite3.connect(
                path,
                timeout=0,  # waiting is done here, and better
                isolation_level=None,  # transactions are begun and ended here, by hand
                check_same_thread=False,  # one at a time is what the lock sees to
            )
        except sqlite3.Error as error:
            raise faults.translated(error, str(path)) from error
        try:
            self._set_up(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise faults.translated(error, str(path)) from error
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        self._use_log(connection)
        connection.execute("PRAGMA fullfsync = ON")  # macOS, where fsync alone does not reach the disk
        connection.execute(f"PRAGMA journal_size_limit = {LONGEST_LOG}")
        connection.execute("PRAGMA trusted_schema = OFF")
        if self._location.max_bytes is not None:
            (page,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count = {max(1, self._location.max_bytes // page)}")
        schema.prepare(connection, self._patiently)

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Switch to the write-ahead log, which readers and a writer share."""
        (mode,) = self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        if mode != "wal":
            raise StoreError(
                f"the file system of {self._location.path} cannot share memory between processes, as SQLite's "
                "write-ahead log needs (a network file system?); choose a path on a local disk"
            )

    def _patiently(self, step: Callable[[], T]) -> T:
        """Try the step until the file is not locked, or the time to wait is over.

        SQLite could wait by itself, but sleeps longer and longer, up to 100 ms: beside a process that writes without
        a pause it waited five seconds in vain. Short, uneven sleeps find one of the gaps within milliseconds.
        """
        end = time.monotonic() + self._location.timeout
        while True:
            try:
                return step()
            except sqlite3.OperationalError as error:
                if not faults.is_locked(error) or time.monotonic() >= end:
                    raise
            time.sleep(random.uniform(SHORTEST_NAP, LONGEST_NAP))  # noqa: S311 - no secret

    def _identity(self) -> tuple[int, int] | None:
        try:
            stat = self._location.path.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino

    def _log_state(self) -> LogState | None:
        try:
            stat = os.stat(self._log)  # noqa: PTH116 - a path object costs as much as the call
        except OSError:
            return None
        return LogState(stat.st_ino, stat.st_size, stat.st_mtime)

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        if not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._close()  # whatever state it is in, the next use begins with a new one

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

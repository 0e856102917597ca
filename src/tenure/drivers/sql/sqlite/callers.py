"""Jobs written by a caller's own connection to the file, in the middle of its transaction."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tenure.drivers.sql.parts import parts
from tenure.drivers.sql.sqlite import faults, statements
from tenure.drivers.sql.sqlite.session import Location
from tenure.drivers.sql.sqlite.transaction import Transaction, Values
from tenure.drivers.sql.sqlite.transitions.pushing import push
from tenure.drivers.sql.sqlite.transitions.settling import settle
from tenure.enlisting import Statements, Trouble
from tenure.errors import StoreError
from tenure.queue import Ack, Lease, Push, Pushed, Settled


class Callers:
    """Pushes in the transactions of callers who have the same file open, by whatever library."""

    def __init__(self, location: Location, prepare: Callable[[], object]) -> None:
        """``prepare`` opens the file by a connection of its own: what is in it then has its tables."""
        self._location = location
        self._open = prepare
        self._prepared = False

    def push(self, caller: Statements, jobs: Sequence[Push]) -> list[Pushed] | None:
        """Store the jobs with the caller's commit; None if it has another file open. Raises ``StoreError``."""
        file = self.file(caller)
        if file is None:
            return None
        transaction = Transaction(file, self._location.namespace, self._location.clock)
        pushed = [outcome for part in parts(jobs) for outcome in push(transaction, part)]
        transaction.finish()
        return pushed

    def join(self, caller: Statements, lease: Lease) -> float | None:
        """Take the file's one lock for writing, and return how long it may be kept; None if it has another file open.

        At once: a transaction that has only read cannot take it any more once another has written. While it is kept
        nobody renews a lease.
        """
        file = self.file(caller)
        if file is None:
            return None
        file.execute(statements.LOCK)
        return lease.length / 3

    def acknowledge(self, caller: Statements, lease: Lease) -> bool:
        """End a lease with the caller's commit; False, and nothing written, when it is not current."""
        file = CallersFile(caller, str(self._location.path))
        transaction = Transaction(file, self._location.namespace, self._location.clock)
        (settled,) = settle(transaction, [Ack(lease)])
        transaction.finish()
        return settled is not Settled.STALE

    def file(self, caller: Statements) -> "CallersFile | None":
        """Return the caller's connection to our file, which has its tables; None if it has another file open."""
        if caller.dialect != "sqlite":
            return None
        file = CallersFile(caller, str(self._location.path))
        if not self._is_ours(file):
            return None
        caller.aside(self._prepare)
        return file

    def _is_ours(self, file: "CallersFile") -> bool:
        for _, name, path in file.execute("PRAGMA database_list").fetchall():
            if name == "main" and path:
                ours = self._location.path
                return ours.exists() and Path(path).samefile(ours)
        return False

    def _prepare(self) -> None:
        """See to it that the file has the tables, once: nothing is made in the middle of a caller's transaction."""
        if not self._prepared:
            self._open()
            self._prepared = True


class Brought:
    """What a statement brought."""

    def __init__(self, rows: list[Any], changed: int) -> None:
        self._rows = rows
        self.rowcount: int = changed

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        return self._rows

    def fetchone(self) -> Any:
        """Return the first row, or None."""
        return self._rows[0] if self._rows else None


class CallersFile:
    """A caller's connection, as a transition uses one of ours."""

    def __init__(self, caller: Statements, path: str) -> None:
        self._caller = caller
        self._path = path

    def execute(self, sql: str, parameters: Values = (), /) -> Brought:
        """Run a statement."""
        try:
            return Brought(*self._caller.run(sql, parameters))
        except Trouble as trouble:
            if isinstance(trouble.cause, sqlite3.Error):
                raise faults.translated(trouble.cause, self._path) from None
            raise StoreError("SQLite refused a statement; nothing was written") from None

    def executemany(self, sql: str, parameters: Iterable[Values], /) -> None:
        """Run a statement once for each set of values."""
        for values in parameters:
            self.execute(sql, values)

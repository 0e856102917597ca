"""The outbox in the tables of a database server."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tenure.drivers.sql.outbox import statements
from tenure.drivers.sql.outbox.lines import Line
from tenure.drivers.sql.outbox.moving import Desk
from tenure.drivers.sql.server.connection import Again, Connection, Lost, Step
from tenure.drivers.sql.server.session import Session
from tenure.drivers.sql.server.texts import Statement
from tenure.drivers.sql.server.transaction import Place, Transaction
from tenure.errors import ConnectionFailed, StoreError
from tenure.waiting import Waiters

T = TypeVar("T")


class _Desk:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    @property
    def now(self) -> int:
        return self._transaction.now

    @property
    def seen(self) -> int:
        return self._transaction.now

    def all(self, statement: Statement, /, **values: Any) -> list[Any]:
        return self._transaction.all(statement, **values)

    def change(self, statement: Statement, /, **values: Any) -> int:
        return self._transaction.change(statement, **values)


class ServerAccess:
    """See ``Access``. Two connections: one for the steps, and one that has the lock."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._session = Session(place, Waiters())
        self._locking: Connection | None = None

    def there(self) -> bool:
        """Return True: a statement tells when tables are missing, and makes none."""
        return True

    def read(self, step: Callable[[Desk], T]) -> T:
        """Run a step that changes nothing."""
        return self._session.read(lambda transaction: step(_Desk(transaction)))

    def write(self, step: Callable[[Desk], T]) -> T:
        """Run a step, whole or not at all."""
        done: list[T] = self._session.write([lambda transaction: step(_Desk(transaction))], durable=True)
        return done[0]

    @contextmanager
    def locked(self, line: Line) -> Iterator[bool]:
        """Keep other relays from a line for the length of the block; False when one of them has it."""
        values = {"key": self._place.texts.names.key("relay", *line)}
        got = self._lock((self._place.texts.of(statements.TRY_LOCK), values))
        try:
            yield got
        finally:
            self._unlock((self._place.texts.of(statements.UNLOCK), values))

    def _lock(self, try_lock: Step) -> bool:
        if self._locking is None:
            self._locking = self._place.server.connect()
        begin: list[Step] = [("BEGIN", {})] if self._place.server.dialect == "postgresql" else []
        try:
            return bool(self._locking.script([*begin, try_lock])[-1].rows[0][0])
        except (Lost, Again) as error:
            self._close_lock()
            raise ConnectionFailed(f"{error}; nothing was moved") from None

    def _unlock(self, unlock: Step) -> None:
        if self._locking is not None:
            try:
                self._locking.script([unlock])
            except (Lost, Again, StoreError):
                self._close_lock()  # its end is the lock's

    def _close_lock(self) -> None:
        locking, self._locking = self._locking, None
        if locking is not None:
            locking.close()

    def close(self) -> None:
        """Close what is open; idempotent. The next use opens again."""
        self._close_lock()
        with contextlib.suppress(StoreError):
            self._session.close()

"""The outbox in a SQLite file."""

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from tenure.drivers.sql.outbox import statements
from tenure.drivers.sql.outbox.lines import Line
from tenure.drivers.sql.outbox.moving import Desk
from tenure.drivers.sql.server.texts import Differ, Statement
from tenure.drivers.sql.sqlite import faults
from tenure.drivers.sql.sqlite.forking import Sessions
from tenure.drivers.sql.sqlite.session import Location
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.drivers.sql.units import SECOND
from tenure.errors import StoreError
from tenure.naming import new_token
from tenure.waiting import Waiters

T = TypeVar("T")

HELD: Final = 5 * SECOND
"""For how long a line is a relay's since its last step: what its sudden death costs the others."""

_VALUE: Final = re.compile(r"%\((\w+)\)s")
_AMONG: Final = re.compile(r"\{among:(\w+)\}")
_TABLE: Final = re.compile(r"\{(\w+)\}")


class FileDesk:
    """A transaction on the outbox's tables of a file."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    @property
    def now(self) -> int:
        """The time by this host's clock, in microseconds since 1970."""
        return self._transaction.now

    @property
    def seen(self) -> int:
        """Until when the line is this relay's."""
        return self._transaction.now + HELD

    def all(self, statement: Statement, /, **values: Any) -> list[Any]:
        """Return the rows of a statement."""
        return self._transaction.all(text_of(statement), _bound(values))

    def change(self, statement: Statement, /, **values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self._transaction.change(text_of(statement), _bound(values))


class FileAccess:
    """See ``Access``. SQLite has no lock that ends with its holder and lets others write: a line is held for a time."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._session = Sessions(location).new(Waiters())

    def there(self) -> bool:
        """Tell whether the file has the tables: opening it as ours would make them."""
        return has_tables(self._location)

    def read(self, step: Callable[[Desk], T]) -> T:
        """Run a step that changes nothing."""
        return self._session.read(lambda transaction: step(FileDesk(transaction)))

    def write(self, step: Callable[[Desk], T]) -> T:
        """Run a step, whole or not at all."""
        done: list[T] = self._session.write([lambda transaction: step(FileDesk(transaction))], durable=True)
        return done[0]

    @contextmanager
    def locked(self, line: Line) -> Iterator[bool]:
        """Keep other relays from a line for the length of the block; False when one of them has it."""
        got = self.write(lambda desk: _take(desk, line))
        try:
            yield got
        finally:
            if got:
                with contextlib.suppress(StoreError):  # its time ends all the same
                    self.write(lambda desk: desk.change(statements.GIVE_BACK, **line.values))

    def close(self) -> None:
        """Close what is open; idempotent. The next use opens again."""
        self._session.close()


def has_tables(location: Location) -> bool:
    """Tell whether a file has the outbox's tables; it is only read."""
    try:
        with contextlib.closing(sqlite3.connect(f"{location.path.as_uri()}?mode=ro", uri=True)) as file:
            found = file.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tenure_outbox'")
            return found.fetchone() is not None
    except sqlite3.Error as error:
        if not location.path.exists():
            return False
        raise faults.translated(error, str(location.path)) from error


def _take(desk: Desk, line: Line) -> bool:
    desk.change(statements.ADD_CALL, **line.values, client=new_token(), seen=0)
    # What lies farther ahead than a line is ever held: the clock went back.
    return bool(desk.change(statements.TAKE, **line.values, now=desk.now, seen=desk.seen, latest=desk.now + HELD))


@lru_cache(maxsize=64)
def text_of(statement: Statement) -> str:
    """Return the text of a statement for SQLite, whose dialect is near to PostgreSQL's."""
    text = statement.postgresql if isinstance(statement, Differ) else str(statement)
    text = _AMONG.sub(r"IN (SELECT value FROM json_each(:\1))", text.replace("FOR UPDATE", ""))
    return _TABLE.sub(r"tenure_\1", _VALUE.sub(r":\1", text)).strip()


def _bound(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: msgspec.json.encode(value).decode() if isinstance(value, list) else value
        for name, value in values.items()
    }

"""tenure's texts on a caller's connection, whatever client library that has."""

import asyncio
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, CursorResult, TextClause, bindparam, exc, text
from sqlalchemy.util import await_only

from tenure.enlisting import Result, Trouble, Values

T = TypeVar("T")

_VALUE: Final = re.compile(r"%\((\w+)\)s")


class SqlalchemyStatements:
    """A connection in the middle of a transaction. ``awaited``: it is used in a greenlet of an event loop."""

    def __init__(self, connection: Connection, *, awaited: bool) -> None:
        self._connection = connection
        self._awaited = awaited

    @property
    def dialect(self) -> str:
        """The database's name."""
        name = self._connection.dialect.name
        return "mysql" if name == "mariadb" else name

    def run(self, statement: str, values: Values = ()) -> Result:
        """Run one statement; raises ``Trouble``."""
        # A failed statement's error shows its values, which are payloads: only the client library's own goes on.
        try:
            result = self._execute(statement, values)
            rows = [tuple(row) for row in result] if result.returns_rows else []
        except exc.DBAPIError as error:
            raise Trouble(error.orig) from None
        return Result(rows, result.rowcount)

    def _execute(self, statement: str, values: Values) -> CursorResult[Any]:
        if self.dialect == "sqlite":
            given = dict(values) if isinstance(values, Mapping) else tuple(values)
            return self._connection.exec_driver_sql(statement, given or None)
        named = dict(values) if isinstance(values, Mapping) else {}
        return self._connection.execute(_prepared(statement, self._lists(statement, named)), named)

    def _lists(self, statement: str, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return which values are lists to be written out: PostgreSQL has arrays."""
        if self.dialect != "mysql":
            return ()
        return tuple(name for name in _VALUE.findall(statement) if isinstance(values[name], list))

    def run_each(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run one statement for each row; raises ``Trouble``."""
        try:
            self._connection.execute(_prepared(statement, ()), [dict(row) for row in rows])
        except exc.DBAPIError as error:
            raise Trouble(error.orig) from None

    def aside(self, work: Callable[[], T]) -> T:
        """Do something that blocks: of an awaited connection in a thread, for which its loop does not wait."""
        return await_only(asyncio.to_thread(work)) if self._awaited else work()


@functools.lru_cache(maxsize=128)
def _prepared(statement: str, lists: tuple[str, ...]) -> TextClause:
    plain = _VALUE.sub(r":\1", statement.replace(":", r"\:"))
    return text(plain).bindparams(*(bindparam(name, expanding=True) for name in lists))

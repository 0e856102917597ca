"""The transaction of a database alias, in this thread."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import Error, connections, transaction
from django.utils.connection import ConnectionDoesNotExist

from tenure.enlisting import Enlisted, Following, Result, Statements, Trouble, Values
from tenure.errors import InvalidOption, WrongContext
from tenure.naming import shown
from tenure.portal import loop_is_running

T = TypeVar("T")


def enlist(option: str, given: object) -> Enlisted:
    """Return the transaction of an alias; raises ``InvalidOption`` for one that Django does not know."""
    return transaction_of(option, given, "use push_sync() there, inside the atomic block")


def transaction_of(option: str, given: object, instead: str) -> "DjangoTransaction":
    """Do that; ``instead`` says what to do where an event loop runs."""
    if not isinstance(given, str):
        raise InvalidOption(f"{option} takes the alias of a Django database, a text; nothing was sent")
    if loop_is_running():
        raise WrongContext(f"{option}: Django's transactions belong to blocking code; {instead}; nothing was sent")
    try:
        connection = connections[given]
    except ConnectionDoesNotExist:
        raise InvalidOption(f"{option}: Django has no database {shown(given)}; nothing was sent") from None
    return DjangoTransaction(option, given, connection)


class DjangoTransaction:
    """An alias, and this thread's connection to its database."""

    def __init__(self, option: str, alias: str, connection: Any) -> None:
        self._option = option
        self._alias = alias
        self._connection = connection

    def within(self, work: Callable[[Statements], T]) -> T:
        """Run statements in the atomic block."""
        if not self._connection.in_atomic_block:
            raise InvalidOption(
                f"{self._option}: no atomic block is open on {shown(self._alias)}: there is no transaction to be part "
                "of; nothing was sent"
            )
        if self._connection.needs_rollback:
            raise InvalidOption(
                f"{self._option}: the atomic block on {shown(self._alias)} has failed and will be rolled back; "
                "nothing was sent"
            )
        with self._connection.cursor() as cursor:
            return work(DjangoStatements(self._connection.vendor, cursor))

    async def within_async(self, work: Callable[[Statements], T]) -> T:
        """Do what ``within`` does: where an event loop runs there is no such transaction."""
        return self.within(work)

    def after_commit(self, following: Following) -> None:
        """Do something after the outermost atomic block; at once where none is open, as ``on_commit`` does."""
        try:
            transaction.on_commit(following.run, using=self._alias)
        except transaction.TransactionManagementError as error:
            raise InvalidOption(f"{self._option}: {error}; nothing was sent") from None


class DjangoStatements:
    """A cursor of Django's, in the middle of an atomic block."""

    def __init__(self, vendor: str, cursor: Any) -> None:
        self.dialect: str = vendor
        self._cursor = cursor

    def run(self, statement: str, values: Values = ()) -> Result:
        """Run one statement; raises ``Trouble``."""
        try:
            self._cursor.execute(statement, self._given(values) or None)
            rows = list(self._cursor.fetchall()) if self._cursor.description else []
        except Error as error:
            raise Trouble(error.__cause__) from None
        return Result(rows, self._cursor.rowcount)

    def run_each(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run one statement for each row; raises ``Trouble``."""
        try:
            self._cursor.executemany(statement, [dict(row) for row in rows])
        except Error as error:
            raise Trouble(error.__cause__) from None

    def aside(self, work: Callable[[], T]) -> T:
        """Do something that blocks."""
        return work()

    def _given(self, values: Values) -> Any:
        if not isinstance(values, Mapping):
            return tuple(values)
        # MySQL's library puts a tuple behind IN, PostgreSQL's makes an array of a list.
        lists = tuple if self.dialect == "mysql" else list
        return {name: lists(value) if isinstance(value, list) else value for name, value in values.items()}

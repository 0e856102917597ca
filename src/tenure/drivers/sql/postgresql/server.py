"""PostgreSQL, through psycopg 3: its connections, what its errors mean, and how it tells others of jobs."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import PQGen

from tenure.databases import DatabaseUrl
from tenure.drivers.sql.server.callers import CallersConnection
from tenure.drivers.sql.server.connection import Again, Lost, Result, Step, Values
from tenure.drivers.sql.server.faults import NO_TABLES, connecting
from tenure.drivers.sql.server.statements import LOCK_QUEUES, LOCK_QUEUES_ALONE
from tenure.drivers.sql.server.texts import Dialect
from tenure.enlisting import Statements
from tenure.errors import StoreError, StoreRefused

T = TypeVar("T")

CONNECT: Final = 5
"""Seconds in which a connection must be there."""
STATEMENT: Final = 10.0
"""Seconds that one statement may take, on the server and by our own watch."""
GRACE: Final = 5.0
"""Seconds of our own watch after the server should have given up."""

_SETTINGS: Final[Mapping[str, str]] = {
    "statement_timeout": str(int(STATEMENT * 1000)),
    # A client that stands still, or whose host is gone, must not keep its locks.
    "idle_in_transaction_session_timeout": "15000",
    # Statistics that lag behind a flood of jobs must not lead a statement off its index.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
"""For the length of a transaction."""
_KEPT_ALIVE: Final[Mapping[str, Any]] = {
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15000,
}
_REFUSALS: Final[Mapping[str, tuple[str, str]]] = {
    "42P01": NO_TABLES,
    "42703": NO_TABLES,
    "3F000": ("SCHEMA", "there is no such schema; create it, or name another in the URL"),
    "42501": ("RIGHTS", "the user lacks a right on tenure's tables or their sequence; grant it"),
    "53100": ("FULL", "the server's disk is full; make room"),
    "53200": ("MEMORY", "the server is out of memory"),
    "57014": ("TIMEOUT", f"a statement took longer than {STATEMENT:g} s; look for locks and for a server under strain"),
    "25006": ("READONLY", "the server takes no writes (a standby?)"),
}
_AGAIN: Final = frozenset({"40001", "40P01", "55P03", "23505"})
"""The last is a retried unique job, whose lock somebody else took meanwhile."""
_BROKEN: Final = ("08", "57P", "25P03")
"""The last is a transaction that stood idle for too long."""


class PsycopgConnection(psycopg.Connection[Any]):
    """A connection whose calls end by themselves when the server does not answer."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Run the steps of a call, for a bounded time."""
        return super().wait(gen, interval, STATEMENT + GRACE if timeout is None else timeout)


class PostgresConnection:
    """One connection, in autocommit: transactions are begun and ended by hand.

    Nothing is prepared by name and nothing is set for longer than a transaction, so that poolers may lend it a server
    by the transaction (PgBouncer).
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def script(self, steps: Sequence[Step]) -> list[Result]:
        """Run statements one after the other, in one round trip: their values become part of the text here."""
        with troubles(), psycopg.ClientCursor(self._connection) as cursor:
            text = "; ".join(cursor.mogrify(text.encode(), values) if values else text for text, values in steps)
            cursor.execute(text.encode())
            results = [_result(cursor)]
            while cursor.nextset():
                results.append(_result(cursor))
            return results

    def run(self, text: str, values: Values) -> Result:
        """Run one statement."""
        with troubles(), self._connection.cursor(binary=True) as cursor:
            cursor.execute(text.encode(), values)
            return _result(cursor)

    def insert(self, text: str, rows: Sequence[Values]) -> int:
        """Run one ``Insert`` and return how many rows are new."""
        return _inserted(self, text, rows)

    def numbers(self, text: str, forget: str, blocks: int) -> list[int]:  # noqa: ARG002 - a sequence forgets itself
        """Take that many blocks of numbers, and return the first number of each."""
        return _numbers(self, text, blocks)

    def close(self) -> None:
        """Close it; idempotent, never raises."""
        with contextlib.suppress(psycopg.Error):
            self._connection.close()


class PostgresCallers(CallersConnection):
    """A caller's connection, in the middle of its transaction."""

    def insert(self, text: str, rows: Sequence[Values]) -> int:
        """Run one ``Insert`` and return how many rows are new."""
        return _inserted(self, text, rows)

    def numbers(self, text: str, forget: str, blocks: int) -> list[int]:  # noqa: ARG002 - a sequence forgets itself
        """Take that many blocks of numbers, and return the first number of each."""
        return _numbers(self, text, blocks)


def _inserted(connection: PostgresConnection | PostgresCallers, text: str, rows: Sequence[Values]) -> int:
    return connection.run(text, {name: [row[name] for row in rows] for name in rows[0]}).changed


def _numbers(connection: PostgresConnection | PostgresCallers, text: str, blocks: int) -> list[int]:
    return sorted(number for (number,) in connection.run(text, {"blocks": blocks}).rows)


def _settings() -> str:
    settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
    return f"SELECT {settings}"


def _result(cursor: psycopg.Cursor[Any]) -> Result:
    # The description would be made for every result, and is dear.
    fields = cursor.pgresult.nfields if cursor.pgresult is not None else 0
    return Result(cursor.fetchall() if fields else [], cursor.rowcount)


class Postgres:
    """One database of a PostgreSQL server."""

    dialect: Dialect = "postgresql"

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters

    @staticmethod
    def parameters(url: DatabaseUrl) -> dict[str, Any]:
        """Return what a URL says, as psycopg takes it."""
        given = {name: value for name, value in url.parameters.items() if name not in {"table_prefix", "schema"}}
        main = {"host": url.host, "port": url.port, "user": url.user, "password": url.password, "dbname": url.database}
        return {**{name: value for name, value in main.items() if value}, **given}

    def connect(self) -> PostgresConnection:
        """Open a connection, ready for transactions; raises ``ConnectionFailed``."""
        return PostgresConnection(self.raw())

    def raw(self) -> psycopg.Connection[Any]:
        """Open a connection of the library."""
        options = {"application_name": "tenure", "connect_timeout": CONNECT, **_KEPT_ALIVE, **self._parameters}
        try:
            return PsycopgConnection.connect("", autocommit=True, prepare_threshold=None, **options)
        except psycopg.Error as error:
            # Its text may name hosts and users; it never reaches the message.
            raise connecting("PostgreSQL", str(error)) from None

    @property
    def begin(self) -> Sequence[str]:
        """How a writing transaction begins."""
        return ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", _settings())

    @property
    def begin_reading(self) -> Sequence[str]:
        """How a transaction begins that reads one state of everything."""
        return ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", _settings())

    def finding(self, find: str, *, alone: bool) -> Sequence[str]:
        """Return how to find queues and keep others from clearing them, or from any change."""
        return (LOCK_QUEUES_ALONE if alone else LOCK_QUEUES, find)

    def trouble(self, error: BaseException) -> Exception:
        """Return what an error of any client library means."""
        return trouble(error)

    def callers(self, caller: Statements) -> PostgresCallers:
        """Return a caller's connection as one of ours."""
        return PostgresCallers(caller, self)

    def notifying(self, channel: str, queues: Sequence[str]) -> Step | None:
        """Return how to tell other processes that there is something in these queues.

        In a transaction of its own, after the commit: within one, all commits that notify wait for one lock.
        """
        if not queues:
            return None
        return "SELECT pg_notify(%(channel)s, q) FROM unnest(CAST(%(queues)s AS text[])) AS q", {
            "channel": channel,
            "queues": list(queues),
        }


def trouble(error: BaseException) -> Exception:
    """Return what an error means, psycopg's or another library's, without the server's words, which may quote."""
    state = str(getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or "")
    if state in _AGAIN:
        return Again("the database rolled the call back because of others")
    if state in _REFUSALS:
        return StoreRefused(*_REFUSALS[state])
    kinds = {kind.__name__ for kind in type(error).__mro__}
    lost = not state and bool(kinds & {"OperationalError", "InterfaceError"})
    if lost or state.startswith(_BROKEN):
        return Lost("the connection to PostgreSQL broke")
    return StoreError(f"PostgreSQL failed ({type(error).__name__}{state and ' ' + state}); nothing was written")


@contextlib.contextmanager
def troubles() -> Iterator[None]:
    """Turn the library's errors into those that the driver knows, without the server's words, which may quote."""
    try:
        yield
    except psycopg.Error as error:
        raise trouble(error) from None

"""MySQL 8 and MariaDB, through PyMySQL: their connections, and what their errors mean."""

import contextlib
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pymysql
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from tenure.databases import DatabaseUrl
from tenure.drivers.sql.server.callers import CallersConnection
from tenure.drivers.sql.server.connection import Again, Lost, Result, Step, Values
from tenure.drivers.sql.server.faults import NO_TABLES, connecting
from tenure.drivers.sql.server.names import BLOCK
from tenure.drivers.sql.server.texts import Dialect
from tenure.enlisting import Statements
from tenure.errors import StoreError, StoreRefused

CONNECT: Final = 5
"""Seconds in which a connection must be there."""
STATEMENT: Final = 15
"""Seconds in which the server must answer."""

_SETTINGS: Final = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    "SET SESSION innodb_lock_wait_timeout = 5",
)
_SILENT: Final = {
    # A client that stands still, or whose host is gone, must not keep its locks.
    True: "SET SESSION idle_transaction_timeout = 15",
    False: "SET SESSION wait_timeout = 60",
}
"""By whether it is MariaDB."""
_REFUSALS: Final[Mapping[int, tuple[str, str]]] = {
    1146: NO_TABLES,
    1054: NO_TABLES,
    1142: ("RIGHTS", "the user lacks a right on tenure's tables; grant it"),
    1143: ("RIGHTS", "the user lacks a right on tenure's tables; grant it"),
    1227: ("RIGHTS", "the user lacks a right that the call needs; grant it"),
    1021: ("FULL", "the server's disk is full; make room"),
    1114: ("FULL", "the server's disk, or the table's space, is full; make room"),
    1153: ("TOOBIG", "a call is larger than the server takes; raise max_allowed_packet"),
    1290: ("READONLY", "the server takes no writes (a replica?)"),
    1792: ("READONLY", "the server takes no writes (a replica?)"),
    1836: ("READONLY", "the server takes no writes (a replica?)"),
    1665: ("BINLOG", "the server writes its log by statements, which READ COMMITTED forbids; set binlog_format = ROW"),
    1317: ("TIMEOUT", "a statement was interrupted"),
    1969: ("TIMEOUT", "a statement took longer than the server allows"),
    3024: ("TIMEOUT", "a statement took longer than the server allows"),
}
_KEPT_ALIVE: Final[Mapping[str, int]] = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
_AGAIN: Final = frozenset({1020, 1062, 1205, 1213, 3572})
"""The second is a retried unique job, whose lock somebody else took meanwhile."""
_BROKEN: Final = frozenset({0, 1053, 1077, 1080, 1158, 1159, 1160, 1161, 1927, 2003, 2006, 2013, 2014, 2055, 4031})


class MysqlConnection:
    """One connection, in autocommit: transactions are begun and ended by hand."""

    def __init__(self, connection: "pymysql.Connection[Cursor]") -> None:
        self._connection = connection

    def script(self, steps: Sequence[Step]) -> list[Result]:
        """Run statements one after the other, in one round trip: their values become part of the text here."""
        with troubles(), self._connection.cursor() as cursor:
            cursor.execute(
                "; ".join(cursor.mogrify(text, _bound(values)) if values else text for text, values in steps)
            )
            results = [_result(cursor)]
            while cursor.nextset():
                results.append(_result(cursor))
            return results

    def run(self, text: str, values: Values) -> Result:
        """Run one statement."""
        with troubles(), self._connection.cursor() as cursor:
            cursor.execute(text, _bound(values))
            return _result(cursor)

    def insert(self, text: str, rows: Sequence[Values]) -> int:
        """Run one ``Insert`` and return how many rows are new."""
        with troubles(), self._connection.cursor() as cursor:
            return int(cursor.executemany(text, list(rows)) or 0)

    def numbers(self, text: str, forget: str, blocks: int) -> list[int]:
        """Take that many blocks of numbers, and return the first number of each."""
        return _numbers(self, text, forget, blocks)

    def close(self) -> None:
        """Close it; idempotent, never raises."""
        with contextlib.suppress(pymysql.Error, OSError):
            self._connection.close()


class MysqlCallers(CallersConnection):
    """A caller's connection, in the middle of its transaction."""

    def insert(self, text: str, rows: Sequence[Values]) -> int:
        """Run one ``Insert`` and return 0: libraries ask the server to count rows that were there, too."""
        self.run_each(text, rows)
        return 0

    def numbers(self, text: str, forget: str, blocks: int) -> list[int]:
        """Take that many blocks of numbers, and return the first number of each."""
        return _numbers(self, text, forget, blocks)


def _numbers(connection: MysqlConnection | MysqlCallers, text: str, forget: str, blocks: int) -> list[int]:
    steps: list[Step] = [(text, {}), (forget, {}), ("SELECT LAST_INSERT_ID()", {})]
    return [int(connection.script(steps)[2].rows[0][0]) * BLOCK for _ in range(blocks)]


def _bound(values: Values) -> dict[str, Any]:
    """Return the values as the library takes them: a list that is empty would be no SQL."""
    return {name: value if value != [] else [None] for name, value in values.items()}


def _result(cursor: Cursor) -> Result:
    return Result(list(cursor.fetchall()) if cursor.description else [], cursor.rowcount)


class Mysql:
    """One database of a MySQL or MariaDB server."""

    dialect: Dialect = "mysql"

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters

    @staticmethod
    def parameters(url: DatabaseUrl) -> dict[str, Any]:
        """Return what a URL says, as PyMySQL takes it."""
        given: dict[str, Any] = {name: value for name, value in url.parameters.items() if name != "table_prefix"}
        if "ssl_verify_identity" in given:
            given["ssl_verify_identity"] = given["ssl_verify_identity"].lower() == "true"
        main = {"host": url.host, "port": url.port, "user": url.user, "password": url.password}
        return {**{name: value for name, value in main.items() if value}, "database": url.database, **given}

    def connect(self) -> MysqlConnection:
        """Open a connection, ready for transactions; raises ``ConnectionFailed``."""
        try:
            connection = pymysql.Connection(
                defer_connect=True,
                connect_timeout=CONNECT,
                read_timeout=STATEMENT,
                write_timeout=STATEMENT,
                autocommit=True,
                charset="utf8mb4",
                client_flag=CLIENT.MULTI_STATEMENTS,
                **self._parameters,
            )
            connection.connect(self._socket())
        except (pymysql.Error, OSError, RuntimeError) as error:
            # Its text may name hosts and users; it never reaches the message.
            raise connecting("the MySQL server", str(error)) from None
        made = MysqlConnection(connection)
        try:
            silent = _SILENT["MariaDB" in str(made.run("SELECT VERSION()", {}).rows[0][0])]
            made.script([(setting, {}) for setting in (*_SETTINGS, silent)])
        except (Lost, Again, StoreError) as error:
            made.close()
            raise connecting("the MySQL server", str(error)) from None
        return made

    def _socket(self) -> socket.socket | None:
        """Return a socket of our own, which notices that the other side is gone; for a path the library makes it."""
        path = self._parameters.get("unix_socket")
        if path is not None:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(path)  # where nobody listens, the library would leak its own
            return None
        made = socket.create_connection(
            (self._parameters.get("host", "localhost"), self._parameters.get("port", 3306)), CONNECT
        )
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, seconds in _KEPT_ALIVE.items():
            if hasattr(socket, name):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
        return made

    @property
    def begin(self) -> Sequence[str]:
        """How a writing transaction begins."""
        return ("START TRANSACTION READ WRITE",)

    @property
    def begin_reading(self) -> Sequence[str]:
        """How a transaction begins that reads one state of everything."""
        return (
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        )

    def finding(self, find: str, *, alone: bool) -> Sequence[str]:
        """Return how to find queues and keep others from clearing them, or from any change."""
        return (f"{find} {'FOR UPDATE' if alone else 'LOCK IN SHARE MODE'}",)

    def trouble(self, error: BaseException) -> Exception:
        """Return what an error of any client library means."""
        return trouble(error)

    def callers(self, caller: Statements) -> MysqlCallers:
        """Return a caller's connection as one of ours."""
        return MysqlCallers(caller, self)

    def notifying(self, channel: str, queues: Sequence[str]) -> Step | None:  # noqa: ARG002 - nobody can be told
        """Return nothing: waiting claims look by themselves."""
        return None


def trouble(error: BaseException) -> Exception:
    """Return what an error means, PyMySQL's or another library's, without the server's words, which may quote."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    if code in _AGAIN:
        return Again("the database rolled the call back because of others")
    if code in _REFUSALS:
        return StoreRefused(*_REFUSALS[code])
    if code in _BROKEN or isinstance(error, OSError) or type(error).__name__ == "InterfaceError":
        return Lost("the connection to the MySQL server broke")
    return StoreError(f"the MySQL server failed ({type(error).__name__} {code}); nothing was written")


@contextlib.contextmanager
def troubles() -> Iterator[None]:
    """Turn the library's errors into those that the driver knows, without the server's words, which may quote."""
    try:
        yield
    except (pymysql.Error, OSError) as error:
        raise trouble(error) from None

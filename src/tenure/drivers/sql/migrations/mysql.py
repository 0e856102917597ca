"""Changing the tables in MySQL and MariaDB, where each change of a table commits by itself."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pymysql
from sqlalchemy import Connection

from tenure.databases import DatabaseUrl
from tenure.drivers.sql.migrations.target import BRIEF, WAIT
from tenure.drivers.sql.mysql.server import CONNECT, Mysql, troubles
from tenure.drivers.sql.server.connection import Again
from tenure.drivers.sql.server.faults import connecting
from tenure.drivers.sql.server.texts import Dialect
from tenure.errors import StoreError


class MysqlTarget:
    """One database of MySQL or MariaDB."""

    dialect: Dialect = "mysql"
    scheme: str = "mysql+pymysql"

    def __init__(self, url: DatabaseUrl) -> None:
        self._parameters = Mysql.parameters(url)
        self._database = url.database

    def connect(self) -> Any:
        """Open a connection; raises ``ConnectionFailed``."""
        try:
            return pymysql.connect(connect_timeout=CONNECT, charset="utf8mb4", **self._parameters)
        except (pymysql.Error, OSError, RuntimeError) as error:
            # Its text may name hosts and users; it never reaches the message.
            raise connecting("the MySQL server", str(error)) from None

    def guards(self, key: int) -> Sequence[str]:  # noqa: ARG002 - such a lock does not suit a script
        """Return the text that limits how long a table's lock is waited for."""
        return (f"SET SESSION lock_wait_timeout = {BRIEF}",)

    def guard(self, connection: Connection, key: int) -> None:
        """Run it, and keep other migrations out as long as the connection is open."""
        for text in self.guards(key):
            connection.exec_driver_sql(text)
        # The names of such locks are the whole server's.
        if connection.exec_driver_sql(f"SELECT GET_LOCK('tenure.{key}', {WAIT})").scalar() != 1:
            raise Again("another migration runs")

    @contextlib.contextmanager
    def troubles(self) -> Iterator[None]:
        """Turn PyMySQL's errors into those that the driver knows; what was done before one of them stays."""
        try:
            with troubles():
                yield
        except StoreError as error:
            said = str(error).removesuffix("; nothing was written")
            raise StoreError(f"{said}; what the migration did before that stays: run it again") from None

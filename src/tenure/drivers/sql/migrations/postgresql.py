"""Changing the tables in PostgreSQL: each migration is one transaction, through poolers too."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import psycopg
from sqlalchemy import Connection

from tenure.databases import DatabaseUrl
from tenure.drivers.sql.migrations.target import BRIEF, WAIT
from tenure.drivers.sql.postgresql.server import CONNECT, Postgres, troubles
from tenure.drivers.sql.server.faults import connecting
from tenure.drivers.sql.server.texts import Dialect


class PostgresTarget:
    """One PostgreSQL database."""

    dialect: Dialect = "postgresql"
    scheme: str = "postgresql+psycopg"

    def __init__(self, url: DatabaseUrl) -> None:
        self._parameters = Postgres.parameters(url)

    def connect(self) -> Any:
        """Open a connection; raises ``ConnectionFailed``."""
        options: dict[str, Any] = {"application_name": "tenure-migrate", "connect_timeout": CONNECT, **self._parameters}
        try:
            return psycopg.connect("", prepare_threshold=None, **options)
        except psycopg.Error as error:
            # Its text may name hosts and users; it never reaches the message.
            raise connecting("PostgreSQL", str(error)) from None

    def guards(self, key: int) -> Sequence[str]:
        """Return the texts that keep other migrations out, and limit how long a table's lock is waited for."""
        return (
            f"SET LOCAL lock_timeout = '{WAIT}s'",
            f"SELECT pg_advisory_xact_lock({key})",
            f"SET LOCAL lock_timeout = '{BRIEF}s'",
        )

    def guard(self, connection: Connection, key: int) -> None:
        """Run them."""
        for text in self.guards(key):
            connection.exec_driver_sql(text)

    def troubles(self) -> AbstractContextManager[None]:
        """Turn psycopg's errors into those that the driver knows."""
        return troubles()

"""What differs between the servers when their tables are changed."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from tenure.drivers.sql.server.texts import Dialect

WAIT: Final = 10
"""Seconds in which another migration of the same tables must end, before one more try."""
BRIEF: Final = 2
"""Seconds for which a lock of a table is waited for: behind one that waits, everything else waits too."""


class Target(Protocol):
    """One database whose tables are changed."""

    dialect: Dialect
    scheme: str
    """How SQLAlchemy calls the server and its client library."""

    def connect(self) -> Any:
        """Open a connection of the library, on which a statement may take long; raises ``ConnectionFailed``."""
        ...

    def guards(self, key: int) -> Sequence[str]:
        """Return the texts that a script begins a migration with."""
        ...

    def guard(self, connection: Connection, key: int) -> None:
        """Keep other migrations out until the connection's transaction ends, and limit waits for tables.

        Raises ``Again``.
        """
        ...

    def troubles(self) -> AbstractContextManager[None]:
        """Turn the library's errors into ``Again``, ``Lost`` and ``StoreError``."""
        ...

"""``PostgresQueue``: the contract over a PostgreSQL database."""

from collections.abc import Mapping
from typing import Any

from tenure.databases import DatabaseUrl
from tenure.drivers.sql.postgresql.doctor import examine
from tenure.drivers.sql.postgresql.listening import Listening
from tenure.drivers.sql.postgresql.server import Postgres
from tenure.drivers.sql.server.driver import ServerQueue, named
from tenure.drivers.sql.server.names import Names
from tenure.drivers.sql.server.session import channel
from tenure.drivers.sql.server.texts import Texts
from tenure.drivers.sql.server.transaction import Place
from tenure.naming import check_namespace


class PostgresQueue(ServerQueue):
    """Jobs in a PostgreSQL database, 13 or newer. ``parameters`` are psycopg's."""

    @classmethod
    def from_url(cls, url: DatabaseUrl, *, namespace: str, names: Names | None = None) -> "PostgresQueue":
        """Return a driver for the database that a URL names."""
        return cls(Postgres.parameters(url), namespace=namespace, names=names or named(url))

    def __init__(self, parameters: Mapping[str, Any], *, namespace: str, names: Names | None = None) -> None:
        server = Postgres(parameters)
        place = Place(server, Texts(server.dialect, names or Names()), check_namespace(namespace))
        super().__init__(place, lambda waiters: Listening(server, channel(place), waiters), examine)

"""Words for tests of the drivers for database servers."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy
from sqlalchemy.exc import DatabaseError

from tenure import databases
from tenure.drivers.sql.server.driver import ServerQueue
from tenure.drivers.sql.server.names import Names
from tests.support.databases import Database
from tests.support.wire import Wire


@dataclass(frozen=True)
class Place:
    """A namespace of a database."""

    database: Database
    namespace: str
    postgres: bool

    def queue(self, *, url: str | None = None, names: Names | None = None) -> ServerQueue:
        """Return a driver, which the caller closes."""
        return driver(url or self.database.url, self.namespace, names)

    def ask(self, statement: str, **values: Any) -> list[Any]:
        """Return what the database itself says."""
        return ask(self.database.engine(), statement, **values)

    @contextlib.contextmanager
    def wire(self) -> Iterator[tuple[Wire, str]]:
        """Give a proxy before the server, and the URL of it."""
        url = databases.of(self.database.url, "url")
        with Wire(url.socket if url.socket else (url.host, url.port)) as wire:
            if url.socket:
                yield wire, self.database.url.replace(url.socket, wire.socket)
            else:
                yield wire, self.database.url.replace(f":{url.port}", f":{wire.port}")

    def kill_sessions(self) -> int:
        """End the server's side of every connection that the drivers have, in the middle of whatever they do."""
        if self.postgres:
            return len(
                self.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tenure'")
            )
        killed = 0
        for (number,) in self.ask("SELECT id FROM information_schema.processlist WHERE id <> connection_id()"):
            with contextlib.suppress(DatabaseError):  # it ended by itself
                self.ask(f"KILL CONNECTION {int(number)}")
                killed += 1
        return killed

    def transactions(self) -> int:
        """Return how many transactions are open, but for this question's own."""
        if self.postgres:
            statement = "SELECT count(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()"
            statement += " AND application_name = 'tenure'"
        else:
            statement = (
                "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> connection_id()"
            )
        return int(self.ask(statement)[0][0])


def place_of(database: Database, namespace: str) -> Place:
    return Place(database, namespace, database.name == "postgresql")


def driver(url: str, namespace: str, names: Names | None = None) -> ServerQueue:
    read = databases.of(url, "url")
    if read.server == "postgresql":
        from tenure.drivers.sql.postgresql import PostgresQueue  # noqa: PLC0415

        return PostgresQueue.from_url(read, namespace=namespace, names=names)
    from tenure.drivers.sql.mysql import MysqlQueue  # noqa: PLC0415

    return MysqlQueue.from_url(read, namespace=namespace, names=names)


def ask(engine: sqlalchemy.Engine, statement: str, **values: Any) -> list[Any]:
    with engine.begin() as connection:
        result = connection.execute(sqlalchemy.text(statement), values)
        return [tuple(row) for row in result.all()] if result.returns_rows else []


COUNTED = """
SELECT q.name, coalesce(sum(c.ready), 0), coalesce(sum(c.later), 0), coalesce(sum(c.leased), 0),
       coalesce(sum(c.failed), 0), coalesce(sum(c.unreadable), 0)
FROM tenure_queues q LEFT JOIN tenure_counters c ON c.queue = q.number
WHERE q.namespace = :namespace GROUP BY q.number, q.name ORDER BY q.number
"""
PRESENT = """
SELECT q.name,
       (SELECT count(*) FROM tenure_jobs j WHERE j.queue = q.number AND j.shelf = q.line AND j.state IN (0, 1)),
       (SELECT count(*) FROM tenure_jobs j WHERE j.queue = q.number AND j.shelf = q.line AND j.state = 2),
       (SELECT count(*) FROM tenure_jobs j WHERE j.queue = q.number AND j.shelf = q.number AND j.state = 3),
       (SELECT count(*) FROM tenure_jobs j WHERE j.queue = q.number AND j.shelf = q.number AND j.state = 4
                                               AND j.failure IS NOT NULL),
       (SELECT count(*) FROM tenure_unreadable u WHERE u.queue = q.number)
FROM tenure_queues q WHERE q.namespace = :namespace ORDER BY q.number
"""


def assert_consistent(place: Place) -> None:
    """Every counter says what is there."""
    counted = place.ask(COUNTED, namespace=place.namespace)
    present = place.ask(PRESENT, namespace=place.namespace)
    assert [tuple(map(str, row)) for row in counted] == [tuple(map(str, row)) for row in present]

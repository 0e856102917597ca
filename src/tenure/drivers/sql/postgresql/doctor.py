"""Looks at a PostgreSQL server for what would break a promise; changes nothing."""

import time
from collections.abc import Iterator
from typing import Final

from tenure.drivers.sql.server.connection import Connection
from tenure.drivers.sql.server.findings import clocks, connections, finding, not_durable, one, tables
from tenure.drivers.sql.server.names import Names
from tenure.operating import Finding, Severity

OLDEST: Final = 130000
LONG: Final = 600
"""Seconds that a transaction may last without a word."""


def examine(connection: Connection, names: Names, durability: int) -> Iterator[Finding]:
    """Return what was found."""
    yield from _server(connection, durability)
    yield from _load(connection)
    schema = names.schema
    here = "schemaname = coalesce(CAST(%(schema)s AS text), current_schema())"
    there = connection.run(f"SELECT tablename FROM pg_tables WHERE {here}", {"schema": schema}).rows  # noqa: S608
    indexes = connection.run(f"SELECT indexname FROM pg_indexes WHERE {here}", {"schema": schema}).rows  # noqa: S608
    yield from tables((name for (name,) in there), (name for (name,) in indexes), names, sequence=True)


def _server(connection: Connection, durability: int) -> Iterator[Finding]:
    settings = "SELECT current_setting('server_version_num')::int, current_setting('fsync'), "
    settings += "current_setting('synchronous_commit'), current_setting('full_page_writes'), pg_is_in_recovery()"
    version, fsync, commit, pages, standby = one(connection, settings)
    if version < OLDEST:
        yield finding(
            Severity.SERIOUS,
            "version",
            f"the server is PostgreSQL {version // 10000}",
            "statements that it does not know fail",
            "use PostgreSQL 13 or newer",
        )
    if standby:
        yield finding(
            Severity.SERIOUS,
            "standby",
            "the server is a standby",
            "every push, claim and settlement is refused",
            "connect to the primary (target_session_attrs=read-write)",
        )
    if fsync == "off" or pages == "off":
        setting = "fsync = off" if fsync == "off" else "full_page_writes = off"
        yield not_durable(setting, Severity.SERIOUS, "after a power cut the whole database may be damaged, and")
    elif commit == "off":
        severity = Severity.NOTE if durability > 1 else Severity.WARNING
        yield not_durable("synchronous_commit = off", severity, "after a crash of the server")


def _load(connection: Connection) -> Iterator[Finding]:
    (clock,) = one(connection, "SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8)")
    yield from clocks(clock, time.time())
    used, most = one(
        connection, "SELECT (SELECT count(*) FROM pg_stat_activity), current_setting('max_connections')::int"
    )
    yield from connections(used, most)
    longest = one(
        connection,
        "SELECT CAST(max(extract(epoch FROM clock_timestamp() - xact_start)) AS float8) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
    )
    if longest and longest[0] is not None and longest[0] > LONG:
        yield finding(
            Severity.WARNING,
            "transaction",
            f"a transaction in this database has been open for {longest[0] / 60:.0f} minutes",
            "no row that jobs left behind can be cleaned away meanwhile: claims get slower and slower",
            "end it; set idle_in_transaction_session_timeout for the programs that forget theirs",
        )

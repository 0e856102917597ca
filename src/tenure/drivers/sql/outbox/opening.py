"""The outbox that an address names."""

from pathlib import Path

from tenure.clock import SystemClock
from tenure.databases import DatabaseUrl
from tenure.drivers.sql.outbox.boxes import Box
from tenure.drivers.sql.outbox.files import FileAccess
from tenure.drivers.sql.outbox.servers import ServerAccess
from tenure.drivers.sql.outbox.writing import FileWriter, ServerWriter, Writer
from tenure.drivers.sql.server.connection import Server
from tenure.drivers.sql.server.names import DEFAULT_PREFIX, Names
from tenure.drivers.sql.server.texts import Texts
from tenure.drivers.sql.server.transaction import Place
from tenure.drivers.sql.sqlite.session import Location
from tenure.urls import Address

BUSY_TIMEOUT = 5.0
"""Seconds to wait for a file that another process has locked."""


def box_of(address: Address) -> Box:
    """Return the outbox, opened at first use."""
    database = address.database
    return Box(FileAccess(_location(address)) if database is None else ServerAccess(_place(database)))


def writer_of(address: Address) -> Writer:
    """Return what writes into the outbox, by connections of others."""
    database = address.database
    return FileWriter(_location(address)) if database is None else ServerWriter(_place(database))


def _location(address: Address) -> Location:
    path = Path(address.path).absolute()
    return Location(path=path, namespace="", timeout=BUSY_TIMEOUT, max_bytes=None, clock=SystemClock())


def _place(url: DatabaseUrl) -> Place:
    names = Names(url.parameters.get("table_prefix", DEFAULT_PREFIX), url.parameters.get("schema"))
    server: Server
    if url.server == "postgresql":
        from tenure.drivers.sql.postgresql.server import Postgres  # noqa: PLC0415 - an extra, imported when it is used

        server = Postgres(Postgres.parameters(url))
    else:
        from tenure.drivers.sql.mysql.server import Mysql  # noqa: PLC0415 - as above

        server = Mysql(Mysql.parameters(url))
    return Place(server, Texts(server.dialect, names), "")

"""The outbox of one application: where transactions keep jobs for stores that they cannot reach."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tenure.config import Settings, path_namespace
from tenure.connections import Connection, require_database
from tenure.enlisting import Statements
from tenure.errors import ConfigurationError, NotSupported
from tenure.queue import Push, Pushed
from tenure.routes import WITHIN, Outbox, Promised
from tenure.urls import Address

if TYPE_CHECKING:
    from tenure.drivers.sql.outbox import Box, Line, Writer


class OutboxLag(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in the outbox for one queue of one connection."""

    connection: str
    queue: str
    jobs: int
    oldest_age: float
    """Seconds since the first of them was written."""


class Outgoing:
    """Writes into the outbox that the settings name, and tells what waits in it."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._writers: dict[str, Writer] = {}

    def outbox(self) -> Outbox | None:
        """Return what takes jobs in a caller's transaction; None when no outbox is configured."""
        address = self._settings().outbox()
        return None if address is None else partial(self._write, address)

    def _write(
        self, address: Address, caller: Statements, connection: Connection, jobs: Sequence[Push]
    ) -> Sequence[Pushed]:
        place = address.url or address.path
        writer = self._writers.get(place) or self._writers.setdefault(place, _writer(address))
        if not writer.write(caller, connection.settings.namespace, connection.name, jobs):
            raise NotSupported(
                connection.capabilities.driver,
                f"{WITHIN} of another database than its own, or the outbox's",
                "give it a connection to the database of TENURE_OUTBOX_URL (DATABASE_URL), or use after_commit=",
            )
        return [Promised(job.id, "stored") for job in jobs]

    async def lag(self) -> list[OutboxLag]:
        """Return what waits for this application's connections, sorted; raises ``StoreError``, ``NotSupported``."""
        settings = self._settings()
        box = box_of(settings)
        try:
            waiting = await asyncio.to_thread(box.lag)
        finally:
            await asyncio.to_thread(box.close)
        return [
            OutboxLag(connection=line.target, queue=line.queue, jobs=jobs, oldest_age=age)
            for line, jobs, age in waiting
            if belongs(settings, line)
        ]


def box_of(settings: Settings) -> "Box":
    """Return the outbox that the settings name; raises ``ConfigurationError`` when they name none."""
    address = settings.outbox()
    if address is None:
        raise ConfigurationError("TENURE_OUTBOX_URL", "is not set, nor is DATABASE_URL, so there is no outbox")
    _require(address)
    from tenure.drivers.sql.outbox import box_of  # noqa: PLC0415 - keeps `import tenure` light

    return box_of(address)


def belongs(settings: Settings, line: "Line") -> bool:
    """Tell whether jobs in the outbox are this application's: several may share a database."""
    try:
        own = settings.connection(line.target).namespace
    except ConfigurationError:
        own = settings.namespace or path_namespace()
    return line.namespace == own


def _writer(address: Address) -> "Writer":
    _require(address)
    from tenure.drivers.sql.outbox import writer_of  # noqa: PLC0415 - keeps `import tenure` light

    return writer_of(address)


def _require(address: Address) -> None:
    if address.database is not None:
        require_database(address.database.server, f"an outbox in a {address.database.server}:// database")

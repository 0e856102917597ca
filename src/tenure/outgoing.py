"""The outbox of one application: where transactions keep jobs for stores that they cannot reach."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
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

    def outbox(self) -> Outbox | None:
        """Return what takes jobs in a caller's transaction; None when no outbox is configured."""
        return None if self._address is None else self._write

    @cached_property
    def _address(self) -> Address | None:
        return self._settings().outbox()

    @cached_property
    def _writer(self) -> "Writer":
        assert self._address is not None, "it was looked for"
        _require(self._address)
        from tenure.drivers.sql.outbox import writer_of  # noqa: PLC0415 - keeps `import tenure` light

        return writer_of(self._address)

    def _write(self, caller: Statements, connection: Connection, jobs: Sequence[Push]) -> Sequence[Pushed]:
        if not self._writer.write(caller, connection.settings.namespace, connection.name, jobs):
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


def _require(address: Address) -> None:
    if address.database is not None:
        require_database(address.database.server, f"an outbox in a {address.database.server}:// database")

"""Writing jobs for other stores by a caller's own connection, in the middle of its transaction."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from tenure.drivers.sql.outbox import statements
from tenure.drivers.sql.parts import parts
from tenure.drivers.sql.server.callers import troubles
from tenure.drivers.sql.server.connection import Again, Lost
from tenure.drivers.sql.server.faults import NO_TABLES
from tenure.drivers.sql.server.transaction import Place
from tenure.drivers.sql.sqlite.callers import Callers
from tenure.drivers.sql.sqlite.forking import Sessions
from tenure.drivers.sql.sqlite.session import Location
from tenure.drivers.sql.units import SECOND, micros, nearest_micros
from tenure.enlisting import Statements
from tenure.errors import ConnectionFailed, StoreRefused
from tenure.queue import Push
from tenure.waiting import Waiters

BRIEF: Final = 1.0
"""Seconds to wait for a file in which tables are to be made: who holds its lock may be the caller."""


class Writer(Protocol):
    """Writes jobs into the outbox of one database."""

    def write(self, caller: Statements, namespace: str, target: str, jobs: Sequence[Push]) -> bool:
        """Write jobs for the connection ``target`` in the caller's transaction; False when it is another database's.

        Raises ``StoreError``; then the caller's transaction may be good for nothing but to be rolled back.
        """
        ...


class ServerWriter:
    """See ``Writer``: two statements, and one more for each further 500 jobs."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._ours: tuple[Any, ...] = ()

    def write(self, caller: Statements, namespace: str, target: str, jobs: Sequence[Push]) -> bool:
        """Write jobs for the connection ``target`` in the caller's transaction; False when it is another database's."""
        server, texts = self._place.server, self._place.texts
        if caller.dialect != server.dialect:
            return False
        connection = server.callers(caller)
        with troubles():
            now, *theirs = connection.run(texts.of(statements.WHEREABOUTS), {}).rows[0]
            if tuple(theirs) != self._ours:  # not asked yet; or the server was restarted, or the tables were made anew
                self._ours = caller.aside(self._whereabouts)
            if tuple(theirs[:-1]) != self._ours[:-1]:
                return False
            if theirs[-1] is None:
                raise StoreRefused(*NO_TABLES)
            if theirs[-1] != self._ours[-1]:  # in another schema
                return False
            for part in parts(jobs):
                connection.insert(texts.of(statements.ADD), [_row(namespace, target, job, int(now)) for job in part])
        return True

    def _whereabouts(self) -> tuple[Any, ...]:
        """Ask on a connection of our own where the outbox is."""
        connection = self._place.server.connect()
        try:
            return tuple(connection.run(self._place.texts.of(statements.WHEREABOUTS), {}).rows[0][1:])
        except (Lost, Again) as error:
            raise ConnectionFailed(f"{error}; nothing was written") from None
        finally:
            connection.close()


_COLUMNS: Final = tuple(statements.ADD.columns)
_ADD: Final = f"INSERT INTO tenure_outbox ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608


class FileWriter:
    """See ``Writer``; a caller's connection to the outbox's file."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._callers = Callers(location, self._prepare)

    def write(self, caller: Statements, namespace: str, target: str, jobs: Sequence[Push]) -> bool:
        """Write jobs for the connection ``target`` in the caller's transaction; False when it has another file open."""
        file = self._callers.file(caller)
        if file is None:
            return False
        now = int(self._location.clock.time() * SECOND)
        for job in jobs:
            file.execute(_ADD, tuple(_row(namespace, target, job, now).values()))
        return True

    def _prepare(self) -> None:
        session = Sessions(replace(self._location, timeout=BRIEF)).new(Waiters())
        try:
            session.read(lambda _: None)
        except StoreRefused as error:
            if error.code != "BUSY":
                raise
            raise StoreRefused(
                "NOTABLES",
                "the file has no tables of this tenure's yet, and none can be made while a transaction writes to it: "
                "run `tenure relay --once` before",
            ) from error
        finally:
            session.close()


def _row(namespace: str, target: str, job: Push, now: int) -> dict[str, Any]:
    """Return a job's row, its columns in the order of the statement."""
    return {
        "namespace": namespace,
        "target": target,
        "queue": job.queue,
        "job": job.id,
        "priority": job.priority,
        "durability": job.durability,
        "crash_limit": job.crash_limit,
        "due": now + micros(job.delay) if job.delay > 0 else None,
        "expires": None if job.expires_in is None else now + micros(job.expires_in),
        "keep": nearest_micros(job.keep),
        "unique_key": job.unique or None,
        "created": now,
        "envelope": job.envelope,
    }

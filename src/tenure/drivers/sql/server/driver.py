"""``ServerQueue``: the contract over the tables of a database server."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from tenure.databases import DatabaseUrl
from tenure.drivers.sql.calls import Calls, Watch
from tenure.drivers.sql.engine import Engine
from tenure.drivers.sql.queue import SqlQueue
from tenure.drivers.sql.server import transitions
from tenure.drivers.sql.server.callers import Callers
from tenure.drivers.sql.server.connection import Again, Connection, Lost
from tenure.drivers.sql.server.findings import ordered
from tenure.drivers.sql.server.names import DEFAULT_PREFIX, Names
from tenure.drivers.sql.server.session import Session
from tenure.drivers.sql.server.transaction import Place, Transaction
from tenure.errors import OutcomeUnknown
from tenure.operating import Finding
from tenure.queue import Capabilities
from tenure.waiting import Waiters

Examine = Callable[[Connection, Names, int], Iterable[Finding]]


class ServerQueue(SqlQueue[Transaction]):
    """Jobs in the tables of a database server.

    A process has a connection for each kind of call that it makes (push, claim, settle, operate), one for its keeper,
    and on PostgreSQL one that hears of pushes; each is opened at first use. The tables must be there.
    """

    def __init__(self, place: Place, watch: Callable[[Waiters], Watch], examine: Examine) -> None:
        self._place = place
        self._examine = examine
        super().__init__(
            transitions,
            lambda: Calls(self._engine, watch, lanes=True),
            self._new_session,
            Callers(place, lambda: self.here().on("operate")),
        )

    def _new_session(self, waiters: Waiters) -> Session:
        return Session(self._place, waiters)

    def _engine(self, waiters: Waiters) -> Engine[Transaction]:
        return Engine(self._new_session(waiters), waiters)

    @property
    def capabilities(self) -> Capabilities:
        """What this driver can do."""
        return Capabilities(
            driver="sql",
            shared=True,
            results=True,
            unique=True,
            compositions=True,
            spanning=True,
            schedules=True,
            transactions=True,
            durability=frozenset({1, 2}),
        )

    async def diagnose(self, *, durability: int = 1) -> Sequence[Finding]:
        """Look at the server and the tables for what would break a promise; changes nothing."""
        return await asyncio.to_thread(self._diagnosed, durability)

    def _diagnosed(self, durability: int) -> list[Finding]:
        connection = self._place.server.connect()
        try:
            return ordered(self._examine(connection, self._place.texts.names, durability))
        except (Lost, Again) as error:
            raise OutcomeUnknown(f"{error} while it was looked at; nothing was changed") from error
        finally:
            connection.close()


def named(url: DatabaseUrl) -> Names:
    """Return what a URL says of the tables."""
    return Names(url.parameters.get("table_prefix", DEFAULT_PREFIX), url.parameters.get("schema"))

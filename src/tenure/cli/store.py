"""The store that an operator's command works on; no user code is needed for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypedDict, TypeVar

import msgspec

from tenure.app import Tenure
from tenure.cli.output import inert, note
from tenure.cli.target import find_app
from tenure.errors import NotSupported, StoreRefused, TenureError
from tenure.operations import Operations
from tenure.outgoing import OutboxLag

T = TypeVar("T")


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about the store; what it leaves out, the environment says."""

    url: str | None
    namespace: str | None
    connection: str
    app: str | None


class On(TypedDict):
    """The connection, as operations take it."""

    connection: str


class Store:
    """One store as operators see it."""

    def __init__(self, app: Tenure, connection: str) -> None:
        able = app.queue(connection).capabilities
        if not able.shared:
            raise NotSupported(able.driver, "operating it from here", "its jobs are known to their own process only")
        self._app = app
        self.operations: Operations = app.operate
        self.on: On = {"connection": connection}

    async def queues(self, named: Sequence[str] | None = None) -> Sequence[str]:
        """Return the queues that were named, or all that the store knows."""
        return named if named is not None else await self.operations.queues(**self.on)

    async def outbox(self, named: Sequence[str] | None = None) -> Sequence[OutboxLag] | None:
        """Return what waits in the outbox for the queues that were named, or all; None when there is no outbox.

        One that cannot be read is told of, and is no reason not to tell the rest.
        """
        try:
            if self._app.settings.outbox() is None:
                return None
            waiting = await self._app.outbox_lag()
        except TenureError as error:
            # DATABASE_URL may name a database that has nothing to do with tenure.
            if not isinstance(error, StoreRefused) or error.code != "NOTABLES":
                note(f"tenure: what waits in the outbox is not known: {inert(error)}")
            return None
        return [one for one in waiting if named is None or one.queue in named]


def operate(where: Where, action: Callable[[Store], Awaitable[T]]) -> T:
    """Run the action on the store, and close what was opened."""

    async def run() -> T:
        try:
            return await action(Store(app, where.connection))
        finally:
            await app.aclose()

    app = app_of(where)
    return asyncio.run(run())


def app_of(where: Where) -> Tenure:
    """Return the user's own application, or a bare one on the store that is named."""
    return find_app(where.app) if where.app else Tenure(where.url, namespace=where.namespace)

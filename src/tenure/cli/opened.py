"""An application for the length of a command: the user's own, or a bare one on the store that is named."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenure.app import Tenure
from tenure.cli.store import Store, Where, app_of

T = TypeVar("T")


def with_store(where: Where, action: Callable[[Tenure], Awaitable[T]]) -> T:
    """Do the same for what works on the store, which others must see: see ``Store``."""

    async def checked(app: Tenure) -> T:
        Store(app, where.connection)
        return await action(app)

    return with_app(where, checked)


def with_app(where: Where, action: Callable[[Tenure], Awaitable[T]]) -> T:
    """Run the action with the application, and close what it opened."""

    async def run() -> T:
        try:
            return await action(app)
        finally:
            await app.aclose()

    app = app_of(where)
    return asyncio.run(run())

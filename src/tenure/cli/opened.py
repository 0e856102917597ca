"""An application for the length of a command: the user's own, or a bare one on the store that is named."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenure.app import Tenure
from tenure.cli.store import Where
from tenure.cli.target import find_app

T = TypeVar("T")


def with_app(where: Where, action: Callable[[Tenure], Awaitable[T]]) -> T:
    """Run the action with the application, and close what it opened."""

    async def run() -> T:
        try:
            return await action(app)
        finally:
            await app.aclose()

    app = find_app(where.app) if where.app else Tenure(where.url, namespace=where.namespace)
    return asyncio.run(run())

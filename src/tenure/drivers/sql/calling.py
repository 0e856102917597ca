"""How a driver's calls run: each as a transition in a transaction, on one of this process's threads."""

import asyncio
import os
from collections.abc import Callable
from typing import Generic, TypeVar

from tenure.drivers.sql.calls import Calls, Lane
from tenure.drivers.sql.transitions import Transitions

T = TypeVar("T")
Tx = TypeVar("Tx")


class Calling(Generic[Tx]):
    """Runs transitions, and waits for what they bring.

    A caller that is cancelled leaves its transaction to the thread, which ends it: no connection is ever left in the
    middle of one.
    """

    def __init__(self, transitions: Transitions[Tx], calls: Callable[[], Calls[Tx]]) -> None:
        self._transitions = transitions
        self._calls = calls
        self._local: Calls[Tx] | None = None

    def here(self) -> Calls[Tx]:
        """Return what belongs to this process; in a child of a fork the threads of its parent do not exist."""
        local = self._local
        if local is None or local.pid != os.getpid():
            local = self._local = self._calls()
        return local

    async def _read(self, operation: Callable[[Tx], T]) -> T:
        return await asyncio.wrap_future(self.here().on("operate").read(operation))

    async def _write(self, lane: Lane, operation: Callable[[Tx], T], *, durable: bool = True, weight: int = 1) -> T:
        return await asyncio.wrap_future(self.here().on(lane).write(operation, durable=durable, weight=weight))

    async def _stop(self) -> None:
        local, self._local = self._local, None
        if local is not None and local.pid == os.getpid():
            await local.stop()

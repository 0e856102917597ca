"""The threads that one process's calls run on, by what they do, and what wakes its waiting claims."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, Literal, Protocol, TypeVar

from tenure.drivers.sql.engine import Engine
from tenure.waiting import Waiters

Tx = TypeVar("Tx")

Lane = Literal["push", "claim", "settle", "operate"]
"""Calls of one lane follow one another; those of another do not wait for them."""


class Watch(Protocol):
    """How a waiting claim learns what other processes did."""

    def longest_sleep(self) -> float:
        """Return the seconds after which it looks again in any case."""
        ...

    def stop(self) -> "Future[None]":
        """Begin to end, and return what is done when it has; idempotent."""
        ...


def nothing_to_end() -> "Future[None]":
    """Return what is done already."""
    done: Future[None] = Future()
    done.set_result(None)
    return done


class Calls(Generic[Tx]):
    """What belongs to one process: its waiting claims, and one thread for each lane that was used."""

    def __init__(
        self, engine: Callable[[Waiters], Engine[Tx]], watch: Callable[[Waiters], Watch], *, lanes: bool
    ) -> None:
        self.pid: int = os.getpid()
        self.waiters: Waiters = Waiters()
        self.watch: Watch = watch(self.waiters)
        self._engine = engine
        self.lanes: bool = lanes
        """Calls go over a network, each kind on a connection of its own."""
        self._lock = threading.Lock()
        self._engines: dict[str, Engine[Tx]] = {}

    def on(self, lane: Lane) -> Engine[Tx]:
        """Return the thread of a lane, or of all when there are none."""
        name = lane if self.lanes else ""
        with self._lock:
            found = self._engines.get(name)
            if found is None:
                found = self._engines[name] = self._engine(self.waiters)
            return found

    async def stop(self) -> None:
        """End the threads after the calls before this one, and close their connections."""
        with self._lock:
            engines = list(self._engines.values())
        # No thread is needed for it: at the interpreter's end none can be had.
        ends = [*(engine.stop() for engine in engines), self.watch.stop()]
        await asyncio.gather(*map(asyncio.wrap_future, ends))

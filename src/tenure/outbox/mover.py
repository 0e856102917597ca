"""What carries the jobs of one connection from the outbox to its store."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar

from tenure.drivers.sql.outbox import Box, Line, Sending
from tenure.queue import Pushed
from tenure.relaying import Forgotten, Relays

logger: Final = logging.getLogger("tenure.relay")

T = TypeVar("T")
Told = Callable[[Sending, Sequence[Pushed]], None]

CALLS: Final = 20
"""How many calls a line makes in a row before the others have their turn."""


class Threaded:
    """The outbox's blocking calls, in a thread of their own."""

    def __init__(self, box: Box) -> None:
        self.box: Box = box
        self._thread = ThreadPoolExecutor(1, "tenure-outbox")

    async def call(self, work: Callable[[], T]) -> T:
        """Do something that blocks; a caller that is cancelled leaves it to the thread, which ends it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @asynccontextmanager
    async def locked(self, line: Line) -> AsyncIterator[bool]:
        """Keep other relays from a line for the length of the block; False when one of them has it."""
        lock = self.box.locked(line)
        got = await self.call(lock.__enter__)
        try:
            yield got
        finally:
            await asyncio.shield(self.call(lambda: lock.__exit__(None, None, None)))

    async def close(self) -> None:
        """Close the outbox and end the thread."""
        await self.call(self.box.close)
        self._thread.shutdown(wait=False)


class Stopping(Protocol):
    """Whether the relay is to end."""

    def is_set(self) -> bool:
        """Tell whether it is."""
        ...


class Mover:
    """Moves jobs of one connection, call by call.

    A call is recorded before it is sent, and its rows are removed when its answer is in. Whatever ends the mover in
    between, the next ``move``, here or elsewhere, finds the record and makes that very call again, which changes
    nothing if it was made.
    """

    def __init__(self, store: Relays, outbox: Threaded, told: Told) -> None:
        self._store = store
        self._outbox = outbox
        self._told = told

    async def move(self, line: Line, stopping: Stopping) -> int:
        """Move jobs of a line, some calls of them, and return how many; 0 when none waits, or another relay moves it.

        Raises ``TenureError`` when the outbox or the store fails; then nothing is lost, and moving again repeats it.
        """
        moved = 0
        async with self._outbox.locked(line) as got:
            for _ in range(CALLS if got else 0):
                if stopping.is_set():
                    break
                sending = await self._outbox.call(lambda: self._outbox.box.begin(line))
                if sending is None:
                    break
                count = await self._send(line, sending)
                if count is None:
                    break
                moved += count
        return moved

    async def _send(self, line: Line, sending: Sending) -> int | None:
        """Make a call, and return how many jobs it moved; None when somebody else has gone on with the line."""
        outcomes: Sequence[Pushed] = ()
        try:
            if sending.jobs:
                outcomes = await self._store.push_numbered(sending.client, sending.number, sending.jobs)
        except Forgotten:
            return await self._renew(line, sending)
        for outcome in outcomes:
            # Not confirmed as durably as it was asked for, too: the rows stay until it is.
            if outcome.error is not None:
                raise outcome.error
        if not await self._outbox.call(lambda: self._outbox.box.finish(line, sending)):
            return None
        self._told(sending, outcomes)
        return len(sending.jobs)

    async def _renew(self, line: Line, sending: Sending) -> int | None:
        if not await self._outbox.call(lambda: self._outbox.box.renew(line, sending)):
            return None
        if sending.repeated:
            logger.warning(
                "the store of connection %s has lost its record of the last call to queue %s (it was emptied, restored "
                "or failed over): %d jobs are pushed anew, and those of them that had run run again",
                line.target,
                line.queue,
                len(sending.jobs),
            )
        return 0

"""Waiting for a wake-up: a blocking read of the queues' markers, and a clock of our own beside it.

A server looks after blocked clients that are over time only when something else happens to it, or ten times a second:
too coarse for a job that is due. So the waiting ends by this side's clock, and the read is left to end by itself: the
claim that follows is what makes the server see that it is over time.
"""

import asyncio
from collections.abc import Sequence

from tenure.drivers.redis.connection import pack
from tenure.drivers.redis.session import Session
from tenure.drivers.redis.trouble import Rejected, Trouble

MARGIN = 5.0
"""Seconds that the server may answer later than it was told to."""
PAUSE = 0.1
"""Seconds after trouble."""


class Waiter:
    """The waiting claims of one event loop, each on a connection of its own for as long as it waits."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._left: set[asyncio.Task[bool]] = set()
        self._late_marker = asyncio.Event()
        """A read that was left to end by itself has brought a marker after all."""

    async def wait(self, queues: Sequence[str], seconds: float) -> None:
        """Return when a marker was there, or after that time. Trouble ends the waiting: the next look will tell."""
        self._session.check_open()
        loop = asyncio.get_running_loop()
        reading, told = loop.create_task(self._read(queues, seconds)), loop.create_task(self._late_marker.wait())
        try:
            await asyncio.wait({reading, told}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Closes its connection: a marker must not be taken by someone who has gone.
            reading.cancel()
            raise
        finally:
            told.cancel()
        self._late_marker.clear()
        if not reading.done():
            self._left.add(reading)
            reading.add_done_callback(self._ended)

    def _ended(self, reading: "asyncio.Task[bool]") -> None:
        self._left.discard(reading)
        if not reading.cancelled() and reading.exception() is None and reading.result():
            self._late_marker.set()

    async def _read(self, queues: Sequence[str], seconds: float) -> bool:
        command = pack(b"BLPOP", *self._session.keyspace.wake(queues), f"{max(seconds, 0.001):.3f}")
        links = self._session.links
        link = links.take()
        try:
            return await link.exchange(command, seconds + MARGIN) is not None
        except Rejected:
            # A user without permission to block, or a key of another type: then it is polled.
            await asyncio.sleep(seconds)
        except Trouble:
            # The look that follows meets the same trouble and reports it, or has none and goes on; in no hurry.
            await asyncio.sleep(min(seconds, PAUSE))
        finally:
            await links.give(link)
        return False

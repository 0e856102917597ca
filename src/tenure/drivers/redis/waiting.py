"""Waiting for a wake-up: a blocking read of the queues' markers."""

import asyncio
from collections.abc import Sequence

from tenure.drivers.redis.connection import pack
from tenure.drivers.redis.session import Session
from tenure.drivers.redis.trouble import Rejected, Trouble

MARGIN = 5.0
"""Seconds that the server may answer later than it was told to."""


class Waiter:
    """The waiting claims of one event loop, each on a connection of its own for as long as it waits."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def wait(self, queues: Sequence[str], seconds: float) -> None:
        """Return when a marker was there, or after that time. Trouble ends the waiting: the next look will tell."""
        self._session.check_open()
        command = pack(b"BLPOP", *self._session.keyspace.wake(queues), f"{max(seconds, 0.001):.3f}")
        links = self._session.links
        link = links.take()
        try:
            await link.exchange(command, seconds + MARGIN)
        except Rejected:
            # A user without permission to block, or a key of another type: then it is polled.
            await asyncio.sleep(seconds)
        except Trouble:
            # The look that follows meets the same trouble, and reports it.
            return
        finally:
            links.give(link)

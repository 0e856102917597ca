"""The consumers of processes that have gone, deleted now and then beside the other calls."""

import time

from tenure.drivers.redis.session import Session
from tenure.errors import StoreError

EVERY = 600.0
"""Seconds between two looks of one process at one queue; the first is at its first claim, so that processes which
follow one another quickly clean up after each other."""
IDLE_MS = 600_000
"""How long a consumer must have read nothing. One that is deleted too early loses nothing: its next read makes it
anew."""


class Retirement:
    """The looks of one event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next: dict[str, float] = {}

    def look(self, queue: str) -> None:
        """Begin to look for consumers of the queue that are idle and without entries, when it is time."""
        now = time.monotonic()
        if self._next.get(queue, 0.0) <= now:
            self._next[queue] = now + EVERY
            self._session.start(self._retire(queue))

    async def _retire(self, queue: str) -> None:
        try:
            await self._session.run(queue, "retire", (IDLE_MS,))
        except StoreError:
            # They are harmless, and another look follows.
            return

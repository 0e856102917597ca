"""The records of cleared jobs, taken away in small steps beside the other calls."""

from tenure.drivers.redis.session import Session
from tenure.errors import StoreError


class Sweeper:
    """The sweeping of one event loop: one leftover of each queue at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._busy: set[str] = set()

    def sweep(self, queue: str, leftover: bytes) -> None:
        """Begin to take away what a clear has left under that key, unless it is being done."""
        if queue not in self._busy:
            self._busy.add(queue)
            self._session.start(self._sweep(queue, leftover))

    async def _sweep(self, queue: str, leftover: bytes) -> None:
        try:
            while await self._session.sweep(queue, leftover):
                pass
        except StoreError:
            # The leftover is listed in the store: a later claim finds it and begins again.
            return
        finally:
            self._busy.discard(queue)

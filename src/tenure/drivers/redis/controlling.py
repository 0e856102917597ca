"""What operators tell workers: to leave a queue alone, to take from it again, to make room for their successors."""

from collections.abc import Sequence

from tenure import naming
from tenure.drivers.redis.session import Session


class Controls:
    """The controls of one event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def switch(self, queue: str, verb: str) -> bool:
        """Pause or resume a queue; False when it was so already."""
        _, letter = await self._session.write(queue, verb, ())
        return bool(letter == b"y")

    async def paused(self, queues: Sequence[str]) -> list[bool]:
        """Tell which queues are paused, in order."""
        if not queues:
            return []
        flags = await self._session.values(self._session.keyspace.paused(queues))
        return [flag is not None for flag in flags]

    async def request_restart(self) -> str:
        """Write a new marker and return it."""
        marker = naming.new_token()
        await self._session.command(b"SET", self._session.keyspace.restart, marker)
        return marker

    async def restart_marker(self) -> str | None:
        """Return the marker, or None when there was never one."""
        marker = await self._session.command(b"GET", self._session.keyspace.restart)
        return None if marker is None else marker.decode(errors="replace")

"""How a contender talks to the behaviour that started it: reports out, orders in, each a JSON object."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

Report = dict[str, Any]


class Talk:
    """A contender's end of the conversation, on its own event loop."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._orders: asyncio.Queue[Report] = asyncio.Queue()

    def tell(self, report: Mapping[str, Any]) -> None:
        """Send a report."""
        self._send(json.dumps(report))

    async def hear(self) -> Report:
        """Return the next order."""
        return await self._orders.get()

    def take(self, line: str) -> None:
        """Take an order in, from any thread."""
        self._loop.call_soon_threadsafe(self._orders.put_nowait, json.loads(line))

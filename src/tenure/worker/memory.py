"""A limit of memory: looked at each second, because nobody is told when a process grows."""

import asyncio
from collections.abc import Callable
from typing import Final

from tenure.worker import platform

TICK: Final = 1.0


async def reached(limit: int, used: Callable[[], int | None] = platform.resident_memory) -> None:
    """Return when this process has more bytes in use than the limit; never where nobody tells how many."""
    while True:
        if (used() or 0) > limit:
            return
        await asyncio.sleep(TICK)

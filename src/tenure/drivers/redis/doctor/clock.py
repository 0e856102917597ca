"""The server's clock, by which leases lapse and delayed jobs fall due."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from tenure.drivers.redis.doctor.facts import DENIED, Ask, serious, warning
from tenure.errors import StoreRefused
from tenure.operating import Finding

APART: Final = 1.0
FAR_APART: Final = 60.0
"""Seconds between the server's clock and ours."""
WATCHED: Final = 0.05
"""Seconds for which the clock is watched."""


async def check(ask: Ask, key: bytes = b"") -> AsyncIterator[Finding]:
    """Compare it with ours, and see whether it goes."""
    try:
        before = time.time()
        first = await _micros(ask, key)
        after = time.time()
        await asyncio.sleep(WATCHED)
        second = await _micros(ask, key)
    except StoreRefused as refusal:
        if refusal.code not in DENIED:
            raise
        return  # the scripts need TIME too: the rights are judged elsewhere
    if second == first:
        yield serious(
            "clock",
            "the server's clock stands still",
            "no lease lapses and no delayed job falls due",
            "mend the host's clock (a paused virtual machine, a faked time?)",
        )
    # What the answer's way took is not held against it.
    doubt = (after - before) / 2
    apart = abs(first / 1_000_000 - (before + after) / 2) - doubt
    if apart > APART:
        ahead = "ahead of" if first / 1_000_000 > after else "behind"
        say = serious if apart > FAR_APART else warning
        yield say(
            "clock",
            f"the server's clock is {apart:,.0f} s {ahead} this host's",
            "when it is put right, leases lapse and delayed jobs fall due by as much too early or too late",
            "keep both hosts' clocks with NTP, and correct in small steps",
        )


async def _micros(ask: Ask, key: bytes) -> int:
    seconds, micros = await ask(b"TIME", key=key)
    return int(seconds) * 1_000_000 + int(micros)

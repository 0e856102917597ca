"""Waiting for the first of several things."""

import asyncio
from collections.abc import Awaitable
from typing import Any


async def first(*waits: Awaitable[Any], seconds: float | None = None) -> None:
    """Return when one of them has, or the time is over; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()

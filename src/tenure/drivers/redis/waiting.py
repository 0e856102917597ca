"""Waiting for a wake-up: a blocking read of the queues' markers, and a clock of our own beside it.

A server looks after blocked clients that are over time only when something else happens to it, or ten times a second:
too coarse for a job that is due. So the waiting ends by this side's clock, and the read is left to end by itself: the
claim that follows is what makes the server see that it is over time.

On a cluster one read is needed for the queues of each slot, and the first marker ends the waiting. The reads that
brought none go on, and the next waiting takes them up: else a busy queue would leave one behind for each of its jobs.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from tenure.drivers.redis.connection import Link, pack
from tenure.drivers.redis.session import Session
from tenure.drivers.redis.topology import Way
from tenure.drivers.redis.trouble import Rejected, Trouble

MARGIN = 5.0
"""Seconds that the server may answer later than it was told to."""
PAUSE = 0.1
"""Seconds after trouble."""


class _Reading(NamedTuple):
    """A read under way; its task tells whether it brought a marker."""

    keys: tuple[bytes, ...]
    until: float
    task: "asyncio.Task[bool]"


class Waiter:
    """The waiting claims of one event loop, each on connections of its own for as long as it waits."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._left: dict[asyncio.Task[bool], _Reading] = {}
        self._late_marker = asyncio.Event()
        """A read that was left to end by itself has brought a marker after all."""

    async def wait(self, queues: Sequence[str], seconds: float) -> None:
        """Return when a marker was there, or after that time. Trouble ends the waiting: the next look will tell."""
        self._session.check_open()
        loop = asyncio.get_running_loop()
        readings = self._readings(queues, seconds)
        told = loop.create_task(self._late_marker.wait())
        awaited = {told, *(reading.task for reading in readings)}
        try:
            await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Closes their connections: a marker must not be taken by someone who has gone.
            for reading in readings:
                reading.task.cancel()
            raise
        finally:
            told.cancel()
        self._late_marker.clear()
        for reading in readings:
            if not reading.task.done():
                self._left[reading.task] = reading
                reading.task.add_done_callback(self._ended)

    def _readings(self, queues: Sequence[str], seconds: float) -> list[_Reading]:
        by_slot: dict[int, list[bytes]] = {}
        for key in self._session.keyspace.wake(queues):
            by_slot.setdefault(self._session.links.topology.slot_of(key), []).append(key)
        groups = [tuple(keys) for keys in by_slot.values()]
        return [
            (self._left_over(keys, seconds) if len(groups) > 1 else None) or self._reading(keys, seconds)
            for keys in groups
        ]

    def _reading(self, keys: tuple[bytes, ...], seconds: float) -> _Reading:
        task = asyncio.get_running_loop().create_task(self._read(keys, seconds))
        return _Reading(keys, time.monotonic() + seconds, task)

    def _left_over(self, keys: tuple[bytes, ...], seconds: float) -> _Reading | None:
        """Take up a read of these keys that goes on for long enough to be worth it."""
        enough = time.monotonic() + seconds / 2
        for reading in self._left.values():
            if reading.keys == keys and reading.until > enough and not reading.task.done():
                reading.task.remove_done_callback(self._ended)
                return self._left.pop(reading.task)
        return None

    def _ended(self, task: "asyncio.Task[bool]") -> None:
        self._left.pop(task, None)
        if not task.cancelled() and task.exception() is None and task.result():
            self._late_marker.set()

    async def _read(self, keys: tuple[bytes, ...], seconds: float) -> bool:
        command = pack(b"BLPOP", *keys, f"{max(seconds, 0.001):.3f}")
        links = self._session.links
        link: Link | None = None
        try:
            link = await links.take(keys[0])
            return await link.exchange(command, seconds + MARGIN) is not None
        except Trouble as trouble:
            moved = Way(links.topology, seconds).onward(links.server(link), trouble) is not None
            if isinstance(trouble, Rejected) and not moved:
                # A user without permission to block, or a key of another type: then it is polled.
                await asyncio.sleep(seconds)
            else:
                # The look that follows meets the same trouble and reports it, or has none and goes on; in no hurry.
                await asyncio.sleep(min(seconds, PAUSE))
        finally:
            if link is not None:
                await links.give(link)
        return False

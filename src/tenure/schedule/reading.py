"""The schedules of a store as one process knows them: read again each second, and its clock with them."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tenure.errors import Undecodable
from tenure.schedule.plan import following
from tenure.schedules import ScheduleBook, ScheduleRecord, Schedules
from tenure.timetables import Definition
from tenure.timetables.definition import decode

logger: Final = logging.getLogger("tenure.schedule")

EVERYWHERE: Final = 10.0
"""Seconds after which queues are looked at, too, that had no schedules and are not the application's own."""


@dataclass
class Watched:
    """A schedule that may fire."""

    record: ScheduleRecord
    definition: Definition
    next: float | None
    """The slot that is next."""
    read_at: float
    """This process's monotonic time when the record was there."""
    now: float
    """The store's time before that."""

    def clock(self) -> float:
        """Return the store's time: never later than it is, and earlier by the length of a call at most."""
        return self.now + time.monotonic() - self.read_at

    def moved(self, cursor: float) -> None:
        """Note that the cursor stands there now."""
        self.next = following(self.definition, cursor)
        self.record = ScheduleRecord(
            queue=self.record.queue, name=self.record.name, definition=self.record.definition, cursor=cursor
        )


class Reading:
    """Reads the schedules of a store."""

    def __init__(self, store: Schedules, own: Callable[[], Iterable[str]]) -> None:
        """Look into the queues that are the application's own each time, and into others now and then."""
        self._store = store
        self._own = own
        self._known: set[str] = set()
        self._busy: set[str] = set()
        self._everywhere_at = float("-inf")
        self._decoded: dict[tuple[str, str], tuple[bytes, Definition | None]] = {}

    async def watched(self, queues: Iterable[str]) -> list[Watched]:
        """Return what may fire in those of the store's queues that matter; raises ``StoreError``."""
        known, started = set(queues), time.monotonic()
        chosen = {*self._own(), *self._busy, *(known - self._known)}
        if started >= self._everywhere_at:
            chosen |= known
        found = await asyncio.gather(*(self._book(queue) for queue in sorted(chosen)))
        if chosen >= known:
            self._everywhere_at = started + EVERYWHERE
        self._known = known
        self._busy = {queue for queue, book, _ in found if book.schedules}
        return [
            Watched(record, definition, following(definition, record.cursor), at, book.now)
            for _, book, at in found
            for record in book.schedules
            if not record.paused and (definition := self._definition(record)) is not None
        ]

    async def _book(self, queue: str) -> tuple[str, ScheduleBook, float]:
        book = await self._store.schedules(queue)
        return queue, book, time.monotonic()

    def _definition(self, record: ScheduleRecord) -> Definition | None:
        place = record.queue, record.name
        found = self._decoded.get(place)
        if found is None or found[0] != record.definition:
            try:
                found = record.definition, decode(record.definition)
            except Undecodable as error:
                logger.warning(
                    "the schedule %s of queue %s is left alone, since its definition cannot be read here: %s",
                    record.name,
                    record.queue,
                    error,
                )
                found = record.definition, None
            self._decoded[place] = found
        return found[1]

"""``SqlSchedules``: ``tenure.schedules.Schedules`` over transactions, whatever the database."""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from tenure.drivers.sql.calling import Calling
from tenure.queue import Push
from tenure.schedules import Fired, ScheduleBook, check_fire

Tx = TypeVar("Tx")


class SqlSchedules(Calling[Tx]):
    """Keeps and fires schedules."""

    async def schedules(self, queue: str) -> ScheduleBook:
        """Return the queue's schedules, sorted by name."""
        return await self._read(partial(self._transitions.book, name=queue))

    async def put_schedule(self, queue: str, name: str, definition: bytes) -> bool:
        """Store a schedule, or give one another definition: see ``Schedules.put_schedule``."""
        put = partial(self._transitions.put_schedule, name=queue, schedule=name, definition=definition)
        return await self._write("operate", put)

    async def fire(
        self, queue: str, name: str, *, seen: float, slot: float, jobs: Sequence[Push], overlap: bool
    ) -> Fired:
        """Move the cursor and push the jobs, all in one step: see ``Schedules.fire``."""
        check_fire(queue, seen=seen, slot=slot, jobs=jobs)
        fire = partial(
            self._transitions.fire,
            name=queue,
            schedule=name,
            seen=round(seen * 1000),
            slot=round(slot * 1000),
            jobs=jobs,
            overlap=overlap,
        )
        return await self._write("push", fire, weight=1 + len(jobs))

    async def pause_schedule(self, queue: str, name: str, *, paused: bool) -> bool:
        """Let nothing fire, or let it fire again from now on; False when it is unknown, or so already."""
        pause = partial(self._transitions.pause_schedule, name=queue, schedule=name, paused=paused)
        return await self._write("operate", pause)

    async def remove_schedule(self, queue: str, name: str) -> bool:
        """Forget a schedule; its jobs stay. False when it is unknown."""
        return await self._write("operate", partial(self._transitions.remove_schedule, name=queue, schedule=name))

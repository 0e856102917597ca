"""Schedules: kept in two hashes of their queue, one of which a firing moves and the other it leaves alone."""

from collections.abc import Sequence
from typing import Final

from tenure import naming
from tenure.drivers.redis import record
from tenure.drivers.redis.pushing import check
from tenure.drivers.redis.session import Session
from tenure.queue import Capabilities, Push
from tenure.schedules import Fired, ScheduleBook, ScheduleRecord, check_fire

_FIRED: Final = {b"d": Fired.DONE, b"o": Fired.OVERLAPPED, b"m": Fired.MISSED}
_FIELDS: Final = 4
"""Values that a schedule has in the answer of the script."""


class Timers:
    """The schedules of one event loop."""

    def __init__(self, session: Session, capabilities: Capabilities) -> None:
        self._session = session
        self._capabilities = capabilities

    async def book(self, queue: str) -> ScheduleBook:
        """Return the queue's schedules, sorted by name, and the time."""
        now, *rest = await self._session.run(queue, "schedules", ())
        found = [_record(queue, rest[place : place + _FIELDS]) for place in range(0, len(rest), _FIELDS)]
        return ScheduleBook(now=int(now) / 1_000_000, schedules=sorted(found, key=lambda one: one.name))

    async def put(self, queue: str, name: str, definition: bytes) -> bool:
        """Store a schedule, or give one another definition; True if it is new."""
        await self._session.command(b"SADD", self._session.keyspace.queues, naming.check_queue(queue))
        _, letter = await self._session.write(queue, "define", (name, definition))
        return bool(letter == b"y")

    async def fire(
        self, queue: str, name: str, *, seen: float, slot: float, jobs: Sequence[Push], overlap: bool
    ) -> Fired:
        """Move the cursor and push the jobs."""
        check_fire(queue, seen=seen, slot=slot, jobs=jobs)
        arguments: list[bytes | str] = [name, str(round(seen * 1000)), str(round(slot * 1000)), "1" if overlap else "0"]
        for job in jobs:
            check(job, self._capabilities)
            arguments += (naming.check_job_id(job.id), record.push_options(job), job.envelope)
        _, letter = await self._session.write(queue, "fire", arguments)
        return _FIRED[letter]

    async def switch(self, queue: str, name: str, *, paused: bool) -> bool:
        """Let nothing fire, or let it fire again from now on."""
        _, letter = await self._session.write(queue, "switch", (name, "1" if paused else "0"))
        return bool(letter == b"y")

    async def remove(self, queue: str, name: str) -> bool:
        """Forget a schedule."""
        _, letter = await self._session.write(queue, "undefine", (name,))
        return bool(letter == b"y")


def _record(queue: str, fields: Sequence[bytes]) -> ScheduleRecord:
    name, at, busy, definition = fields
    cursor, paused, last_job = at.decode().split("|", 2)
    return ScheduleRecord(
        queue=queue,
        name=name.decode(),
        definition=definition,
        cursor=int(cursor) / 1000,
        paused=paused == "1",
        last_job=last_job,
        busy=busy == b"1",
    )

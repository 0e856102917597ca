"""The loop that fires what is due. Any number of processes may run one: the store lets each slot fire once."""

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Final

from tenure.app import Tenure
from tenure.config import DEFAULT
from tenure.errors import StoreError
from tenure.events import JobPushed
from tenure.outage import Outage, pause
from tenure.registry import DEFAULT_QUEUE
from tenure.schedule.plan import Step, plan
from tenure.schedule.reading import Reading, Watched
from tenure.schedules import Fired

logger: Final = logging.getLogger("tenure.schedule")

READ: Final = 1.0
"""Seconds after which what is stored is read again: a change counts that much later, at most."""
AGAIN: Final = 0.02
"""Seconds after which it is read again when somebody else was first."""
SHORTEST: Final = 0.001
AT_ONCE: Final = 10
"""Schedules that are fired at the same time."""


class Ticker:
    """Fires the schedules of one connection of an application, until it is stopped.

    It stores those of the code first. A store that does not answer is waited for.
    """

    def __init__(self, app: Tenure, connection: str = DEFAULT) -> None:
        """Check that the connection's driver keeps schedules; raises ``NotSupported``."""
        self._app = app
        self._connection = connection
        self._store = app.schedules.store(connection)
        self._reading = Reading(self._store, self._own_queues)
        self._outage = Outage("firing schedules", logger=logger)
        self._stopping = asyncio.Event()
        self._watched: list[Watched] = []
        self._read_at = float("-inf")
        self.failing: str = "no schedule was looked at"
        """What a supervisor says of it when it stands still."""
        self.rounds: int = 0
        """How often it looked, whether or not the store answered."""
        self.fired: int = 0
        """Jobs that it pushed."""

    async def run(self) -> None:
        """Fire what is due until ``stop`` is called; raises ``Refused`` for a schedule of the code that cannot be."""
        stored = False
        while not self._stopping.is_set():
            self.rounds += 1
            try:
                if not stored:
                    await self._app.schedules.put_code(self._connection)
                    stored = True
                wait = await self._round()
            except StoreError as error:
                self._read_at = float("-inf")
                wait = self._outage.failed(error)
            else:
                self._outage.succeeded()
            await pause(wait, self._stopping)

    def stop(self) -> None:
        """Fire nothing more; what is under way is finished."""
        self._stopping.set()

    def _own_queues(self) -> set[str]:
        return {*self._app.registry.queues(), DEFAULT_QUEUE}

    async def _round(self) -> float:
        """Fire what is due, and return the seconds until there is something to do."""
        if time.monotonic() >= self._read_at + READ:
            read_at = time.monotonic()
            queues = await self._app.operate.queues(connection=self._connection)
            self._watched = await self._reading.watched(queues)
            self._read_at = read_at
        # Together, for a database makes one transaction of them; in one order everywhere, for it locks what they touch.
        due = [watched for watched in self._watched if watched.next is not None and watched.next <= watched.clock()]
        answers = await asyncio.gather(*map(self._fire, due[:AT_ONCE]), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        if not all(answers):
            self._read_at = float("-inf")
            return AGAIN
        waits = [watched.next - watched.clock() for watched in self._watched if watched.next is not None]
        reading = self._read_at + READ - time.monotonic()
        return max(SHORTEST, min([reading, *waits]))

    async def _fire(self, watched: Watched) -> bool:
        """Take a step of a schedule; False when it was not as it was read."""
        record, definition, now = watched.record, watched.definition, watched.clock()
        step = plan(definition, record.cursor, now)
        if step is None:
            watched.moved(record.cursor)
            return True
        jobs = [definition.push(record.name, slot, now) for slot in step.slots]
        answer = await self._store.fire(
            record.queue, record.name, seen=record.cursor, slot=step.upto, jobs=jobs, overlap=definition.overlap
        )
        if answer is Fired.MISSED:
            return False
        if step.passed_over:
            _report(watched, step)
        if answer is Fired.OVERLAPPED:
            logger.info("the schedule %s of queue %s: its last job has not ended", record.name, record.queue)
        else:
            self.fired += len(jobs)
            for job in jobs:
                self._app.events.emit(JobPushed(queue=job.queue, id=job.id, name=definition.envelope.name, held=False))
        watched.moved(step.upto)
        return True


def _report(watched: Watched, step: Step) -> None:
    record, definition = watched.record, watched.definition
    since = datetime.fromtimestamp(max(record.cursor, definition.since), UTC)
    until = datetime.fromtimestamp(step.slots[0] if step.slots else step.upto, UTC)
    logger.warning(
        "the schedule %s of queue %s was due between %s and %s and did not fire; catch_up=%r passes it over",
        record.name,
        record.queue,
        since.isoformat(timespec="seconds"),
        until.isoformat(timespec="seconds"),
        definition.catch_up,
    )

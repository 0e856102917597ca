"""The schedules of all queues of one process."""

from collections.abc import Callable, Sequence
from math import floor

from tenure.clock import Clock
from tenure.drivers.memory.ledger import Ledger
from tenure.queue import JobState, Push
from tenure.schedules import Fired, ScheduleBook, ScheduleRecord

BUSY = frozenset({JobState.READY, JobState.DELAYED, JobState.RUNNING})


class Entry:
    """A stored schedule."""

    def __init__(self, definition: bytes, cursor: float) -> None:
        self.definition = definition
        self.cursor = cursor
        self.paused = False
        self.last_job = ""


class Timers:
    """The schedules. A method is one transition; call it with the store's lock held."""

    def __init__(self, clock: Clock, ledger: Callable[[str], Ledger]) -> None:
        self._clock = clock
        self._ledger = ledger
        self._queues: dict[str, dict[str, Entry]] = {}

    def book(self, queue: str) -> ScheduleBook:
        """Return the schedules of a queue, and the time."""
        entries = sorted(self._of(queue).items())
        return ScheduleBook(
            now=self._clock.time(),
            schedules=[
                ScheduleRecord(
                    queue=queue,
                    name=name,
                    definition=entry.definition,
                    cursor=entry.cursor,
                    paused=entry.paused,
                    last_job=entry.last_job,
                    busy=self._busy(queue, entry),
                )
                for name, entry in entries
            ],
        )

    def put(self, queue: str, name: str, definition: bytes) -> bool:
        """Store a schedule, or give one another definition; True if it is new."""
        self._ledger(queue)  # the queue is known from now on
        found = self._of(queue).get(name)
        if found is not None:
            found.definition = definition
            return False
        self._queues.setdefault(queue, {})[name] = Entry(definition, self._now())
        return True

    def fire(self, queue: str, name: str, *, seen: float, slot: float, jobs: Sequence[Push], overlap: bool) -> Fired:
        """Move the cursor and push the jobs: see ``Schedules.fire``."""
        entry = self._of(queue).get(name)
        if entry is None or entry.paused or entry.cursor != seen or slot > self._clock.time():
            return Fired.MISSED
        entry.cursor = slot
        if not jobs:
            return Fired.DONE
        if not overlap and self._busy(queue, entry):
            return Fired.OVERLAPPED
        for job in jobs:
            self._ledger(queue).push(job)
        entry.last_job = jobs[-1].id
        return Fired.DONE

    def pause(self, queue: str, name: str, *, paused: bool) -> bool:
        """Pause or resume; False when it is unknown, or so already."""
        entry = self._of(queue).get(name)
        if entry is None or entry.paused is paused:
            return False
        entry.paused = paused
        if not paused:
            entry.cursor = max(entry.cursor, self._now())
        return True

    def remove(self, queue: str, name: str) -> bool:
        """Forget a schedule; False when it is unknown."""
        return self._of(queue).pop(name, None) is not None

    def _of(self, queue: str) -> dict[str, Entry]:
        return self._queues.get(queue, {})

    def _busy(self, queue: str, entry: Entry) -> bool:
        return entry.last_job != "" and self._ledger(queue).state(entry.last_job) in BUSY

    def _now(self) -> float:
        return floor(self._clock.time() * 1000) / 1000

"""Schedules."""

from collections.abc import Sequence

from tenure.drivers.sql.sqlite import timers
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.drivers.sql.sqlite.transitions.pushing import push
from tenure.drivers.sql.sqlite.transitions.reading import states
from tenure.drivers.sql.timers import BUSY, last_jobs, records
from tenure.drivers.sql.units import SECOND
from tenure.queue import Push
from tenure.schedules import Fired, ScheduleBook


def book(transaction: Transaction, name: str) -> ScheduleBook:
    """Return the queue's schedules, sorted by name, and the time."""
    queue = transaction.find(name)
    rows = [] if queue is None else transaction.all(timers.LIST, (queue.number,))
    jobs = last_jobs(rows)
    found = dict(zip(jobs, states(transaction, name, jobs), strict=True))
    return ScheduleBook(now=transaction.now / SECOND, schedules=records(name, rows, found))


def put_schedule(transaction: Transaction, name: str, schedule: str, definition: bytes) -> bool:
    """Store a schedule, or give one another definition; True if it is new."""
    queue = transaction.open(name)
    if transaction.change(timers.DEFINE, (definition, queue.number, schedule)):
        return False
    transaction.change(timers.ADD, (definition, queue.number, schedule, _now(transaction)))
    return True


def fire(
    transaction: Transaction, name: str, schedule: str, *, seen: int, slot: int, jobs: Sequence[Push], overlap: bool
) -> Fired:
    """Move the cursor and push the jobs."""
    queue = transaction.find(name)
    if queue is None:
        return Fired.MISSED
    values = {"queue": queue.number, "name": schedule, "seen": seen, "slot": slot, "now": _now(transaction)}
    moved = transaction.all(timers.MOVE, values)
    if not moved:
        return Fired.MISSED
    if not jobs:
        return Fired.DONE
    [(last_job,)] = moved
    if not overlap and last_job and states(transaction, name, [last_job])[0] in BUSY:
        return Fired.OVERLAPPED
    push(transaction, jobs)
    transaction.change(timers.REMEMBER, (jobs[-1].id, queue.number, schedule))
    return Fired.DONE


def pause_schedule(transaction: Transaction, name: str, schedule: str, *, paused: bool) -> bool:
    """Let nothing fire, or let it fire again from now on."""
    queue = transaction.find(name)
    if queue is None:
        return False
    if paused:
        return bool(transaction.change(timers.PAUSE, (queue.number, schedule)))
    return bool(transaction.change(timers.RESUME, (_now(transaction), queue.number, schedule)))


def remove_schedule(transaction: Transaction, name: str, schedule: str) -> bool:
    """Forget a schedule."""
    queue = transaction.find(name)
    return queue is not None and bool(transaction.change(timers.REMOVE, (queue.number, schedule)))


def _now(transaction: Transaction) -> int:
    return transaction.now // 1000

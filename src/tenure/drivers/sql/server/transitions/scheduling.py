"""Schedules."""

from collections.abc import Mapping, Sequence
from typing import Any

from tenure.drivers.sql.server import timers
from tenure.drivers.sql.server.transaction import Transaction
from tenure.drivers.sql.server.transitions.pushing import push
from tenure.drivers.sql.server.transitions.reading import states
from tenure.drivers.sql.timers import BUSY, last_jobs, records
from tenure.drivers.sql.units import SECOND
from tenure.queue import Push
from tenure.schedules import Fired, ScheduleBook


def book(transaction: Transaction, name: str) -> ScheduleBook:
    """Return the queue's schedules, sorted by name, and the time."""
    queue = transaction.known(name)
    now = transaction.now  # before the rows are read: what is due later is not believed to be due
    rows = [] if queue is None else transaction.all(timers.LIST, queue=queue.number)
    jobs = last_jobs(rows)
    found = dict(zip(jobs, states(transaction, name, jobs), strict=True))
    return ScheduleBook(now=now / SECOND, schedules=records(name, rows, found))


def put_schedule(transaction: Transaction, name: str, schedule: str, definition: bytes) -> bool:
    """Store a schedule, or give one another definition; True if it is new."""
    transaction.open([name])
    [queue] = transaction.find(name)
    where = {"queue": queue.number, "name": schedule}
    if transaction.one(timers.LOCK, **where) is None and transaction.change(
        timers.ADD, **where, definition=definition, now=_now(transaction)
    ):
        return True
    transaction.change(timers.DEFINE, **where, definition=definition)
    return False


def fire(
    transaction: Transaction, name: str, schedule: str, *, seen: int, slot: int, jobs: Sequence[Push], overlap: bool
) -> Fired:
    """Move the cursor and push the jobs."""
    queue = transaction.known(name)
    if queue is None:
        return Fired.MISSED
    where = {"queue": queue.number, "name": schedule}
    overlaps = bool(jobs) and not overlap and _is_busy(transaction, name, where)
    job = jobs[-1].id if jobs and not overlaps else ""
    if not transaction.change(timers.MOVE, **where, seen=seen, slot=slot, job=job, now=_now(transaction)):
        return Fired.MISSED
    if overlaps:
        return Fired.OVERLAPPED
    if jobs:
        push(transaction, jobs)
    return Fired.DONE


def _is_busy(transaction: Transaction, queue: str, where: Mapping[str, Any]) -> bool:
    """Tell whether the last job of a schedule waits or runs; nobody else fires it until this transaction ends."""
    found = transaction.one(timers.LOCK, **where)
    return bool(found and found[0]) and states(transaction, queue, [found[0]])[0] in BUSY


def pause_schedule(transaction: Transaction, name: str, schedule: str, *, paused: bool) -> bool:
    """Let nothing fire, or let it fire again from now on."""
    queue = transaction.known(name)
    if queue is None:
        return False
    where = {"queue": queue.number, "name": schedule}
    if paused:
        return bool(transaction.change(timers.PAUSE, **where))
    return bool(transaction.change(timers.RESUME, **where, now=_now(transaction)))


def remove_schedule(transaction: Transaction, name: str, schedule: str) -> bool:
    """Forget a schedule."""
    queue = transaction.known(name)
    return queue is not None and bool(transaction.change(timers.REMOVE, queue=queue.number, name=schedule))


def _now(transaction: Transaction) -> int:
    return transaction.now // 1000

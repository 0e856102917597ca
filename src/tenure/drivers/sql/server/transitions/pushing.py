"""Storing jobs."""

from collections.abc import Sequence
from typing import Any

from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.texts import DELAYED, READY
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.server.transitions.sweeping import sweep
from tenure.drivers.sql.units import micros, nearest_micros
from tenure.errors import NotSupported
from tenure.queue import Push, Pushed


def push(transaction: Transaction, jobs: Sequence[Push]) -> list[Pushed]:
    """Store each job whose id does not exist yet, in whatever state."""
    transaction.open(job.queue for job in jobs)
    if any(job.durability > 1 for job in jobs) and not transaction.one(statements.ON_DISK)[0]:
        raise NotSupported("sql", "durability 2", "the server does not write each commit to its disk")
    queues = {queue.name: queue for queue in transaction.find(*(job.queue for job in jobs))}
    first: dict[tuple[str, str], Push] = {}
    for job in jobs:
        first.setdefault((job.queue, job.id), job)  # of an id that comes twice, the first is stored
    wanted = sorted(zip(transaction.numbers(len(first)), first.values(), strict=True), key=_by_id)
    rows = {number: _row(queues[job.queue], job, number, transaction.now) for number, job in wanted}
    stored = _stored(transaction, list(queues.values()), rows)
    done = {(job.queue, job.id) for number, job in wanted if number in stored}
    for number, job in wanted:
        if number in stored:
            delayed = job.delay > 0
            queues[job.queue].delayed += delayed
            queues[job.queue].ready += not delayed
            transaction.woken.add(job.queue)
    for queue in queues.values():
        new = [job.id for number, job in wanted if number in stored and job.queue == queue.name]
        if new and queue.first_until is not None:
            transaction.change(statements.DROP_ENDS, queue=queue.number, ids=new)
        sweep(transaction, queue)
    pushed = []
    for job in jobs:
        key = job.queue, job.id
        pushed.append(Pushed(job.id, "stored" if key in done else "held"))
        done.discard(key)
    return pushed


def _by_id(numbered: tuple[int, Push]) -> tuple[str, str]:
    # Whoever stores the same ids does so in the same order: they wait for each other, not in a circle.
    return numbered[1].queue, numbered[1].id


def _row(queue: QueueRow, job: Push, number: int, now: int) -> dict[str, Any]:
    delayed = job.delay > 0
    return {
        "incarnation": number,
        "queue": queue.number,
        "id": job.id,
        "shelf": queue.line,
        "state": DELAYED if delayed else READY,
        "place": now + micros(job.delay) if delayed else -job.priority,
        "entry": number,
        "since": now,
        "priority": job.priority,
        "crash_limit": job.crash_limit,
        "expires": None if job.expires_in is None else now + micros(job.expires_in),
        "keep": nearest_micros(job.keep),
        "envelope": job.envelope,
    }


def _stored(transaction: Transaction, queues: Sequence[QueueRow], rows: dict[int, dict[str, Any]]) -> set[int]:
    """Add the rows, and return which of them are there."""
    if transaction.insert(statements.PUSH, list(rows.values())) == len(rows):
        return set(rows)
    stored = _there(transaction, rows)
    # An id that waited in a line that was cleared is gone: only its row is left.
    left = [row for number, row in rows.items() if number not in stored]
    gone: list[int] = []
    for queue in queues:
        ids = [row["id"] for row in left if row["queue"] == queue.number]
        if ids:
            found = transaction.all(statements.FIND_CLEARED, queue=queue.number, ids=ids, line=queue.line)
            gone += [incarnation for (incarnation,) in found]
    if gone:
        transaction.change_all(statements.REMOVE, gone)
        transaction.insert(statements.PUSH, left)
        stored = _there(transaction, rows)
    return stored


def _there(transaction: Transaction, rows: dict[int, dict[str, Any]]) -> set[int]:
    return {number for (number,) in transaction.all(statements.FIND_MINE, incarnations=list(rows))}

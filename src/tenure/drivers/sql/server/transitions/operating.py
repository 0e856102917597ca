"""What operators do: cancel, clear, retry, forget, prune. Guarded by state and incarnation, never by a lease."""

from collections.abc import Iterable, Sequence
from typing import Any

from tenure.drivers.sql.nodes import End, cleared
from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.texts import DELAYED, FAILED, LEASED
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.server.transitions.advancing import advance
from tenure.drivers.sql.server.transitions.ending import Row, ended, keep
from tenure.drivers.sql.server.transitions.locking import holders, unlock_cleared
from tenure.drivers.sql.transitions import STEP
from tenure.queue import Cancelled, FailedRecord


def cancel(transaction: Transaction, name: str, ids: Sequence[str]) -> list[Cancelled]:
    """Remove what waits, request it of what runs."""
    queue = transaction.known(name)
    if queue is None or not ids:
        return [Cancelled.NOT_FOUND] * len(ids)
    found = {row[0]: row for row in transaction.all(statements.LOCK_JOBS, queue=queue.number, ids=sorted(set(ids)))}
    removed: list[int] = []
    requested: list[int] = []
    ends: list[Row] = []
    told: list[End] = []
    answers = []
    for job_id in ids:
        _, incarnation, state, shelf, kept, *belongs = found.get(job_id, (job_id, 0, FAILED, 0, 0))
        if state == LEASED:
            requested.append(incarnation)
            answers.append(Cancelled.REQUESTED)
        elif state == FAILED or shelf != queue.line:  # or it waited in a line that was cleared
            answers.append(Cancelled.NOT_FOUND)
        else:
            removed.append(incarnation)
            told += cleared([belongs])
            if kept:
                ends.append(ended(queue, (job_id, incarnation), kept, transaction.now))
            answers.append(Cancelled.REMOVED)
            queue.delayed -= state == DELAYED
            queue.ready -= state != DELAYED
            del found[job_id]
    transaction.change_all(statements.REMOVE, removed)
    transaction.change_all(statements.REQUEST_CANCELS, requested)
    keep(transaction, [queue], ends)
    advance(transaction, told)
    return answers


def clear(transaction: Transaction, name: str) -> int:
    """Put all that waits out of reach in one step, and return its number; later calls sweep its rows."""
    queue = transaction.alone(name)
    if queue is None:
        return 0
    # What this transaction itself has moved is not written yet.
    ready, delayed = (int(one or 0) for one in transaction.one(statements.WAITING, queue=queue.number))
    number = ready + queue.ready + delayed + queue.delayed
    if number:
        (line,) = transaction.numbers(1)
        transaction.change(statements.ABANDON, queue=queue.number, shelf=queue.line)
        transaction.change(statements.NEW_LINE, queue=queue.number, line=line)
        queue.line = line
        queue.ready, queue.delayed = -ready, -delayed
    return number


def retry(transaction: Transaction, records: Sequence[FailedRecord]) -> list[bool]:
    """Make each failed job a new ready one."""
    taken = _taken(transaction, records, again=True)
    numbers = iter(transaction.numbers(len(records)))
    again = []
    for record, queue in zip(records, taken, strict=True):
        if queue is not None:
            again.append(
                {
                    "g_incarnation": record.incarnation,
                    "g_new": next(numbers),
                    "g_shelf": queue.line,
                    "g_since": transaction.now,
                }
            )
            queue.ready += 1
            transaction.woken.add(queue.name)
            if queue.first_until is not None:
                transaction.change(statements.DROP_ENDS, queue=queue.number, ids=[record.id])
    transaction.change_each(statements.RETRY, again)
    return [queue is not None for queue in taken]


def forget(transaction: Transaction, records: Sequence[FailedRecord]) -> list[bool]:
    """Remove each failed job."""
    taken = _taken(transaction, records)
    gone = [record.incarnation for record, queue in zip(records, taken, strict=True) if queue is not None]
    transaction.change_all(statements.REMOVE, gone)
    return [queue is not None for queue in taken]


def _taken(transaction: Transaction, records: Sequence[FailedRecord], *, again: bool = False) -> list[QueueRow | None]:
    """Lock the failed jobs that are still there, count them out, and return the queue of each, in order.

    Those that are to wait ``again`` leave out the unique ones that another keeps away.
    """
    queues = {queue.name: queue for queue in transaction.find(*(record.queue for record in records))}
    incarnations = sorted({record.incarnation for record in records})
    rows = transaction.all(statements.FIND_FAILED, incarnations=incarnations)
    there = {(incarnation, queue, job_id): unique for incarnation, queue, job_id, unique in rows}
    locks = _Locks(transaction, queues.values(), rows) if again and any(row[3] for row in rows) else None
    taken: list[QueueRow | None] = []
    for record in records:
        queue = queues.get(record.queue)
        key = (record.incarnation, queue.number, record.id) if queue else None
        if queue is None or key not in there:
            taken.append(None)
            continue
        unique = there.pop(key)
        if locks is not None and unique and not locks.take(queue, unique):
            taken.append(None)
            continue
        queue.failed -= 1
        taken.append(queue)
    return taken


class _Locks:
    """The locks that failed jobs take again, as far as nobody else has them. Who takes one meanwhile makes us wait."""

    def __init__(self, transaction: Transaction, queues: Iterable[QueueRow], failed: Sequence[Any]) -> None:
        self._taken: set[tuple[int, str]] = set()
        for queue in queues:
            locks = sorted({unique for _, number, _, unique in failed if number == queue.number and unique})
            unlock_cleared(transaction, queue, locks)
            self._taken |= {(queue.number, lock) for lock in holders(transaction, queue, [], locks)[1]}

    def take(self, queue: QueueRow, unique: str) -> bool:
        """Take one; False when another job has it."""
        if (queue.number, unique) in self._taken:
            return False
        self._taken.add((queue.number, unique))
        return True


def old(transaction: Transaction, age: int) -> tuple[int, int]:
    """Return the latest time of failed jobs that are so many microseconds old by now; what fails from now on is not."""
    return transaction.now - age - 1, 0


def prune(transaction: Transaction, name: str, old: tuple[int, int]) -> int:
    """Remove old failed jobs, at most ``STEP``, and return how many."""
    queue = transaction.known(name)
    if queue is None:
        return 0
    until, _ = old
    found = transaction.all(statements.PRUNABLE, shelf=queue.number, until=until, step=STEP)
    transaction.change_all(statements.REMOVE, (incarnation for (incarnation,) in found))
    queue.failed -= len(found)
    return len(found)

"""What operators do: cancel, clear, retry, forget, prune. Guarded by state and incarnation, never by a lease."""

from collections.abc import Sequence

from tenure.drivers.sql.nodes import End, Outcome, member
from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, FAILED, LEASED
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction
from tenure.drivers.sql.sqlite.transitions import keeping
from tenure.drivers.sql.sqlite.transitions.advancing import advance
from tenure.drivers.sql.sqlite.transitions.locking import holder_of
from tenure.drivers.sql.transitions import STEP
from tenure.queue import Cancelled, FailedRecord


def cancel(transaction: Transaction, name: str, ids: Sequence[str]) -> list[Cancelled]:
    """Remove what waits, request it of what runs."""
    queue = transaction.find(name)
    answers = []
    ends: list[End] = []
    for job_id in ids:
        found = queue and transaction.one(statements.FIND_JOB, (queue.number, job_id))
        if not queue or not found or found[1] == FAILED:
            answers.append(Cancelled.NOT_FOUND)
            continue
        incarnation, state, shelf, keep, *belongs = found
        if state == LEASED:
            transaction.change(statements.REQUEST_CANCEL, (incarnation,))
            answers.append(Cancelled.REQUESTED)
        elif shelf == queue.line:
            transaction.change(statements.REMOVE, (incarnation,))
            queue.d_delayed -= state == DELAYED
            queue.d_ready -= state != DELAYED
            if keep:
                keeping.end(transaction, queue, (job_id, incarnation), keep)
            what = member(*belongs)
            ends += [] if what is None else [what.end(Outcome.CANCELLED)]
            answers.append(Cancelled.REMOVED)
        else:  # it waited in a line that was cleared
            answers.append(Cancelled.NOT_FOUND)
    advance(transaction, ends)
    return answers


def clear(transaction: Transaction, name: str) -> int:
    """Put all that waits out of reach in one step, and return its number; later calls sweep its rows."""
    queue = transaction.find(name)
    if queue is None:
        return 0
    number = queue.ready + queue.delayed
    if number:
        (line,) = transaction.numbers(1)
        transaction.change(statements.ABANDON, (queue.number, queue.line))
        transaction.change(statements.NEW_LINE, (line, queue.number))
    return number


def retry(transaction: Transaction, records: Sequence[FailedRecord]) -> list[bool]:
    """Make each failed job a new ready one."""
    incarnations = transaction.numbers(len(records))
    answers = []
    for record, incarnation in zip(records, incarnations, strict=True):
        queue = transaction.find(record.queue)
        if (
            queue is None
            or _is_kept_away(transaction, queue, record.id)
            or not transaction.change(
                statements.RETRY,
                (incarnation, queue.line, transaction.now, record.incarnation, queue.number, record.id),
            )
        ):
            answers.append(False)
            continue
        transaction.change(statements.DROP_FAILURE, (record.incarnation,))
        transaction.change(statements.DROP_END, (queue.number, record.id))
        queue.d_failed -= 1
        queue.d_ready += 1
        transaction.woken.add(queue.name)
        answers.append(True)
    return answers


def _is_kept_away(transaction: Transaction, queue: QueueRow, job_id: str) -> bool:
    """Tell whether another job is unique by the same text."""
    found = transaction.one(statements.FIND_TEXT, (queue.number, job_id))
    return bool(found and found[0]) and holder_of(transaction, queue, found[0]) not in {None, job_id}


def forget(transaction: Transaction, records: Sequence[FailedRecord]) -> list[bool]:
    """Remove each failed job."""
    answers = []
    for record in records:
        queue = transaction.find(record.queue)
        if queue is None or not transaction.change(statements.FORGET, (record.incarnation, queue.number, record.id)):
            answers.append(False)
            continue
        transaction.change(statements.DROP_FAILURE, (record.incarnation,))
        queue.d_failed -= 1
        answers.append(True)
    return answers


def old(transaction: Transaction, age: int) -> tuple[int, int]:
    """Return the latest time, and the last number, of failed jobs that are so many microseconds old by now."""
    return transaction.now - age, transaction.one(statements.LAST_NUMBER)[0]


def prune(transaction: Transaction, name: str, old: tuple[int, int]) -> int:
    """Remove old failed jobs, at most ``STEP``, and return how many."""
    queue = transaction.find(name)
    if queue is None:
        return 0
    until, last = old
    values = {"number": queue.number, "until": until, "last": last, "step": STEP}
    found = transaction.all(statements.PRUNABLE, values)
    transaction.change_each(statements.REMOVE, found)
    transaction.change_each(statements.DROP_FAILURE, found)
    queue.d_failed -= len(found)
    return len(found)

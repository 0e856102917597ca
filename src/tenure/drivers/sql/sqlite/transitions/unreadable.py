"""Reading and emptying the store of records that nobody could read."""

from collections.abc import Sequence

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.transaction import SECOND, Transaction
from tenure.operating import UnreadableRecord
from tenure.summaries import record_number


def records(transaction: Transaction, name: str, limit: int, after: int) -> list[UnreadableRecord]:
    """Return records, oldest first."""
    queue = transaction.find(name)
    if queue is None:
        return []
    return [
        UnreadableRecord(
            queue=name, key=str(number), id=job_id, reason=reason, set_aside_at=set_aside / SECOND, size=size
        )
        for number, job_id, reason, set_aside, size in transaction.all(
            statements.UNREADABLE_PAGE, (queue.number, after, limit)
        )
    ]


def content(transaction: Transaction, name: str, key: str) -> bytes | None:
    """Return one record byte for byte, or None."""
    queue, number = transaction.find(name), record_number(key)
    if queue is None or number is None:
        return None
    row = transaction.one(statements.UNREADABLE_BYTES, (number, queue.number))
    return None if row is None else bytes(row[0])


def drop(transaction: Transaction, name: str, keys: Sequence[str]) -> list[bool]:
    """Remove each record for good."""
    queue = transaction.find(name)
    answers = []
    for key in keys:
        number = record_number(key)
        found = queue is not None and number is not None
        dropped = bool(found and transaction.change(statements.DROP_UNREADABLE, (number, queue.number)))
        if dropped:
            queue.d_unreadable -= 1
        answers.append(dropped)
    return answers

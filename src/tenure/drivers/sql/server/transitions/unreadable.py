"""Reading and emptying the store of records that nobody could read."""

from collections.abc import Sequence

from tenure.drivers.sql.server import questions
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.units import SECOND
from tenure.operating import UnreadableRecord
from tenure.summaries import record_number


def records(transaction: Transaction, name: str, limit: int, after: int) -> list[UnreadableRecord]:
    """Return records, oldest first."""
    queue = transaction.known(name)
    if queue is None:
        return []
    rows = transaction.all(questions.UNREADABLE_PAGE, queue=queue.number, after=after, limit=limit)
    return [
        UnreadableRecord(
            queue=name,
            key=str(number),
            id=job_id,
            reason=bytes(reason).decode(),
            set_aside_at=set_aside / SECOND,
            size=size,
        )
        for number, job_id, reason, set_aside, size in rows
    ]


def content(transaction: Transaction, name: str, key: str) -> bytes | None:
    """Return one record byte for byte, or None."""
    queue, number = transaction.known(name), record_number(key)
    if queue is None or number is None:
        return None
    row = transaction.one(questions.UNREADABLE_BYTES, number=number, queue=queue.number)
    return None if row is None else bytes(row[0])


def drop(transaction: Transaction, name: str, keys: Sequence[str]) -> list[bool]:
    """Remove each record for good."""
    queue = transaction.known(name)
    return [queue is not None and _drop(transaction, queue, record_number(key)) for key in keys]


def _drop(transaction: Transaction, queue: QueueRow, number: int | None) -> bool:
    if number is None or not transaction.change(questions.DROP_UNREADABLE, number=number, queue=queue.number):
        return False
    queue.unreadable -= 1
    return True

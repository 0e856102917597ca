"""Who holds the lock of a unique job: at most one job of a queue waits or runs with a text."""

from typing import Final

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, READY, SUSPECT
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction

WAITING: Final = frozenset({READY, SUSPECT, DELAYED})


def holder_of(transaction: Transaction, queue: QueueRow, unique: str) -> str | None:
    """Return the id of the job that is unique by a text; None when there is none, and another may be stored."""
    found = transaction.one(statements.FIND_LOCK, (queue.number, unique))
    if found is None:
        return None
    incarnation, job_id, state, shelf = found
    if state in WAITING and shelf != queue.line:
        # It was cleared: a clear is one step however many jobs there are, so their locks are taken from them here.
        transaction.change(statements.UNLOCK, (incarnation,))
        return None
    return str(job_id)

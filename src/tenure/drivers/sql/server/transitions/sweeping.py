"""Removing, in bounded steps, the rows that a clear has put out of reach, and ends that were kept long enough."""

from tenure.drivers.sql.nodes import cleared
from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.server.transitions.advancing import advance
from tenure.drivers.sql.transitions import STEP


def sweep(transaction: Transaction, queue: QueueRow) -> None:
    """Remove some leftovers of a cleared line, and some ends whose time is over, that nobody else is removing."""
    if queue.first_until is not None and queue.first_until <= transaction.now:
        forget_ends(transaction, queue, STEP)
    if queue.abandoned is None:
        return
    found = transaction.all(statements.LEFTOVERS, shelf=queue.abandoned, step=STEP)
    transaction.change_all(statements.REMOVE, (row[0] for row in found))
    if not found and transaction.one(statements.ANY_LEFT, shelf=queue.abandoned) is None:
        transaction.change(statements.SWEPT, queue=queue.number, shelf=queue.abandoned)
    queue.abandoned = None
    advance(transaction, cleared(row[1:] for row in found))


def forget_ends(transaction: Transaction, queue: QueueRow, most: int) -> None:
    """Remove ends whose time is over."""
    found = transaction.all(statements.OLD_ENDS, queue=queue.number, now=transaction.now, step=most)
    if found:
        transaction.change(statements.DROP_ENDS, queue=queue.number, ids=[job_id for (job_id,) in found])

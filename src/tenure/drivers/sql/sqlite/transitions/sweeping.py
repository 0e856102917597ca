"""Removing, in bounded steps, the rows that a clear has put out of reach, and ends that were kept long enough."""

from tenure.drivers.sql.nodes import cleared
from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction
from tenure.drivers.sql.sqlite.transitions.advancing import advance
from tenure.drivers.sql.transitions import STEP


def sweep(transaction: Transaction, queue: QueueRow) -> None:
    """Remove some leftovers of a cleared line, and some ends whose time is over, if the queue has any."""
    if queue.first_until is not None and queue.first_until <= transaction.now:
        forget_ends(transaction, queue)
    if queue.abandoned is None:
        return
    swept = transaction.all(statements.SWEEP, (queue.abandoned, STEP))
    if len(swept) < STEP:
        transaction.change(statements.SWEPT, (queue.number, queue.abandoned))
    queue.abandoned = None
    advance(transaction, cleared(swept))


def forget_ends(transaction: Transaction, queue: QueueRow, most: int = STEP) -> None:
    """Remove ends whose time is over."""
    transaction.change(statements.FORGET_ENDS, (queue.number, transaction.now, most))

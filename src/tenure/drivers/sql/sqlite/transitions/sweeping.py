"""Removing, in bounded steps, the rows that a clear has put out of reach."""

from typing import Final

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction

STEP: Final = 100
"""How many jobs one transition promotes, recovers or sweeps at most in a queue (P6)."""


def sweep(transaction: Transaction, queue: QueueRow) -> None:
    """Remove some leftovers of a cleared line, if the queue has any."""
    if queue.abandoned is None:
        return
    if transaction.change(statements.SWEEP, (queue.abandoned, STEP)) < STEP:
        transaction.change(statements.SWEPT, (queue.number, queue.abandoned))
    queue.abandoned = None

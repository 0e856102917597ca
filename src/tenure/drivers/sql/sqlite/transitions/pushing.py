"""Storing jobs."""

from collections.abc import Sequence

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, READY
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.drivers.sql.sqlite.transitions.sweeping import sweep
from tenure.drivers.sql.units import micros, nearest_micros
from tenure.queue import Push, Pushed


def push(transaction: Transaction, jobs: Sequence[Push]) -> list[Pushed]:
    """Store each job whose id does not exist yet, in whatever state."""
    now = transaction.now
    pushed: list[Pushed] = []
    for job, incarnation in zip(jobs, transaction.numbers(len(jobs)), strict=True):
        queue = transaction.open(job.queue)
        delayed = job.delay > 0
        stored = transaction.change(
            statements.PUSH,
            (
                incarnation,
                queue.number,
                job.id,
                queue.line,
                DELAYED if delayed else READY,
                now + micros(job.delay) if delayed else -job.priority,
                now,
                job.priority,
                job.crash_limit,
                None if job.expires_in is None else now + micros(job.expires_in),
                job.envelope,
                nearest_micros(job.keep),
            ),
        )
        if stored:
            queue.d_delayed += delayed
            queue.d_ready += not delayed
            transaction.woken.add(job.queue)
            if queue.first_until is not None:
                transaction.change(statements.DROP_END, (queue.number, job.id))
        pushed.append(Pushed(job.id, "stored" if stored else "held"))
    for name in {job.queue for job in jobs}:
        sweep(transaction, transaction.open(name))
    return pushed

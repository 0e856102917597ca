"""Storing jobs."""

from collections.abc import Sequence

from tenure.drivers.sql.nodes import Outcome, member
from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, READY
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction
from tenure.drivers.sql.sqlite.transitions.advancing import advance
from tenure.drivers.sql.sqlite.transitions.locking import WAITING, holder_of
from tenure.drivers.sql.sqlite.transitions.sweeping import sweep
from tenure.drivers.sql.units import micros, nearest_micros
from tenure.queue import Push, Pushed


def push(transaction: Transaction, jobs: Sequence[Push]) -> list[Pushed]:
    """Store each job whose id does not exist yet, in whatever state."""
    now = transaction.now
    pushed: list[Pushed] = []
    for job, incarnation in zip(jobs, transaction.numbers(len(jobs)), strict=True):
        queue = transaction.open(job.queue)
        holder = holder_of(transaction, queue, job.unique) if job.unique else None
        if holder is not None:
            pushed.append(Pushed(job.id if _exists(transaction, queue, job.id) else holder, "held"))
            continue
        delayed = job.delay > 0
        row = (
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
            job.unique or None,
        )
        stored = transaction.change(statements.PUSH, row)
        if not stored and _swept(transaction, queue, job.id):
            stored = transaction.change(statements.PUSH, row)
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


def _swept(transaction: Transaction, queue: QueueRow, job_id: str) -> bool:
    """Remove what is left of a cleared job of a composition, which is to be told."""
    found = transaction.one(statements.FIND_JOB, (queue.number, job_id))
    what = member(*found[4:]) if found else None
    if what is None or found[1] not in WAITING or found[2] == queue.line:
        return False
    transaction.change(statements.REMOVE, (found[0],))
    advance(transaction, [what.end(Outcome.CANCELLED)])
    return True


def _exists(transaction: Transaction, queue: QueueRow, job_id: str) -> bool:
    found = transaction.one(statements.FIND_JOB, (queue.number, job_id))
    return bool(found) and (found[1] not in WAITING or found[2] == queue.line)

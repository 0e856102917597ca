"""What is kept of jobs: how those ended that asked for it, and how far the running ones have come."""

from collections.abc import Sequence

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction
from tenure.drivers.sql.sqlite.transitions.sweeping import forget_ends
from tenure.drivers.sql.units import SECOND
from tenure.queue import Ack, Fail, JobState, Settlement
from tenure.results import Ending, Progress, ProgressReport, failed_state


def end(
    transaction: Transaction,
    queue: QueueRow,
    job: tuple[str, int],
    keep: int,
    settlement: Settlement | None = None,
) -> None:
    """Keep how a job (id, incarnation) ended, by a settlement or else by a cancel."""
    state, result, reason, kind = JobState.CANCELLED, None, "", ""
    if isinstance(settlement, Ack):
        state, result = JobState.SUCCEEDED, settlement.result
    elif isinstance(settlement, Fail):
        reason, kind = settlement.failure.reason, settlement.failure.type
        state = failed_state(reason)
    now = transaction.now
    transaction.change(statements.END, (queue.number, *job, state.value, now, now + keep, result, reason, kind))
    if queue.first_until is None or queue.first_until <= now:
        # Two for each that comes, so that they do not become more and more where nothing else sweeps.
        forget_ends(transaction, queue, 2)
    queue.first_until = min(queue.first_until or now + keep, now + keep)


def endings(transaction: Transaction, name: str, ids: Sequence[str]) -> list[Ending | None]:
    """Return how each job ended, where that is kept."""
    queue = transaction.find(name)
    if queue is None:
        return [None] * len(ids)
    rows = (transaction.one(statements.FIND_END, (queue.number, job_id, transaction.now)) for job_id in ids)
    return [
        row
        and Ending(
            state=JobState(row[0]),
            incarnation=row[1],
            ended_at=row[2] / SECOND,
            result=row[3],
            reason=row[4],
            type=row[5],
        )
        for row in rows
    ]


def progress(transaction: Transaction, name: str, ids: Sequence[str]) -> list[Progress | None]:
    """Return how far each job's current attempt has come."""
    queue = transaction.find(name)
    if queue is None:
        return [None] * len(ids)
    rows = (transaction.one(statements.FIND_PROGRESS, (queue.number, job_id)) for job_id in ids)
    return [row and Progress(*row) for row in rows]


def report(transaction: Transaction, reports: Sequence[ProgressReport]) -> list[bool]:
    """Replace the progress of each job whose lease is current."""
    answers = []
    for one in reports:
        lease, told, queue = one.lease, one.progress, transaction.find(one.lease.queue)
        answers.append(
            queue is not None
            and transaction.change(
                statements.REPORT,
                (told.fraction, told.note, lease.incarnation, queue.number, lease.id, lease.token),
            )
            > 0
        )
    return answers

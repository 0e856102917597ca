"""Reading, without changing anything."""

from collections.abc import Sequence
from typing import Any, Final

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, FAILED, LEASED, READY, SUSPECT
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction
from tenure.drivers.sql.units import SECOND
from tenure.queue import Counts, FailedRecord, Failure, JobState
from tenure.results import failed_state

_STATES: Final = {
    READY: JobState.READY,
    SUSPECT: JobState.READY,
    DELAYED: JobState.DELAYED,
    LEASED: JobState.RUNNING,
}


def counts(transaction: Transaction, name: str) -> Counts:
    """Count the queue's jobs by state: from its counters, and two looks at the index."""
    queue = transaction.find(name)
    if queue is None:
        return Counts(ready=0, delayed=0, leased=0, lapsed=0, failed=0, unreadable=0, oldest_age=None)
    oldest: int | None = transaction.one(statements.OLDEST, {"line": queue.line})[0]
    (lapsed,) = transaction.one(statements.COUNT_LAPSED, {"number": queue.number, "now": transaction.now})
    return Counts(
        ready=queue.ready,
        delayed=queue.delayed,
        leased=queue.leased,
        lapsed=lapsed,
        failed=queue.failed,
        unreadable=queue.unreadable,
        oldest_age=None if oldest is None else max(0, transaction.now - oldest) / SECOND,
    )


def queues(transaction: Transaction) -> list[str]:
    """Return the names of all queues, sorted."""
    return transaction.known()


def states(transaction: Transaction, name: str, ids: Sequence[str]) -> list[JobState]:
    """Tell where each job is."""
    queue = transaction.find(name)
    if queue is None:
        return [JobState.GONE] * len(ids)
    return [_state(transaction, queue, job_id) for job_id in ids]


def _state(transaction: Transaction, queue: QueueRow, job_id: str) -> JobState:
    found = transaction.one(statements.FIND_JOB, (queue.number, job_id))
    if found is None:
        kept = transaction.one(statements.FIND_END_STATE, (queue.number, job_id, transaction.now))
        return JobState(kept[0]) if kept else JobState.GONE
    incarnation, state, shelf, *_ = found
    if state == FAILED:
        return failed_state(transaction.one(statements.FIND_REASON, (incarnation,))[0])
    waits = state in {READY, SUSPECT, DELAYED}
    return JobState.GONE if waits and shelf != queue.line else _STATES[state]


def failed(transaction: Transaction, name: str, limit: int, offset: int) -> list[FailedRecord]:
    """Return failed jobs, oldest first."""
    queue = transaction.find(name)
    if queue is None:
        return []
    values = {"number": queue.number, "limit": limit, "offset": offset}
    return [_record(name, row) for row in transaction.all(statements.FAILED_PAGE, values)]


def failed_record(transaction: Transaction, name: str, job_id: str) -> FailedRecord | None:
    """Return one failed job, or None."""
    queue = transaction.find(name)
    row = queue and transaction.one(statements.FAILED_ONE, {"number": queue.number, "id": job_id})
    return _record(name, row) if row else None


def _record(queue: str, row: Any) -> FailedRecord:
    job_id, incarnation, attempts, failed_at, reason, kind, message, traceback, envelope = row
    return FailedRecord(
        queue=queue,
        id=job_id,
        incarnation=incarnation,
        attempts=attempts,
        failed_at=failed_at / SECOND,
        failure=Failure(reason=reason, type=kind, message=message, traceback=traceback),
        envelope=envelope,
    )

"""Reading, without changing anything."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tenure.drivers.sql.server import questions, statements
from tenure.drivers.sql.server.texts import DELAYED, LEASED, READY, SUSPECT
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
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
    queue = transaction.known(name)
    if queue is None:
        return Counts(ready=0, delayed=0, leased=0, lapsed=0, failed=0, unreadable=0, oldest_age=None)
    now = transaction.now
    row = transaction.one(questions.COUNTED, queue=queue.number, now=now)
    ready, delayed, leased, failed, unreadable, lapsed = (int(one or 0) for one in row)
    oldest = _oldest(transaction, queue.line) if ready else None
    return Counts(
        ready=ready,
        delayed=delayed,
        leased=leased,
        lapsed=lapsed,
        failed=failed,
        unreadable=unreadable,
        oldest_age=None if oldest is None else max(0, now - oldest) / SECOND,
    )


def _oldest(transaction: Transaction, line: int) -> int | None:
    """Return when the oldest ready job became ready: the first of each priority is looked at, and none besides."""
    times: list[int] = []
    for state in (READY, SUSPECT):
        place = -(2**63)
        while row := transaction.one(questions.NEXT_PLACE, shelf=line, state=state, place=place):
            place, since = row
            times.append(since)
    return min(times, default=None)


def queues(transaction: Transaction) -> list[str]:
    """Return the names of all queues, sorted."""
    return [name for (name,) in transaction.all(statements.LIST_QUEUES, namespace=transaction.namespace)]


def states(transaction: Transaction, name: str, ids: Sequence[str]) -> list[JobState]:
    """Tell where each job is."""
    queue = transaction.known(name)
    if queue is None or not ids:
        return [JobState.GONE] * len(ids)
    found = transaction.all(statements.FIND_JOBS, queue=queue.number, ids=list(ids))
    there = {row[0]: _state(queue, *row[1:]) for row in found}
    gone = [job_id for job_id in ids if job_id not in there]
    if gone and queue.first_until is not None:
        kept = transaction.all(statements.FIND_END_STATES, queue=queue.number, ids=gone, now=transaction.now)
        there |= {job_id: JobState(state) for job_id, state in kept}
    return [there.get(job_id, JobState.GONE) for job_id in ids]


def _state(queue: QueueRow, state: int, shelf: int, failure: bytes | None) -> JobState:
    if failure is not None:
        return failed_state(msgspec.json.decode(failure, type=Failure).reason)
    waits = state in {READY, SUSPECT, DELAYED}
    return JobState.GONE if waits and shelf != queue.line else _STATES[state]


def failed(transaction: Transaction, name: str, limit: int, offset: int) -> list[FailedRecord]:
    """Return failed jobs, oldest first."""
    queue = transaction.known(name)
    if queue is None:
        return []
    rows = transaction.all(questions.FAILED_PAGE, shelf=queue.number, limit=limit, offset=offset)
    return [_record(name, row) for row in rows]


def failed_record(transaction: Transaction, name: str, job_id: str) -> FailedRecord | None:
    """Return one failed job, or None."""
    queue = transaction.known(name)
    row = queue and transaction.one(questions.FAILED_ONE, queue=queue.number, id=job_id)
    return _record(name, row) if row else None


def _record(queue: str, row: Any) -> FailedRecord:
    job_id, incarnation, attempts, failed_at, failure, envelope = row
    return FailedRecord(
        queue=queue,
        id=job_id,
        incarnation=incarnation,
        attempts=attempts,
        failed_at=failed_at / SECOND,
        failure=msgspec.json.decode(failure, type=Failure),
        envelope=envelope,
    )

"""What is kept of jobs: how those ended that asked for it, and how far the running ones have come."""

from collections.abc import Sequence

import msgspec

from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.transaction import Transaction
from tenure.drivers.sql.server.transitions.settling import current
from tenure.drivers.sql.units import SECOND
from tenure.queue import Failure, JobState
from tenure.results import Ending, Progress, ProgressReport


def endings(transaction: Transaction, name: str, ids: Sequence[str]) -> list[Ending | None]:
    """Return how each job ended, where that is kept."""
    queue = transaction.known(name)
    if queue is None or not ids:
        return [None] * len(ids)
    found = {}
    rows = transaction.all(statements.FIND_ENDS, queue=queue.number, ids=list(ids), now=transaction.now)
    for job_id, state, incarnation, ended_at, result, failure in rows:
        why = Failure(reason="") if failure is None else msgspec.json.decode(failure, type=Failure)
        found[job_id] = Ending(
            state=JobState(state),
            incarnation=incarnation,
            ended_at=ended_at / SECOND,
            result=result,
            reason=why.reason,
            type=why.type,
        )
    return [found.get(job_id) for job_id in ids]


def progress(transaction: Transaction, name: str, ids: Sequence[str]) -> list[Progress | None]:
    """Return how far each job's current attempt has come."""
    queue = transaction.known(name)
    if queue is None or not ids:
        return [None] * len(ids)
    rows = transaction.all(statements.FIND_PROGRESS, queue=queue.number, ids=list(ids))
    found = {job_id: msgspec.json.decode(told, type=Progress) for job_id, told in rows}
    return [found.get(job_id) for job_id in ids]


def report(transaction: Transaction, reports: Sequence[ProgressReport]) -> list[bool]:
    """Replace the progress of each job whose lease is current."""
    held = current(transaction, (one.lease for one in reports))
    answers = []
    for one in reports:
        lease = held.leases.get(held.key(one.lease))
        answers.append(lease is not None and lease.keep > 0)
        if answers[-1]:
            told = msgspec.json.encode(one.progress)
            transaction.change(statements.REPORT, incarnation=one.lease.incarnation, progress=told)
    return answers

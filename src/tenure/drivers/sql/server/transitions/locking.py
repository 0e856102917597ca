"""Who holds the locks of unique jobs: at most one job of a queue waits or runs with a text."""

from collections.abc import Sequence

from tenure.drivers.sql.server import uniqueness
from tenure.drivers.sql.server.transaction import QueueRow, Transaction


def holders(
    transaction: Transaction, queue: QueueRow, ids: Sequence[str], locks: Sequence[str]
) -> tuple[set[str], dict[str, str]]:
    """Return which of the ids exist, and the ids of the jobs that are unique by these texts."""
    if not ids and not locks:
        return set(), {}
    rows = transaction.all(uniqueness.FIND_HOLDERS, queue=queue.number, ids=list(ids), locks=list(locks))
    return {job_id for job_id, _ in rows}, {lock: job_id for job_id, lock in rows if lock is not None}


def unlock_cleared(transaction: Transaction, queue: QueueRow, locks: Sequence[str]) -> int:
    """Take the locks from jobs that were cleared: a clear is one step, however many jobs there are."""
    if not locks:
        return 0
    cleared = uniqueness.FIND_CLEARED_HOLDERS
    found = transaction.all(cleared, queue=queue.number, locks=list(locks), line=queue.line)
    return transaction.change_all(uniqueness.UNLOCK, [incarnation for (incarnation,) in found])

"""Keeping how jobs ended."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.server.transitions.sweeping import forget_ends
from tenure.queue import Ack, Fail, Failure, JobState, Settlement
from tenure.results import failed_state

Row = dict[str, Any]


def ended(queue: QueueRow, job: tuple[str, int], keep: int, now: int, settlement: Settlement | None = None) -> Row:
    """Return what is kept of the end of a job (id, incarnation), by a settlement or else by a cancel."""
    state, result, failure = JobState.CANCELLED, None, None
    if isinstance(settlement, Ack):
        state, result = JobState.SUCCEEDED, settlement.result
    elif isinstance(settlement, Fail):
        why = Failure(reason=settlement.failure.reason, type=settlement.failure.type)
        state, failure = failed_state(why.reason), msgspec.json.encode(why)
    return {
        "queue": queue.number,
        "id": job[0],
        "incarnation": job[1],
        "state": state.value,
        "ended": now,
        "kept_until": now + keep,
        "result": result,
        "failure": failure,
    }


def keep(transaction: Transaction, queues: Sequence[QueueRow], rows: Sequence[Row]) -> None:
    """Keep these ends."""
    if not rows:
        return
    # Whoever ends the same ids does so in the same order.
    transaction.insert(statements.END, sorted(rows, key=lambda row: (row["queue"], row["id"])))
    for queue in queues:
        if queue.first_until is not None and queue.first_until <= transaction.now:
            # Two for each that comes, so that they do not become more and more where nothing else sweeps.
            forget_ends(transaction, queue, 2 * len(rows))

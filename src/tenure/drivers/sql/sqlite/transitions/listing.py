"""Listing waiting and running jobs, a page at a time."""

from typing import Any, Final, NamedTuple

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, LEASED, READY, SUSPECT
from tenure.drivers.sql.sqlite.transaction import SECOND, Transaction
from tenure.operating import JobPage, JobSummary
from tenure.queue import JobState
from tenure.summaries import Cursors, job_name

CURSORS: Final = Cursors("qq")
"""A cursor holds the rank and the entry of the last job of its page."""

_BEFORE_ALL: Final = (-(2**63), -(2**63))

_LINES: Final = {JobState.READY: (READY, SUSPECT), JobState.DELAYED: (DELAYED,), JobState.RUNNING: (LEASED,)}


class Row(NamedTuple):
    """One job of a page."""

    rank: int
    entry: int
    id: str
    priority: int
    attempts: int
    crashes: int
    since: int
    envelope: bytes

    def __repr__(self) -> str:
        return f"Row({self.id!r}, rank={self.rank}, entry={self.entry})"  # never its envelope (P12)


def jobs(transaction: Transaction, name: str, state: JobState, limit: int, cursor: str | None) -> JobPage:
    """Return a page: as many rows are read as it holds, and one more for each line that makes up the state."""
    rank, entry = _BEFORE_ALL if cursor is None else CURSORS.read(cursor, state)
    queue = transaction.find(name)
    if queue is None:
        return JobPage(jobs=[], cursor=None)
    values = {"rank": rank, "entry": entry, "limit": limit + 1}
    values["shelf"] = queue.number if state == JobState.RUNNING else queue.line
    rows: list[Any] = []
    for line in _LINES[state]:
        rows += transaction.all(statements.JOBS_PAGE, {**values, "state": line})
    found = [Row(*row) for row in sorted(rows)]
    shown = found[:limit]
    return JobPage(
        jobs=[_summary(name, state, row, transaction.now) for row in shown],
        cursor=CURSORS.written(state, shown[-1].rank, shown[-1].entry) if len(found) > limit else None,
    )


def _summary(queue: str, state: JobState, row: Row, now: int) -> JobSummary:
    return JobSummary(
        queue=queue,
        id=row.id,
        state=state,
        name=job_name(row.envelope),
        priority=row.priority,
        attempts=row.attempts,
        crashes=row.crashes,
        seconds=(max(0, now - row.since) if state == JobState.READY else row.rank - now) / SECOND,
    )

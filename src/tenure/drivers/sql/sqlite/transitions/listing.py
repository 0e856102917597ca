"""Listing waiting and running jobs, and what one holder holds, a page at a time."""

from typing import Any, Final, NamedTuple

from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, LEASED, READY, SUSPECT
from tenure.drivers.sql.sqlite.transaction import SECOND, Transaction
from tenure.operating import HeldPage, JobPage, JobSummary
from tenure.queue import JobState, Lease
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


class HeldRow(NamedTuple):
    """One lease, of whichever holder."""

    rank: int
    entry: int
    id: str
    incarnation: int
    token: str
    deliveries: int
    free: int
    crashes: int
    length: int
    keep: int
    envelope: bytes | None
    """None: another holder's."""

    def __repr__(self) -> str:
        return f"HeldRow({self.id!r}, rank={self.rank}, entry={self.entry})"  # never its envelope (P12)


def held(transaction: Transaction, name: str, prefix: str, *, limit: int, cursor: str | None, sent: float) -> HeldPage:
    """Return the leases whose tokens begin so, among the first ``limit`` behind the cursor."""
    rank, entry = _BEFORE_ALL if cursor is None else CURSORS.read(cursor, JobState.RUNNING)
    queue = transaction.find(name)
    if queue is None:
        return HeldPage(leases=[], cursor=None)
    values = {"rank": rank, "entry": entry, "limit": limit, "number": queue.number, "prefix": prefix}
    rows = [HeldRow(*row) for row in transaction.all(statements.HELD_PAGE, values)]
    return HeldPage(
        leases=[
            Lease(
                queue=name,
                id=row.id,
                incarnation=row.incarnation,
                token=row.token,
                fence=queue.fence,
                deliveries=row.deliveries,
                free=row.free,
                crashes=row.crashes,
                length=row.length / SECOND,
                deadline=sent + (row.rank - transaction.now) / SECOND,
                envelope=row.envelope,
                keep=row.keep / SECOND,
            )
            for row in rows
            if row.envelope is not None
        ],
        cursor=CURSORS.written(JobState.RUNNING, rows[-1].rank, rows[-1].entry) if len(rows) == limit else None,
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

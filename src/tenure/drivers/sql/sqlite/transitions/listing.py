"""Listing waiting and running jobs, and what one holder holds, a page at a time."""

from typing import Any, Final

from tenure.drivers.sql.rows import BEFORE_ALL, CURSORS, held_page, page
from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, LEASED, READY, SUSPECT
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.operating import HeldPage, JobPage
from tenure.queue import JobState

_LINES: Final = {JobState.READY: (READY, SUSPECT), JobState.DELAYED: (DELAYED,), JobState.RUNNING: (LEASED,)}


def jobs(transaction: Transaction, name: str, state: JobState, limit: int, cursor: str | None) -> JobPage:
    """Return a page: as many rows are read as it holds, and one more for each line that makes up the state."""
    rank, entry = BEFORE_ALL if cursor is None else CURSORS.read(cursor, state)
    queue = transaction.find(name)
    if queue is None:
        return JobPage(jobs=[], cursor=None)
    values = {"rank": rank, "entry": entry, "limit": limit + 1}
    values["shelf"] = queue.number if state == JobState.RUNNING else queue.line
    rows: list[Any] = []
    for line in _LINES[state]:
        rows += transaction.all(statements.JOBS_PAGE, {**values, "state": line})
    return page(name, state, rows, limit, transaction.now)


def held(transaction: Transaction, name: str, prefix: str, *, limit: int, cursor: str | None, sent: float) -> HeldPage:
    """Return the leases whose tokens begin so, among the first ``limit`` behind the cursor.

    The file keeps the last fence of a queue and not each lease's: that one is told.
    """
    rank, entry = BEFORE_ALL if cursor is None else CURSORS.read(cursor, JobState.RUNNING)
    queue = transaction.find(name)
    if queue is None:
        return HeldPage(leases=[], cursor=None)
    values = {"rank": rank, "entry": entry, "limit": limit, "number": queue.number, "prefix": prefix}
    rows = [(*row, queue.fence) for row in transaction.all(statements.HELD_PAGE, values)]
    return held_page(name, rows, limit, now=transaction.now, sent=sent)

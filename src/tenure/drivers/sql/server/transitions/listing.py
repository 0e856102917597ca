"""Listing waiting and running jobs, and what one holder holds, a page at a time."""

from typing import Any, Final

from tenure.drivers.sql.rows import BEFORE_ALL, CURSORS, held_page, page
from tenure.drivers.sql.server import questions
from tenure.drivers.sql.server.texts import DELAYED, LEASED, READY, SUSPECT
from tenure.drivers.sql.server.transaction import Transaction
from tenure.operating import HeldPage, JobPage
from tenure.queue import JobState

_LINES: Final = {JobState.READY: (READY, SUSPECT), JobState.DELAYED: (DELAYED,), JobState.RUNNING: (LEASED,)}


def jobs(transaction: Transaction, name: str, state: JobState, limit: int, cursor: str | None) -> JobPage:
    """Return a page: as many rows are read as it holds, and some more for each line that makes up the state."""
    place, entry = BEFORE_ALL if cursor is None else CURSORS.read(cursor, state)
    queue = transaction.known(name)
    if queue is None:
        return JobPage(jobs=[], cursor=None)
    shelf = queue.number if state == JobState.RUNNING else queue.line
    values = {"shelf": shelf, "place": place, "entry": entry, "limit": limit + 1}
    rows: list[Any] = []
    for line in _LINES[state]:
        rows += transaction.all(questions.JOBS_PAGE, state=line, **values)
    return page(name, state, rows, limit, transaction.now)


def held(transaction: Transaction, name: str, prefix: str, *, limit: int, cursor: str | None, sent: float) -> HeldPage:
    """Return the leases whose tokens begin so, among the first ``limit`` behind the cursor."""
    place, entry = BEFORE_ALL if cursor is None else CURSORS.read(cursor, JobState.RUNNING)
    queue = transaction.known(name)
    if queue is None:
        return HeldPage(leases=[], cursor=None)
    values = {"shelf": queue.number, "place": place, "entry": entry, "limit": limit}
    rows = transaction.all(questions.HELD_PAGE, prefix=prefix, length=len(prefix), **values)
    return held_page(name, rows, limit, now=transaction.now, sent=sent)

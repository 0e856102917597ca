"""Pages of waiting and running jobs, and of leases, made of rows."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tenure.drivers.sql.nodes import GIVES, composition_of
from tenure.drivers.sql.units import SECOND
from tenure.operating import HeldPage, JobPage, JobSummary
from tenure.queue import JobState, Lease
from tenure.summaries import Cursors, job_name

CURSORS: Final = Cursors("qq")
"""A cursor holds the rank and the entry of the last job of its page."""

BEFORE_ALL: Final = (-(2**63), -(2**63))


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
    composition: int | None
    flags: int
    input: bytes | None
    envelope: bytes | None
    """None, as the input is: another holder's."""
    fence: int

    def __repr__(self) -> str:
        return f"HeldRow({self.id!r}, rank={self.rank}, entry={self.entry})"  # never its envelope (P12)


def held_page(queue: str, rows: Sequence[Any], limit: int, *, now: int, sent: float) -> HeldPage:
    """Return the leases of one holder among these rows; as many rows as were asked for mean that there may be more."""
    found = [HeldRow(*row) for row in rows]
    return HeldPage(
        leases=[
            Lease(
                queue=queue,
                id=row.id,
                incarnation=row.incarnation,
                token=row.token,
                fence=row.fence,
                deliveries=row.deliveries,
                free=row.free,
                crashes=row.crashes,
                length=row.length / SECOND,
                deadline=sent + (row.rank - now) / SECOND,
                envelope=row.envelope,
                keep=row.keep / SECOND,
                composition="" if row.composition is None else composition_of(row.id),
                input=row.input,
                gives=bool(row.flags & GIVES),
            )
            for row in found
            if row.envelope is not None
        ],
        cursor=CURSORS.written(JobState.RUNNING, found[-1].rank, found[-1].entry) if len(found) == limit else None,
    )


def page(queue: str, state: JobState, rows: Sequence[Any], limit: int, now: int) -> JobPage:
    """Return the page that these rows make; they are more than it holds when there is another."""
    found = [Row(*row) for row in sorted(rows)]
    shown = found[:limit]
    return JobPage(
        jobs=[_summary(queue, state, row, now) for row in shown],
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

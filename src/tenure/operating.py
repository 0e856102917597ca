"""Operating a store: what operators read and change, as protocols beside ``tenure.queue.Queue``.

A driver implements those it can; ``tenure.queue.feature`` tells which. Every change is one atomic step on the store,
guarded by state and incarnation, and may be repeated without harm. Nothing here reads or returns a payload, but for
what an operator exports on purpose, and the leases of a holder, which are whole.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from tenure.queue import FailedRecord, JobState, Lease


class Inspector(Protocol):
    """Reads, without changing anything and without reading payloads."""

    async def queues(self) -> Sequence[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        ...

    async def states(self, queue: str, ids: Sequence[str]) -> Sequence[JobState]:
        """Tell where each job is, in order, in one step."""
        ...


class FailedJobs(Protocol):
    """Reads and operates the failed store."""

    async def failed(self, queue: str, *, limit: int = 100, offset: int = 0) -> Sequence[FailedRecord]:
        """Return failed jobs of the queue, oldest first."""
        ...

    async def failed_record(self, queue: str, job_id: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        ...

    async def retry(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Make each a new ready job, its counters at zero, and remove it from the failed store, in one step each.

        Guarded by the incarnation: False for a record that is no longer there, or that another retry took, and for a
        unique job while another one has its place: that record stays.
        """
        ...

    async def forget(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Remove each from the failed store; False for one that is no longer there."""
        ...


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One job in a listing, without its payload."""

    queue: str
    id: str
    state: JobState
    """``ready``, ``delayed`` or ``running``; failed jobs are listed by ``FailedJobs.failed``."""
    name: str
    """The job's name, or an empty text when its record cannot be read."""
    priority: int
    attempts: int
    """Deliveries that count so far."""
    crashes: int
    seconds: float | None
    """Until it is due (delayed), until its lease lapses, negative when it has (running), since it is ready (ready)."""


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a listing."""

    jobs: Sequence[JobSummary]
    cursor: str | None
    """Pass it to read on; None at the end. Jobs that move meanwhile may be missed or seen twice."""


class JobLister(Protocol):
    """Lists waiting and running jobs, a page at a time."""

    async def jobs(self, queue: str, state: JobState, *, limit: int = 100, cursor: str | None = None) -> JobPage:
        """Return jobs of one state, those first that are first in line, at a cost that grows with ``limit`` alone."""
        ...


class HeldPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what one holder holds."""

    leases: Sequence[Lease]
    """They can be settled as by their holder. Whether one is doomed or a suspect is known to its holder alone."""
    cursor: str | None
    """Pass it to read on; None at the end."""


class Holdings(Protocol):
    """Finds what a process holds, also leases whose claim was answered to nobody: for whoever outlives it."""

    async def held_by(self, queue: str, holder: str, *, limit: int = 500, cursor: str | None = None) -> HeldPage:
        """Return leases that were claimed with this ``holder``, the lapsed ones that nobody has reclaimed too.

        A page may hold fewer than ``limit`` before the end. Of a holder that claims, renews and settles no more, every
        lease is on exactly one page. Raises ``InvalidOption`` before anything is sent.
        """
        ...


class UnreadableRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was set aside whole (P11)."""

    queue: str
    key: str
    """Its name in the unreadable store."""
    id: str
    reason: str
    set_aside_at: float
    """Seconds since 1970 by the store's clock."""
    size: int
    """Bytes of the record."""


class UnreadableStore(Protocol):
    """Reads and empties the store of records that nobody could read."""

    async def unreadable(self, queue: str, *, limit: int = 100, after: str = "") -> Sequence[UnreadableRecord]:
        """Return records, oldest first, those behind the key ``after``; without their bytes."""
        ...

    async def unreadable_bytes(self, queue: str, key: str) -> bytes | None:
        """Return one record byte for byte, or None."""
        ...

    async def drop_unreadable(self, queue: str, keys: Sequence[str]) -> Sequence[bool]:
        """Remove records for good; False for one that is not there."""
        ...


class Pruning(Protocol):
    """Forgets old failures."""

    async def prune(self, queue: str, *, older_than: float) -> int:
        """Remove failed jobs that failed at least so many seconds ago by the store's clock; return their exact number.

        In steps of at most 100 (P6); a job that fails meanwhile is never among them.
        """
        ...


class Control(Protocol):
    """Tells workers what to do, through the store."""

    async def pause(self, queue: str) -> bool:
        """Stop handing out the queue's jobs; all else goes on. False when it was paused already."""
        ...

    async def resume(self, queue: str) -> bool:
        """Hand out the queue's jobs again, and wake who waits. False when it was not paused."""
        ...

    async def paused(self, queues: Sequence[str]) -> Sequence[bool]:
        """Tell which queues are paused, in order."""
        ...

    async def request_restart(self) -> str:
        """Write a new opaque marker, and return it: workers that see it change finish and exit."""
        ...

    async def restart_marker(self) -> str | None:
        """Return the marker, or None when there was never one."""
        ...


class Severity(StrEnum):
    """How much a finding matters."""

    SERIOUS = "serious"
    """Jobs are lost, refused or stuck, now or at the next fault."""
    WARNING = "warning"
    """Something is likely to go wrong one day, or goes slower than it could."""
    NOTE = "note"
    """Worth knowing; also what could not be looked into."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at a store found. No text of it holds a payload or a credential."""

    severity: Severity
    check: str
    """The name of the check, one word."""
    found: str
    risk: str
    """What it may cost."""
    remedy: str
    """How to mend it."""


class Diagnosis(Protocol):
    """Looks for what is wrong with a store, or will be."""

    async def diagnose(self, *, durability: int = 1) -> Sequence[Finding]:
        """Return what was found, for pushes of that durability class; changes nothing.

        Raises ``ConnectionFailed`` and ``OutcomeUnknown`` when the store does not answer; what it refuses is found.
        """
        ...

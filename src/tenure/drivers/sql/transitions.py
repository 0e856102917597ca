"""What the databases have in common: the transitions that each of them makes in transactions of its own kind."""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from tenure.compositions import CompositionPage, CompositionStatus, NewComposition, Node
from tenure.drivers.sql.claims import Claim, Looked
from tenure.operating import HeldPage, JobPage, UnreadableRecord
from tenure.queue import (
    Cancelled,
    Counts,
    FailedRecord,
    JobState,
    Lease,
    Push,
    Pushed,
    Renewal,
    Settled,
    Settlement,
)
from tenure.results import Ending, Progress, ProgressReport
from tenure.schedules import Fired, ScheduleBook

Tx_contra = TypeVar("Tx_contra", contravariant=True)

STEP: Final = 100
"""How many jobs one transition promotes, recovers, sweeps or prunes at most in a queue (P6)."""


class Transitions(Protocol[Tx_contra]):
    """The transitions of one kind of database, each done whole or not at all in the transaction that it is given."""

    def push(self, transaction: Tx_contra, /, jobs: Sequence[Push]) -> list[Pushed]:
        """Store each job whose id does not exist yet, in whatever state."""
        ...

    def push_numbered(self, transaction: Tx_contra, /, client: str, number: int, jobs: Sequence[Push]) -> list[Pushed]:
        """Store the jobs by a call that the caller numbers, unless that was done: see ``tenure.relaying.Relays``."""
        ...

    def glance(self, transaction: Tx_contra, /, claim: Claim) -> Looked | None:
        """Return the claim's answer if it would change nothing, else None."""
        ...

    def claim(self, transaction: Tx_contra, /, claim: Claim) -> Looked:
        """Recover, promote, and lease jobs, the first queue's first."""
        ...

    def renew(self, transaction: Tx_contra, /, leases: Sequence[Lease]) -> list[Renewal]:
        """Extend each current lease by its own length from now."""
        ...

    def settle(self, transaction: Tx_contra, /, settlements: Sequence[Settlement]) -> list[Settled]:
        """End each current lease."""
        ...

    def cancel(self, transaction: Tx_contra, /, name: str, ids: Sequence[str]) -> list[Cancelled]:
        """Remove what waits, request it of what runs."""
        ...

    def clear(self, transaction: Tx_contra, /, name: str) -> int:
        """Put all that waits out of reach in one step, and return its number."""
        ...

    def counts(self, transaction: Tx_contra, /, name: str) -> Counts:
        """Count the queue's jobs by state."""
        ...

    def queues(self, transaction: Tx_contra, /) -> list[str]:
        """Return the names of all queues, sorted."""
        ...

    def states(self, transaction: Tx_contra, /, name: str, ids: Sequence[str]) -> list[JobState]:
        """Tell where each job is."""
        ...

    def failed(self, transaction: Tx_contra, /, name: str, limit: int, offset: int) -> list[FailedRecord]:
        """Return failed jobs, oldest first."""
        ...

    def failed_record(self, transaction: Tx_contra, /, name: str, job_id: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        ...

    def retry(self, transaction: Tx_contra, /, records: Sequence[FailedRecord]) -> list[bool]:
        """Make each failed job a new ready one."""
        ...

    def forget(self, transaction: Tx_contra, /, records: Sequence[FailedRecord]) -> list[bool]:
        """Remove each failed job."""
        ...

    def old(self, transaction: Tx_contra, /, age: int) -> tuple[int, int]:
        """Return the latest time, and the last number, of failed jobs that are so many microseconds old."""
        ...

    def prune(self, transaction: Tx_contra, /, name: str, old: tuple[int, int]) -> int:
        """Remove such failed jobs, at most ``STEP``, and return how many."""
        ...

    def jobs(self, transaction: Tx_contra, /, name: str, state: JobState, limit: int, cursor: str | None) -> JobPage:
        """Return a page of jobs."""
        ...

    def held(
        self, transaction: Tx_contra, /, name: str, prefix: str, *, limit: int, cursor: str | None, sent: float
    ) -> HeldPage:
        """Return the leases whose tokens begin so, among the first ``limit`` behind the cursor."""
        ...

    def endings(self, transaction: Tx_contra, /, name: str, ids: Sequence[str]) -> list[Ending | None]:
        """Return how each job ended, where that is kept."""
        ...

    def progress(self, transaction: Tx_contra, /, name: str, ids: Sequence[str]) -> list[Progress | None]:
        """Return how far each job's current attempt has come."""
        ...

    def report(self, transaction: Tx_contra, /, reports: Sequence[ProgressReport]) -> list[bool]:
        """Replace the progress of each job whose lease is current."""
        ...

    def prepare(self, transaction: Tx_contra, /, composition: NewComposition) -> bool:
        """Begin to store a composition."""
        ...

    def add(self, transaction: Tx_contra, /, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        """Store nodes of it."""
        ...

    def start(self, transaction: Tx_contra, /, home: str, composition_id: str) -> None:
        """Let it begin."""
        ...

    def grow(self, transaction: Tx_contra, /, lease: Lease, nodes: Sequence[Node]) -> bool:
        """Add jobs to it from inside one of its members."""
        ...

    def composition(self, transaction: Tx_contra, /, home: str, composition_id: str) -> CompositionStatus | None:
        """Return how far it has come."""
        ...

    def compositions(self, transaction: Tx_contra, /, home: str, limit: int, after: str) -> CompositionPage:
        """Return a page of them."""
        ...

    def begin_to_cancel(self, transaction: Tx_contra, /, home: str, composition_id: str) -> int | None:
        """Let nothing of it begin any more; return how many counted jobs it has, or None when it has ended."""
        ...

    def cancel_some(self, transaction: Tx_contra, /, home: str, composition_id: str, first: int) -> None:
        """Cancel ``STEP`` of its counted jobs, from a number on."""
        ...

    def prune_compositions(self, transaction: Tx_contra, /, home: str, old: tuple[int, int]) -> tuple[int, int]:
        """Forget compositions that were over by a time, at most ``STEP``; return how many, and how many were read."""
        ...

    def book(self, transaction: Tx_contra, /, name: str) -> ScheduleBook:
        """Return the queue's schedules, sorted by name, and the time."""
        ...

    def put_schedule(self, transaction: Tx_contra, /, name: str, schedule: str, definition: bytes) -> bool:
        """Store a schedule, or give one another definition; True if it is new."""
        ...

    def fire(
        self,
        transaction: Tx_contra,
        /,
        name: str,
        schedule: str,
        *,
        seen: int,
        slot: int,
        jobs: Sequence[Push],
        overlap: bool,
    ) -> Fired:
        """Move a cursor, in milliseconds, and push the jobs."""
        ...

    def pause_schedule(self, transaction: Tx_contra, /, name: str, schedule: str, *, paused: bool) -> bool:
        """Let nothing fire, or let it fire again from now on."""
        ...

    def remove_schedule(self, transaction: Tx_contra, /, name: str, schedule: str) -> bool:
        """Forget a schedule."""
        ...

    def records(self, transaction: Tx_contra, /, name: str, limit: int, after: int) -> list[UnreadableRecord]:
        """Return records that were set aside, oldest first."""
        ...

    def content(self, transaction: Tx_contra, /, name: str, key: str) -> bytes | None:
        """Return one of them byte for byte, or None."""
        ...

    def drop(self, transaction: Tx_contra, /, name: str, keys: Sequence[str]) -> list[bool]:
        """Remove each of them for good."""
        ...

    def pause(self, transaction: Tx_contra, /, name: str) -> bool:
        """Let claims leave the queue's jobs where they are; False when they did already."""
        ...

    def resume(self, transaction: Tx_contra, /, name: str) -> bool:
        """Let claims take the queue's jobs again; False when they did already."""
        ...

    def paused(self, transaction: Tx_contra, /, names: Sequence[str]) -> list[bool]:
        """Tell which queues are paused."""
        ...

    def request_restart(self, transaction: Tx_contra, /) -> str:
        """Write a new marker and return it."""
        ...

    def restart_marker(self, transaction: Tx_contra, /) -> str | None:
        """Return the marker, or None when there was never one."""
        ...

"""Compositions, as a store sees them: jobs and gates, and who is told when one of them has ended.

A composition is a directed graph without cycles. Its nodes are jobs that are not pushed yet, and gates, which only tell
others. The rules are few, so that one mechanism is behind chains, batches and workflows (``tenure.flow`` makes them):

- A node waits until it was told of as many endings as it ``needs``. Node ``START``, a gate, is told once, when the
  composition starts.
- A job that then may run becomes an ordinary job of its queue (``ready``, or ``delayed`` from now on), and its
  settlement decides its end: succeeded (``Ack``), failed (``Fail``, and whatever is set aside), or cancelled (``Drop``,
  a cancel, a clear). A job may run ``when`` all that it was told of succeeded, or some did not, or in any case; else it
  ends cancelled without having been pushed.
- A gate that needs nothing more ends at once: succeeded if all that it was told of did, and failed otherwise.
- What has ended tells those that it names as ``next``: a job one node at most, a gate ``MOST_NEXT`` at most.

All of it happens in the atomic step of the settlement, as far as that releases ``MOST_RELEASED`` jobs of a queue (P6,
P7); what is left is done by the next settlements and claims. So nothing that is stale can advance anything, and a job
counts once however often it was delivered.

Jobs with numbers from 0 are *counted*: they are what the composition was made for. Callbacks and gates have numbers
below 0, and are not. When the last counted job has ended, the composition has: see ``ended_as``. A job's id is
``{composition}.{number}``, that of a callback ``{composition}.c{-number}`` (``job_id``), so that a page of members can
be found without a list of them. A member that failed and is retried by hand is a job like any other: it changes nothing
in the composition, which knows it as failed.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from tenure.queue import Lease, Push
from tenure.sensitive import Discreet

START: Final = -1
"""The number of the gate that is opened when a composition starts."""
MOST_NEXT: Final = 100
"""How many nodes a gate may tell: whoever has more to tell puts gates between."""
MOST_RELEASED: Final = 100
"""How many jobs one call releases at most (P6)."""
MAX_MEMBERS: Final = 100_000
"""Counted jobs of a composition, unless it is configured otherwise."""
RETENTION: Final = 168 * 3600.0
"""Seconds for which a composition can be read once all of it has ended."""
ABANDONED: Final = 24 * 3600.0
"""Seconds after which a composition that was never started, because its maker died, is forgotten with its nodes."""


class Kind(StrEnum):
    """What a composition was made as: it decides how one is called that did not succeed."""

    CHAIN = "chain"
    BATCH = "batch"
    WORKFLOW = "workflow"


class When(StrEnum):
    """On which endings a job may run."""

    SUCCESS = "success"
    """All that it was told of succeeded."""
    FAILURE = "failure"
    """Some did not, and the composition was not cancelled."""
    ANY = "any"
    """In any case: the only ones that still start when the composition was cancelled."""


class CompositionState(StrEnum):
    """Where a composition is."""

    ACTIVE = "active"
    CANCELLING = "cancelling"
    """It was cancelled, and some of its jobs have not ended yet."""
    COMPLETED = "completed"
    COMPLETED_WITH_FAILURES = "completed_with_failures"
    """A batch whose members have all ended, not all of them well."""
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether it is over: such a state never changes."""
        return self not in {CompositionState.ACTIVE, CompositionState.CANCELLING}


class JobNode(Discreet, frozen=True, kw_only=True, gc=False):
    """A job of a composition, before it is released. Its push's id is ``job_id(composition, number)``."""

    number: int
    push: Push
    """What is pushed when it is released; its delay and its expiry count from then on. Its ``durability`` is 1: who
    makes compositions refuses others, since a job is as durable as the settlement that releases it."""
    needs: int = 1
    when: When = When.SUCCESS
    next: int | None = None
    takes: bool = False
    """Its lease has what the job that told it returned (``Lease.input``). Such a job needs exactly one."""
    gives: bool = False
    """What it returns is wanted by the next (``Lease.gives``)."""

    @property
    def counted(self) -> bool:
        """Whether it is one of those that the composition was made for."""
        return self.number >= 0


class Gate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node without a job: waits for many, and tells many."""

    number: int
    needs: int = 1
    next: tuple[int, ...] = ()


Node = JobNode | Gate


class NewComposition(msgspec.Struct, frozen=True, kw_only=True):
    """A composition that is about to be stored."""

    id: str
    home: str
    """The queue whose part of the store keeps it: that of its first job."""
    kind: Kind
    name: str = ""
    """What its maker calls it; shown in listings."""
    retention: float = RETENTION
    """Seconds for which it can be read once all of it has ended."""


class CompositionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a composition has come: numbers of counted jobs, and no payloads."""

    id: str
    home: str
    kind: Kind
    name: str
    state: CompositionState
    total: int
    succeeded: int
    failed: int
    cancelled: int
    created_at: float
    """Seconds since 1970 by the store's clock."""
    finished_at: float | None
    """When the last counted job ended; None while there is one that has not."""

    @property
    def pending(self) -> int:
        """Counted jobs that have not ended."""
        return self.total - self.succeeded - self.failed - self.cancelled

    @property
    def progress(self) -> int:
        """Per cent of the counted jobs that have ended, rounded down: 100 only when all have."""
        return 100 * (self.total - self.pending) // self.total if self.total else 100

    @property
    def finished(self) -> bool:
        """Whether all counted jobs have ended."""
        return self.state.terminal


class CompositionPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a listing."""

    compositions: Sequence[CompositionStatus]
    cursor: str | None
    """Pass it to read on; None at the end. Those that begin or end meanwhile may be missed or seen twice."""


class Compositions(Protocol):
    """Keeps and advances compositions. For drivers whose ``capabilities.compositions`` is True.

    Storing one takes several calls, so that none of them is long: ``prepare``, ``add`` as often as it takes, ``start``.
    Nothing of it runs, or is listed, before it has started; one whose maker died before that is forgotten after
    ``ABANDONED``.
    """

    async def prepare(self, composition: NewComposition) -> bool:
        """Begin to store a composition; False, and nothing changes, when there is one with this id in this home."""
        ...

    async def add(self, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        """Store nodes of a composition that has not started. Parts of 500 nodes or 1 MiB are made of them, in order.

        Raises ``NotSupported`` before anything is sent when a job's queue is one whose settlements could not be one
        step with the others' (``Capabilities.spanning``), and ``StoreError`` when it could not be done: then the
        composition is given up by its maker, and never starts.
        """
        ...

    async def start(self, home: str, composition_id: str) -> None:
        """Let it begin: from here on it can be read, and its first jobs are released. Total: its counted jobs."""
        ...

    async def grow(self, lease: Lease, nodes: Sequence[Node]) -> bool:
        """Add counted jobs to a batch from inside one of its members, whose lease must be current (P3).

        Each tells the node that the member itself tells, which waits for so many more. They may have any numbers from
        0 when they are passed: the store numbers them, and names their jobs, from ``total`` on. At most 500 at a time.
        False, and nothing is added, when the lease is stale, the composition is cancelled, or what the member tells is
        no gate.
        """
        ...

    async def composition(self, home: str, composition_id: str) -> CompositionStatus | None:
        """Return how far it has come; None for one that is unknown here, has not started or is forgotten."""
        ...

    async def compositions(self, home: str, *, limit: int = 100, cursor: str | None = None) -> CompositionPage:
        """Return those whose home this is, in no particular order, a page at a time."""
        ...

    async def cancel_composition(self, home: str, composition_id: str) -> bool:
        """Cancel what has not ended: False for one that is unknown or over, True also when it is cancelling already.

        From the first step on nothing of it is leased but to be ended, and nothing is released but callbacks that run
        in any case. In steps of at most 100 counted jobs, what waits is then removed, and it is requested of what
        runs. A caller that dies in between leaves a composition whose jobs end cancelled when they are claimed, or
        told.
        """
        ...

    async def prune_compositions(self, home: str, *, older_than: float) -> int:
        """Forget compositions that were over at least so many seconds ago; return their exact number.

        In steps of at most 100 (P6). One with a callback that has not ended is not over yet.
        """
        ...


def job_id(composition_id: str, number: int) -> str:
    """Return the id of a composition's job."""
    return f"{composition_id}.{number}" if number >= 0 else f"{composition_id}.c{-number}"


def ended_as(kind: Kind, *, failed: int, cancelled: int, cancelling: bool) -> CompositionState:
    """Return what a composition is whose counted jobs have all ended.

    One that was cancelled is cancelled, whatever its last jobs came to. A batch goes on whatever happens to a member; a
    chain or a workflow in which a job failed has failed, and one in which the others were cancelled is cancelled.
    """
    if cancelling:
        return CompositionState.CANCELLED
    if failed + cancelled == 0:
        return CompositionState.COMPLETED
    if kind is Kind.BATCH:
        return CompositionState.COMPLETED_WITH_FAILURES
    return CompositionState.FAILED if failed else CompositionState.CANCELLED

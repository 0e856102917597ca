"""The contract between tenure and a store: what a driver takes, gives back and promises.

A driver implements ``Queue``. Reading and operating are separate protocols (``tenure.operating``), which a driver may
implement besides. What it cannot do is a ``False`` in its ``capabilities``.

Times are durations in seconds: the store's own clock makes them times. Calls are batches, so that a worker claims
fifty jobs and settles fifty others in one round trip each. The promises P1 to P13 are those of ``docs/promises.md``;
``tenure.testing.contract`` tests every driver against them.

Deliberately absent: connections, transactions and clients of a store, job functions, arguments and their codec.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, Protocol

import msgspec

from tenure.sensitive import Discreet


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver can do. Asking for what is False raises ``NotSupported`` before anything is sent."""

    driver: str
    shared: bool
    """Other processes see the same jobs."""
    priorities: bool = True
    cancel_running: bool = True
    results: bool = False
    unique: bool = False
    compositions: bool = False
    spanning: bool = False
    """The jobs of a composition may be in several queues: settling them is one step all the same."""
    transactions: bool = False
    schedules: bool = False
    durability: frozenset[int] = frozenset({1})
    """The durability classes that a push may ask for: 1 the server has it, 2 on disk, 3 on replicas."""


class Push(Discreet, frozen=True, kw_only=True, gc=False):
    """One job to be stored. Everything is validated before it gets here; drivers do not look into the envelope."""

    queue: str
    id: str
    envelope: bytes
    delay: float = 0.0
    """Seconds before it may be claimed: a floor."""
    priority: int = 0
    """-100 to 100, higher first."""
    crash_limit: int | None = None
    """Leases that may end in a crash; None leaves it to the claiming worker."""
    expires_in: float | None = None
    """Seconds from now (delay included in them) after which the job is leased doomed."""
    durability: int = 1
    """The class to wait for, one of the driver's capabilities."""
    keep: float = 0.0
    """Seconds for which the job's end is kept, result included; 0: nothing of it is (``tenure.results``)."""
    unique: str = ""
    """At most one job of its queue with this text waits or runs: 32 hexadecimal digits; '': it is like others."""


PushOutcome = Literal["stored", "held", "refused", "unknown"]


class Pushed(msgspec.Struct, frozen=True, gc=False):
    """What became of one pushed job.

    ``stored``: a new job. ``held``: a job with this id exists, in whatever state; nothing changed. (A job of which
    only the end is kept does not exist any more: the new one takes the place of what was kept.) Also ``held``: a job
    with the same ``Push.unique`` waits or runs; then ``id`` is that job's. ``refused``: not
    stored, certainly. ``unknown``: no answer came. The last two carry the error; the first two do when the durability
    that was asked for was not reached (``DurabilityNotReached``).
    """

    id: str
    outcome: PushOutcome
    error: Exception | None = None


class Doom(StrEnum):
    """Why a lease is doomed: the worker ends the job without running it (P4). The first that applies is told."""

    CANCELLED = "cancelled"
    """Its holder died after somebody asked for it to be cancelled: releasing it removes it."""
    CRASHED = "crashed"
    EXPIRED = "expired"
    DELIVERIES = "deliveries"


MAX_DELIVERIES = 1000
"""A job delivered more often than this is doomed whatever its other limits (P4)."""

DEFAULT_CRASH_LIMIT = 3


class Lease(Discreet, frozen=True, kw_only=True, gc=False):
    """One delivery of one job. Settling and renewing act only while its token is the job's current one."""

    queue: str
    id: str
    incarnation: int
    token: str
    fence: int
    """Rises with every claim of a job; handlers may pass it to their own stores."""
    deliveries: int
    """Claims of this incarnation so far, this one included; never falls."""
    free: int
    """Those of them that were given back free of charge."""
    crashes: int
    """Those of them that lapsed, or whose process died."""
    length: float
    """Seconds that the lease was given for, and that each renewal gives again."""
    deadline: float
    """This process's monotonic time at which to stop trusting it, counted from before the claim was sent (P8)."""
    envelope: bytes
    doomed: Doom | None = None
    suspect: bool = False
    """One crash short of its limit, with a crash behind it: a process holds at most one such lease (P4)."""
    waited: float | None = None
    """Seconds between when it was ready or due and this claim, by the store's clock; None where the driver does not
    tell."""
    keep: float = 0.0
    """Seconds for which the job's end will be kept; 0: nothing of it will be."""
    composition: str = ""
    """The id of the composition that the job belongs to (``tenure.compositions``); '' if to none."""
    input: bytes | None = None
    """What the job before it in its composition returned, if this one takes it; opaque to the store."""
    gives: bool = False
    """The next job of its composition takes what this one returns: it is to be handed in with the ``Ack``."""

    @property
    def attempt(self) -> int:
        """Deliveries that were not given back free, this one included; starts at 1."""
        return self.deliveries - self.free


class Aside(msgspec.Struct, frozen=True, gc=False):
    """A record that a claim could not read and set aside whole (P11)."""

    queue: str
    id: str


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim brought."""

    leases: Sequence[Lease] = ()
    unreadable: Sequence[Aside] = ()
    next_due: float | None = None
    """Seconds until the next delayed job or held lease of these queues falls due; None if there is none."""


class Failure(Discreet, frozen=True, kw_only=True, gc=False):
    """Why an attempt failed, as data: never a live exception."""

    reason: str
    """One of ``exception timeout crashed expired deliveries unknown-job gave-up arguments result``."""
    type: str = ""
    message: str = ""
    traceback: str = ""


class Ack(Discreet, frozen=True, gc=False):
    """Done: the job leaves the store."""

    lease: Lease
    result: bytes | None = None
    """What the handler returned, opaque to the store, for a lease with ``keep`` or ``gives``; None: it cannot be."""


class Release(msgspec.Struct, frozen=True, gc=False):
    """Again: back to the tail of the ready line, or delayed. If a cancel was requested, the job is removed instead."""

    lease: Lease
    delay: float = 0.0
    free: bool = False
    """The attempt does not count: graceful shutdown, snooze, unknown job."""
    crashed: bool = False
    """The process that held it died: counts as a lapse does."""


class Fail(msgspec.Struct, frozen=True, gc=False):
    """To the failed store, with its reason."""

    lease: Lease
    failure: Failure


class Drop(msgspec.Struct, frozen=True, gc=False):
    """Discarded by its handler: the job leaves the store, and compositions count it as cancelled."""

    lease: Lease


class SetAside(msgspec.Struct, frozen=True, gc=False):
    """To the unreadable store, byte for byte (P11)."""

    lease: Lease
    reason: str


Settlement = Ack | Release | Fail | Drop | SetAside


class Settled(StrEnum):
    """What became of a settlement."""

    DONE = "done"
    REPEATED = "repeated"
    """Done by an earlier sending of this same call, whose answer was lost."""
    CANCELLED = "cancelled"
    """A release that found a cancel request: the job was removed instead."""
    STALE = "stale"
    """The lease was no longer the job's current one: nothing was written."""


class Renewal(StrEnum):
    """What became of a renewal."""

    HELD = "held"
    CANCEL_REQUESTED = "cancel_requested"
    """Held and extended, and somebody asked for the job to be cancelled."""
    LOST = "lost"
    UNKNOWN = "unknown"
    """Its part of the store did not answer, or refused, while others did: ask again."""


class Cancelled(StrEnum):
    """What became of a request to cancel."""

    REMOVED = "removed"
    REQUESTED = "requested"
    """It is running: the worker is told, and a release removes it."""
    NOT_FOUND = "not_found"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of a queue are where."""

    ready: int
    delayed: int
    leased: int
    """Running, lapsed leases included."""
    lapsed: int
    """Leases past their deadline that nobody has reclaimed yet; part of ``leased``."""
    failed: int
    unreadable: int
    oldest_age: float | None
    """Seconds that the oldest ready job has been ready; None if none is."""

    @property
    def size(self) -> int:
        """Work that waits: ready, delayed and lapsed; what a worker holds is not in it."""
        return self.ready + self.delayed + self.lapsed


class JobState(StrEnum):
    """Where a job is."""

    DELAYED = "delayed"
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    """Told, as ``cancelled`` is, only of a job whose end is kept."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """Failed unrun, because its time had passed."""
    GONE = "gone"
    """Ended and not kept, or never pushed."""


class FailedRecord(Discreet, frozen=True, kw_only=True):
    """A job in the failed store."""

    queue: str
    id: str
    incarnation: int
    attempts: int
    failed_at: float
    """Seconds since 1970 by the store's clock."""
    failure: Failure
    envelope: bytes


class Keeper(Protocol):
    """Renews leases from a thread of its own, on a connection of its own; blocking."""

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires (rule 3).

        Raises ``StoreError`` when nothing is known of any of them; trying again is harmless.
        """
        ...

    def close(self) -> None:
        """Close the connection; idempotent, and safe before first use."""
        ...


class Pusher(Protocol):
    """Pushes from a thread without an event loop, on a connection of its own; blocking, safe from many threads."""

    def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store the jobs: see ``Queue.push``."""
        ...

    def close(self) -> None:
        """Close the connection; idempotent, and safe before first use."""
        ...


class Queue(Protocol):
    """A store of jobs.

    Every method may be called from any event loop of the process, and from several; whatever belongs to a loop is made
    on first use in it. Nothing is opened before first use. After ``fork`` a child opens its own. A cancelled caller
    never leaves a call half made: what a cancelled claim brought is given back free of charge.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this driver can do."""
        ...

    async def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store each job once (P1), and answer for each in order.

        Calls of more than 500 jobs or 1 MiB are split, in order; a part that fails is told in its jobs' outcomes, and
        later parts are then not sent (their outcome is ``refused``). Raises ``StoreError`` when nothing was stored and
        no job's outcome is ``unknown``.
        """
        ...

    async def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease: float,
        wait: float,
        crash_limit: int = DEFAULT_CRASH_LIMIT,
        suspects: bool = True,
        holder: str | None = None,
    ) -> Claimed:
        """Lease up to ``limit`` jobs for ``lease`` seconds, from the first queue first.

        Before it looks, the call promotes due jobs and recovers lapsed leases of each queue, at most 100 of either
        (P6). With ``wait=0`` it returns at once; otherwise it waits up to that long, and returns as soon as there is
        something. It returns nothing only when compositions have nothing left to be done there: a worker that is to
        stop when all is empty takes it at its word. ``crash_limit`` is for jobs that have none; ``suspects=False``
        leaves suspects to others (P4), and no call brings more than one. ``holder`` names the claiming process: the
        leases' tokens begin with it (``tenure.naming.new_token``), so that somebody else can find what it holds
        (``tenure.operating.Holdings``).
        Raises ``InvalidOption`` before anything is sent.
        """
        ...

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        """End each lease, and answer for each in order. A lease named twice is settled once; the second is stale."""
        ...

    async def cancel(self, queue: str, ids: Sequence[str]) -> Sequence[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order. Failed jobs are not found."""
        ...

    async def clear(self, queue: str) -> int:
        """Remove all ready and delayed jobs, and return their exact number. What is leased stays.

        One step whatever their number, so no end of them is kept.
        """
        ...

    async def counts(self, queue: str) -> Counts:
        """Count the queue's jobs by state, at a cost that does not grow with them."""
        ...

    def keeper(self) -> Keeper:
        """Return a new keeper."""
        ...

    def pusher(self) -> Pusher:
        """Return a new blocking pusher."""
        ...

    async def aclose(self) -> None:
        """Close what the driver opened itself; idempotent, and safe before first use."""
        ...


def feature(queue: Any, protocol: type) -> bool:
    """Tell whether a driver implements a reading or operating protocol, by its methods."""
    return all(callable(getattr(queue, name, None)) for name in vars(protocol) if not name.startswith("_"))

"""What is recorded of a run: calls, what the store did, what handlers did, faults, and what is there at rest.

Times are microseconds since 1970: a client's by the host's clock, an ``Audit``'s by the store's. Only the order of the
audit decides anything between jobs; other times are compared within one clock.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

Operation = Literal["push", "claim", "renew", "settle", "cancel", "clear", "retry", "forget", "start", "halt"]
"""``start`` lets a composition begin, ``halt`` cancels one: their only subject is the composition in its home."""
Phase = Literal["invoke", "ok", "fail", "info"]
"""Before it is sent; it happened; it certainly did not; nobody knows (no answer came, or the caller was cancelled)."""
Transition = Literal[
    "push", "grant", "renew", "ack", "drop", "fail", "release", "aside", "lapse", "promote", "request", "cancel",
    "clear", "retry", "forget",
]  # fmt: skip


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """One job of a call."""

    queue: str
    id: str
    token: str = ""
    verb: str = ""
    """What a settlement asked for."""
    outcome: str = ""
    """What the store answered for this job."""
    unique: str = ""
    """At most one job of its queue with this text waits or runs."""
    holder: str = ""
    """Of a push that was held by another job with the same text: that job's id."""


class Call(msgspec.Struct, frozen=True, omit_defaults=True, tag="call"):
    """One line of a client's log: a call is ``invoke`` first, then one of the others, unless its process died."""

    process: str
    """One life of one process."""
    number: int
    """Tells the calls of a process apart; the lines of one call have the same."""
    operation: Operation
    phase: Phase
    at: int
    subjects: tuple[Subject, ...] = ()
    error: str = ""


class Audit(msgspec.Struct, frozen=True, omit_defaults=True, tag="audit"):
    """One transition of one job, in the store's own order, written in the step that made it.

    ``request`` is a cancel that was asked for; ``cancel`` one that removed the job, ``clear`` the same for all that
    wait (then ``id`` is ''). ``lapse`` takes a lease whose deadline has passed; a store may leave it out, and grant
    again.
    """

    number: int
    at: int
    what: Transition
    queue: str
    id: str = ""
    incarnation: int = 0
    """The one that is left; that of the new job for ``push`` and ``retry``."""
    token: str = ""
    """The lease that begins, is extended, or ends."""
    named: bool = True
    """The call that did it named this very token."""
    fence: int | None = None
    deliveries: int | None = None
    free: int | None = None
    crashes: int | None = None
    until: int | None = None
    """Of a lease its deadline, of a job that waits its due time; None: it may be claimed at once."""


class Effect(msgspec.Struct, frozen=True, omit_defaults=True, tag="effect"):
    """A handler began or ended. Those of one job may overlap: leases may not."""

    process: str
    at: int
    what: Literal["start", "end"]
    queue: str
    id: str
    fence: int
    attempt: int


class Fault(msgspec.Struct, frozen=True, omit_defaults=True, tag="fault"):
    """Something that was done to the run."""

    name: str
    began: int
    ended: int
    proof: str = ""
    """What shows that it took effect; '' when nothing does."""
    overlap: int | None = None
    """Calls that it met, where the times cannot tell (a cut reply meets one)."""
    forgets: bool = False
    """The store may have forgotten what it answered then, as on a failover: nobody knows what became of it."""


class Worker(msgspec.Struct, frozen=True, omit_defaults=True, tag="worker"):
    """A worker that was to make progress from one time to another."""

    process: str
    since: int
    until: int


class Flow(msgspec.Struct, frozen=True, omit_defaults=True, tag="flow"):
    """A composition, as its maker stored it: written before it is let begin."""

    composition: str
    queue: str
    after: dict[str, tuple[str, ...]]
    """The jobs whose ends each job waits for, by ids; gates are left out, what is behind them stands in their place."""
    when: dict[str, str] = {}
    """On which of their ends a job runs: ``success`` (all; without an entry, too), ``failure`` (not all), ``any``."""
    callbacks: tuple[str, ...] = ()
    """The jobs among them that are not counted."""

    @property
    def jobs(self) -> set[str]:
        """The ids of all its jobs."""
        return set(self.after).union(*self.after.values())


class Tally(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the store says of a composition."""

    total: int
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    over: bool = True
    """All counted jobs have ended."""


class Dump(msgspec.Struct, frozen=True, omit_defaults=True, tag="dump"):
    """One queue at rest, after the faults and the drain."""

    queue: str
    records: dict[str, str]
    """The state of each job: ``ready delayed leased failed unreadable``."""
    counts: dict[str, int] = {}
    """What the store says how many there are of each."""
    indexes: dict[str, list[str]] = {}
    """The members of each index, as job ids."""
    needed: dict[str, list[str]] = {}
    """The indexes that jobs of each state are in, exactly once, and in no others."""
    slots: list[str] = []
    """What is still held: unique texts, places under a limit."""
    compositions: dict[str, Tally] | None = None
    """Those that have this queue as their home, by their ids; None when nobody looked."""
    leaked: list[str] = []
    """Keys, rows, connections or tasks that nobody needs any more."""
    drained: bool = True
    """Nothing was left to do."""


Event = Call | Audit | Effect | Fault | Worker | Flow | Dump

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encoded(event: Event) -> bytes:
    """Return an event as one line, its end included."""
    return msgspec.json.encode(event) + b"\n"


def read(path: Path) -> Iterator[Event]:
    """Yield the events of a file of JSON lines; a last line that was cut off is left out."""
    with path.open("rb") as file:
        yield from parsed(file)


def parsed(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of lines; one without its end was being written when its process died."""
    for line in lines:
        if line.endswith(b"\n"):
            yield _decoder.decode(line)

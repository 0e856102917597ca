"""Compositions and their nodes, as the databases keep them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from tenure.compositions import (
    ABANDONED,
    CompositionState,
    CompositionStatus,
    Gate,
    JobNode,
    Kind,
    NewComposition,
    Node,
    When,
    ended_as,
    job_id,
)
from tenure.drivers.sql.units import SECOND, micros, nearest_micros
from tenure.queue import Ack, Fail, Release, SetAside, Settled, Settlement

TAKES: Final = 1
GIVES: Final = 2
ALWAYS: Final = 4
"""What ``flags`` are made of: ``JobNode.takes``, ``JobNode.gives``, and that it runs in any case."""


class Outcome(StrEnum):
    """How a node ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class End(NamedTuple):
    """The end of a job that belongs to a composition."""

    composition: int
    node: int
    tells: int | None
    outcome: Outcome
    result: bytes | None = None
    """What it returned, if whom it tells takes that."""

    def __repr__(self) -> str:
        return f"End({self.composition}, {self.node}, {self.outcome})"  # never its result (P12)


class Member(NamedTuple):
    """What a job's row says of the composition that it belongs to."""

    composition: int
    node: int
    tells: int | None
    flags: int

    def end(self, outcome: Outcome, result: bytes | None = None) -> End:
        """Return its end."""
        return End(self.composition, self.node, self.tells, outcome, result if self.flags & GIVES else None)


def member(composition: int | None, node: int, tells: int | None, flags: int) -> Member | None:
    """Return what a row says; None of a job that belongs to no composition."""
    return None if composition is None else Member(composition, node, tells, flags)


def cleared(rows: Iterable[Sequence[Any]]) -> list[End]:
    """Return the ends of jobs that were cleared, as far as they belonged to something."""
    return [what.end(Outcome.CANCELLED) for row in rows if (what := member(*row)) is not None]


def ended_by(what: Member, settlement: Settlement, settled: Settled) -> list[End]:
    """Return the end of a member by a settlement, if that ended it."""
    if settled is Settled.STALE:
        return []
    match settlement:
        case Ack():
            return [what.end(Outcome.SUCCEEDED, settlement.result)]
        case Fail() | SetAside():
            return [what.end(Outcome.FAILED)]
        case Release() if settled is not Settled.CANCELLED:
            return []
        case _:
            return [what.end(Outcome.CANCELLED)]


@dataclass(slots=True)
class Composition:
    """The row of a composition, in the order of its columns."""

    number: int
    home: int
    id: str
    kind: str
    name: bytes
    retention: int
    queues: bytes
    created: int
    started: int = 0
    cancelling: int = 0
    total: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    unended: int = 0
    due: int = 0
    turn: int = 0
    finished: int | None = None
    over_at: int | None = None
    todo: int | None = None

    @property
    def row(self) -> dict[str, Any]:
        """Its columns, in their order."""
        return dict(zip(COMPOSITION_COLUMNS, _columns(self), strict=True))

    @property
    def pending(self) -> int:
        """Counted jobs that have not ended."""
        return self.total - self.succeeded - self.failed - self.cancelled

    @property
    def names(self) -> list[str]:
        """The names of its queues, the home's first."""
        return msgspec.json.decode(self.queues, type=list[str])

    def spread(self, names: Sequence[str]) -> None:
        """Remember that its jobs are for these queues, too."""
        self.queues = msgspec.json.encode(list(dict.fromkeys([*self.names, *names])))

    def forgotten(self, now: int) -> bool:
        """Tell whether the time is over for which its end is kept."""
        return self.over_at is not None and self.over_at + self.retention <= now

    def count(self, node: int, outcome: Outcome) -> None:
        """Count the end of a node."""
        self.unended -= 1
        if node >= 0:
            self.succeeded += outcome is Outcome.SUCCEEDED
            self.failed += outcome is Outcome.FAILED
            self.cancelled += outcome is Outcome.CANCELLED

    def date(self, now: int) -> None:
        """Note what has come to its end, and when there is something to be done again."""
        if self.started and not self.pending and self.finished is None:
            self.finished = now
        if self.started and not self.unended and self.over_at is None:
            self.over_at = now
        if self.due:
            self.todo = now
        elif not self.started:
            self.todo = self.created + micros(ABANDONED)
        else:
            self.todo = None if self.over_at is None else self.over_at + self.retention

    def status(self) -> CompositionStatus:
        """Return how far it has come."""
        kind, cancelling = Kind(self.kind), bool(self.cancelling)
        state = CompositionState.CANCELLING if cancelling else CompositionState.ACTIVE
        if self.finished is not None:
            state = ended_as(kind, failed=self.failed, cancelled=self.cancelled, cancelling=cancelling)
        return CompositionStatus(
            id=self.id,
            home=self.names[0],
            kind=kind,
            name=self.name.decode(errors="replace"),
            state=state,
            total=self.total,
            succeeded=self.succeeded,
            failed=self.failed,
            cancelled=self.cancelled,
            created_at=self.created / SECOND,
            finished_at=None if self.finished is None else self.finished / SECOND,
        )


COMPOSITION_COLUMNS: Final = tuple(column.name for column in fields(Composition))
_columns: Final = attrgetter(*COMPOSITION_COLUMNS)


def new_row(composition: NewComposition, number: int, home: int, now: int) -> Composition:
    """Return the row of a composition that is about to be stored."""
    row = Composition(
        number=number,
        home=home,
        id=composition.id,
        kind=composition.kind.value,
        name=composition.name.encode(errors="replace"),
        retention=micros(composition.retention),
        queues=msgspec.json.encode([composition.home]),
        created=now,
    )
    row.date(now)
    return row


@dataclass(slots=True)
class Waiting:
    """The row of a node, but for what is only needed when it becomes a job."""

    node: int
    needs: int
    bad: int
    turn: int | None
    runs: str | None
    tells: tuple[int, ...]
    flags: int
    queue: str | None
    delay: int | None
    priority: int | None
    unique: str | None
    id: str | None
    input: bytes | None = field(default=None, repr=False)
    """What it was given in this call, if it takes that."""

    def may_run(self, *, cancelling: bool) -> bool:
        """Tell whether a job that waits for nothing any more may run."""
        if cancelling:
            return self.runs == When.ANY and self.node < 0
        return self.runs == When.ANY or (self.runs == When.FAILURE) == bool(self.bad)


def waiting(row: Sequence[Any]) -> Waiting:
    """Return the node that a row is."""
    node, needs, bad, turn, runs, tells, *more = row
    return Waiting(node, needs, bad, turn, runs, msgspec.json.decode(tells, type=tuple[int, ...]), *more)


NODE_COLUMNS: Final = (
    *("composition", "node", "needs", "turn", "runs", "tells", "flags", "queue", "id", "delay", "priority"),
    *("crash_limit", "expires_in", "keep", "unique_key", "envelope"),
)


def node_row(composition: Composition, node: Node, *, turn: int | None = None) -> dict[str, Any]:
    """Return the row of a new node; one that has a turn is due."""
    row: dict[str, Any] = dict.fromkeys(NODE_COLUMNS)
    row |= {"composition": composition.number, "node": node.number, "needs": node.needs, "turn": turn}
    if isinstance(node, Gate):
        return row | {"flags": 0, "tells": msgspec.json.encode(node.next)}
    return row | _job_columns(composition, node)


def _job_columns(composition: Composition, node: JobNode) -> dict[str, Any]:
    push = node.push
    return {
        "runs": node.when.value,
        "tells": msgspec.json.encode([] if node.next is None else [node.next]),
        "flags": node.takes * TAKES + node.gives * GIVES + (node.when is When.ANY) * ALWAYS,
        "queue": push.queue,
        "id": job_id(composition.id, node.number),
        "delay": micros(push.delay) if push.delay > 0 else 0,
        "priority": push.priority,
        "crash_limit": push.crash_limit,
        "expires_in": None if push.expires_in is None else micros(push.expires_in),
        "keep": nearest_micros(push.keep),
        "unique_key": push.unique or None,
        "envelope": push.envelope,
    }


def composition_of(member_id: str) -> str:
    """Return the id of the composition that a job of this id belongs to."""
    return member_id.rpartition(".")[0]

"""Storing, reading and cancelling compositions, whatever the database: each function is one step."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from tenure.compositions import START, CompositionPage, CompositionStatus, JobNode, NewComposition, Node, job_id
from tenure.drivers.sql.advancing import Advance, Budget, Nodes
from tenure.drivers.sql.nodes import Composition, End, Member, Outcome, new_row, node_row
from tenure.drivers.sql.transitions import STEP
from tenure.errors import InvalidOption, StoreRefused
from tenure.queue import Lease


class Kept(Nodes, Protocol):
    """What storing, reading and cancelling ask of a database besides."""

    def open(self, names: Iterable[str]) -> None:
        """Make those of the queues that there are none of."""
        ...

    def number_of(self, home: str) -> int | None:
        """Return a queue's number; None when nothing was ever pushed to it."""
        ...

    def new_number(self) -> int:
        """Take a number that was never taken before."""
        ...

    def find(self, home: int, composition_id: str, *, lock: bool) -> Composition | None:
        """Return one composition, locked until the transaction ends if it is to be."""
        ...

    def add(self, composition: Composition) -> bool:
        """Add the row of a composition; False when there is one with its id in its home."""
        ...

    def add_nodes(self, rows: Sequence[dict[str, Any]]) -> int:
        """Add rows of nodes, and return how many are new."""
        ...

    def member(self, lease: Lease) -> Member | None:
        """Lock the job of a lease, and return what it belongs to; None when the lease is not current, or to nothing."""
        ...

    def cancel_jobs(self, composition: Composition, ids: Sequence[str]) -> list[End]:
        """Remove those of a composition's jobs that wait, and request it of those that run; return the ends."""
        ...

    def page(self, home: int, after: str, most: int) -> Iterable[Composition]:
        """Return compositions of a home, by their ids, those behind one."""
        ...

    def over(self, home: int, until: int, most: int) -> Sequence[Composition]:
        """Lock and return compositions that were over by a time."""
        ...


UNKNOWN: Final = "there is no such composition; one that never starts is forgotten in a day"


def prepare(kept: Kept, composition: NewComposition) -> bool:
    """Begin to store a composition."""
    kept.open([composition.home])
    home = kept.number_of(composition.home)
    assert home is not None, "it was opened just now"
    old = kept.find(home, composition.id, lock=True)
    if old is not None:
        if not old.forgotten(kept.now):
            return False
        kept.forget([old.number])
    return kept.add(new_row(composition, kept.new_number(), home, kept.now))


def add(kept: Kept, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
    """Store nodes of a composition that has not started."""
    jobs = [node for node in nodes if isinstance(node, JobNode)]
    kept.open(node.push.queue for node in jobs)
    composition = _found(kept, home, composition_id, lock=True)
    if composition is None:
        raise StoreRefused("UNKNOWN", UNKNOWN)
    if composition.started:
        raise StoreRefused("STARTED", "the composition has started")
    if kept.add_nodes([node_row(composition, node) for node in nodes]) != len(nodes):
        raise StoreRefused("NUMBERS", "two nodes of the composition have the same number")
    composition.spread([node.push.queue for node in jobs])
    composition.total += sum(node.counted for node in jobs)
    composition.unended += len(nodes)
    composition.date(kept.now)
    kept.save(composition)


def start(kept: Kept, home: str, composition_id: str) -> None:
    """Let a composition begin; nothing, when it has begun."""
    composition = _found(kept, home, composition_id, lock=True)
    if composition is None:
        raise StoreRefused("UNKNOWN", UNKNOWN)
    if not composition.started:
        if not list(kept.nodes(composition, [START])):
            raise InvalidOption(f"a composition begins with the gate {START}; nothing was started")
        composition.started = 1
        step = Advance(kept, composition, Budget())
        step.tell(START, Outcome.SUCCEEDED)
        step.run()


def grow(kept: Kept, lease: Lease, nodes: Sequence[Node]) -> bool:
    """Add counted jobs to a batch from inside one of its members."""
    member = kept.member(lease)
    if member is None or member.node < 0 or member.tells is None:
        return False
    jobs = [node for node in nodes if isinstance(node, JobNode)]
    kept.open(node.push.queue for node in jobs)
    for composition in kept.lock([member.composition]):
        step = Advance(kept, composition, Budget())
        if composition.cancelling or not step.need_more(member.tells, len(jobs)):
            return False
        # They wait for nothing: the first has the highest turn.
        grown = {"needs": 0, "next": member.tells, "takes": False, "gives": False}
        rows = [
            node_row(
                composition,
                msgspec.structs.replace(node, number=composition.total + place, **grown),
                turn=composition.turn + len(jobs) - place,
            )
            for place, node in enumerate(jobs)
        ]
        kept.add_nodes(rows)
        composition.spread([node.push.queue for node in jobs])
        composition.turn += len(rows)
        composition.total += len(rows)
        composition.unended += len(rows)
        composition.due += len(rows)
        step.run()
        return True
    return False


def composition(kept: Kept, home: str, composition_id: str) -> CompositionStatus | None:
    """Return how far a composition has come, if it can be read."""
    found = _found(kept, home, composition_id, lock=False)
    return found.status() if found is not None and _readable(found, kept.now) else None


def compositions(kept: Kept, home: str, limit: int, after: str) -> CompositionPage:
    """Return a page of compositions."""
    number = kept.number_of(home)
    rows = [] if number is None else list(kept.page(number, after, limit))
    return CompositionPage(
        compositions=[row.status() for row in rows if _readable(row, kept.now)],
        cursor=rows[-1].id.encode().hex() if len(rows) == limit else None,
    )


def begin_to_cancel(kept: Kept, home: str, composition_id: str) -> int | None:
    """Let nothing of a composition begin any more; return how many counted jobs it has, or None if it has ended."""
    composition = _found(kept, home, composition_id, lock=True)
    if composition is None or not composition.started or composition.finished is not None:
        return None
    if not composition.cancelling:
        composition.cancelling = 1
        kept.save(composition)
    return composition.total


def cancel_some(kept: Kept, home: str, composition_id: str, first: int) -> None:
    """Cancel ``STEP`` counted jobs, from a number on."""
    found = _found(kept, home, composition_id, lock=False)
    if found is None:
        return
    numbers = range(first, min(first + STEP, found.total))
    ends = kept.cancel_jobs(found, [job_id(found.id, number) for number in numbers])
    for composition in kept.lock([found.number]):
        step = Advance(kept, composition, Budget())
        step.tell_of(ends)
        step.cancel(numbers)
        step.run()


def prune(kept: Kept, home: str, until: int) -> tuple[int, int]:
    """Forget compositions that were over by a time, ``STEP`` at most; return how many, and how many could be read."""
    number = kept.number_of(home)
    found = [] if number is None else kept.over(number, until, STEP)
    if found:
        kept.forget([row.number for row in found])
    return len(found), sum(not row.forgotten(kept.now) for row in found)


def _found(kept: Kept, home: str, composition_id: str, *, lock: bool) -> Composition | None:
    number = kept.number_of(home)
    return None if number is None else kept.find(number, composition_id, lock=lock)


def _readable(row: Composition, now: int) -> bool:
    return bool(row.started) and not row.forgotten(now)

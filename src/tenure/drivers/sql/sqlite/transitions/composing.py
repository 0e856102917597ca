"""Storing, reading and cancelling compositions: what it asks of the file, and the steps."""

from collections.abc import Iterable, Sequence
from typing import Any

from tenure.compositions import CompositionPage, CompositionStatus, NewComposition, Node
from tenure.drivers.sql import composing
from tenure.drivers.sql.nodes import Composition, End, Member, Outcome, member
from tenure.drivers.sql.sqlite import compositions as texts
from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.sqlite.schema import DELAYED, LEASED
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.drivers.sql.sqlite.transitions import keeping
from tenure.drivers.sql.sqlite.transitions.advancing import Nodes
from tenure.drivers.sql.sqlite.transitions.locking import WAITING
from tenure.queue import Lease


class Kept(Nodes):
    """Compositions, and what becomes of their jobs."""

    def open(self, names: Iterable[str]) -> None:
        """Make those of the queues that there are none of."""
        for name in names:
            self._transaction.open(name)

    def number_of(self, home: str) -> int | None:
        """Return a queue's number; None when nothing was ever pushed to it."""
        queue = self._transaction.find(home)
        return None if queue is None else queue.number

    def new_number(self) -> int:
        """Take a number that was never taken before."""
        (number,) = self._transaction.numbers(1)
        return number

    def find(self, home: int, composition_id: str, *, lock: bool) -> Composition | None:  # noqa: ARG002 - the file is
        """Return one composition."""
        row = self._transaction.one(texts.FIND, (home, composition_id))
        return None if row is None else Composition(*row)

    def add(self, composition: Composition) -> bool:
        """Add the row of a composition; False when there is one with its id in its home."""
        return bool(self._transaction.change(texts.ADD, composition.row))

    def add_nodes(self, rows: Sequence[dict[str, Any]]) -> int:
        """Add rows of nodes, and return how many are new."""
        return sum(self._transaction.change(texts.ADD_NODE, row) for row in rows)

    def member(self, lease: Lease) -> Member | None:
        """Return what the job of a lease belongs to; None when the lease is not current, or to nothing."""
        queue = self._transaction.find(lease.queue)
        named = queue and (lease.incarnation, queue.number, lease.id, lease.token)
        row = named and self._transaction.one(texts.FIND_MEMBER, named)
        return member(*row) if row else None

    def cancel_jobs(self, composition: Composition, ids: Sequence[str]) -> list[End]:
        """Remove those of a composition's jobs that wait, and request it of those that run; return the ends."""
        named = [(name, job_id) for name in composition.names for job_id in ids]
        return [end for name, job_id in named for end in self._cancelled(composition, name, job_id)]

    def _cancelled(self, composition: Composition, name: str, job_id: str) -> list[End]:
        transaction = self._transaction
        queue = transaction.find(name)
        found = queue and transaction.one(statements.FIND_JOB, (queue.number, job_id))
        if not queue or not found:
            return []
        incarnation, state, shelf, keep, *belongs = found
        what = member(*belongs)
        if what is None or what.composition != composition.number:
            return []
        if state == LEASED:
            transaction.change(statements.REQUEST_CANCEL, (incarnation,))
        if state not in WAITING or shelf != queue.line:  # it runs, or was cleared, and will be swept
            return []
        transaction.change(statements.REMOVE, (incarnation,))
        queue.d_delayed -= state == DELAYED
        queue.d_ready -= state != DELAYED
        if keep:
            keeping.end(transaction, queue, (job_id, incarnation), keep)
        return [what.end(Outcome.CANCELLED)]

    def page(self, home: int, after: str, most: int) -> Iterable[Composition]:
        """Return compositions of a home, by their ids, those behind one."""
        return [Composition(*row) for row in self._transaction.all(texts.PAGE, (home, after, most))]

    def over(self, home: int, until: int, most: int) -> Sequence[Composition]:
        """Return compositions that were over by a time."""
        return [Composition(*row) for row in self._transaction.all(texts.OVER, (home, until, most))]


def prepare(transaction: Transaction, composition: NewComposition) -> bool:
    """Begin to store a composition."""
    return composing.prepare(Kept(transaction), composition)


def add(transaction: Transaction, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
    """Store nodes of it."""
    composing.add(Kept(transaction), home, composition_id, nodes)


def start(transaction: Transaction, home: str, composition_id: str) -> None:
    """Let it begin."""
    composing.start(Kept(transaction), home, composition_id)


def grow(transaction: Transaction, lease: Lease, nodes: Sequence[Node]) -> bool:
    """Add jobs to it from inside one of its members."""
    return composing.grow(Kept(transaction), lease, nodes)


def composition(transaction: Transaction, home: str, composition_id: str) -> CompositionStatus | None:
    """Return how far it has come."""
    return composing.composition(Kept(transaction), home, composition_id)


def compositions(transaction: Transaction, home: str, limit: int, after: str) -> CompositionPage:
    """Return a page of them."""
    return composing.compositions(Kept(transaction), home, limit, after)


def begin_to_cancel(transaction: Transaction, home: str, composition_id: str) -> int | None:
    """Let nothing of it begin any more; return how many counted jobs it has, or None when it has ended."""
    return composing.begin_to_cancel(Kept(transaction), home, composition_id)


def cancel_some(transaction: Transaction, home: str, composition_id: str, first: int) -> None:
    """Cancel ``STEP`` of its counted jobs, from a number on."""
    composing.cancel_some(Kept(transaction), home, composition_id, first)


def prune_compositions(transaction: Transaction, home: str, old: tuple[int, int]) -> tuple[int, int]:
    """Forget compositions that were over by a time, at most ``STEP``; return how many, and how many could be read."""
    return composing.prune(Kept(transaction), home, old[0])

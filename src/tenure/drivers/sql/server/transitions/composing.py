"""Storing, reading and cancelling compositions: what it asks of the database, and the steps."""

from collections.abc import Iterable, Sequence
from typing import Any

from tenure.compositions import CompositionPage, CompositionStatus, NewComposition, Node
from tenure.drivers.sql import composing
from tenure.drivers.sql.nodes import Composition, End, Member, Outcome, member
from tenure.drivers.sql.server import compositions as texts
from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.texts import DELAYED, FAILED, LEASED
from tenure.drivers.sql.server.transaction import Transaction
from tenure.drivers.sql.server.transitions.advancing import Nodes, label
from tenure.drivers.sql.server.transitions.ending import Row, ended, keep
from tenure.drivers.sql.server.transitions.settling import current
from tenure.queue import Lease


class Kept(Nodes):
    """Compositions, and what becomes of their jobs."""

    def open(self, names: Iterable[str]) -> None:
        """Make those of the queues that there are none of."""
        self._transaction.open(names)

    def number_of(self, home: str) -> int | None:
        """Return a queue's number; None when nothing was ever pushed to it."""
        queue = self._transaction.known(home)
        return None if queue is None else queue.number

    def new_number(self) -> int:
        """Take a number that was never taken before."""
        (number,) = self._transaction.numbers(1)
        return number

    def find(self, home: int, composition_id: str, *, lock: bool) -> Composition | None:
        """Return one composition, locked until the transaction ends if it is to be."""
        row = self._transaction.one(texts.FIND_LOCKED if lock else texts.FIND, home=home, id=composition_id)
        return None if row is None else Composition(*row)

    def add(self, composition: Composition) -> bool:
        """Add the row of a composition; False when there is one with its id in its home."""
        return bool(self._transaction.insert(texts.ADD, [composition.row]))

    def add_nodes(self, rows: Sequence[dict[str, Any]]) -> int:
        """Add rows of nodes, and return how many are new."""
        labelled = [{"label": label(row["composition"], row["node"]), **row} for row in rows]
        # Whoever adds nodes has locked their composition: no two do it in different orders.
        return self._transaction.insert(texts.ADD_NODES, labelled) if rows else 0

    def member(self, lease: Lease) -> Member | None:
        """Lock the job of a lease, and return what it belongs to; None when the lease is not current, or to nothing."""
        held = current(self._transaction, [lease])
        found = held.leases.get(held.key(lease))
        return None if found is None else found.member

    def cancel_jobs(self, composition: Composition, ids: Sequence[str]) -> list[End]:
        """Remove those of a composition's jobs that wait, and request it of those that run; return the ends."""
        transaction = self._transaction
        ends: list[End] = []
        removed: list[int] = []
        requested: list[int] = []
        kept: list[Row] = []
        queues = transaction.find(*composition.names)
        for queue in sorted(queues, key=lambda queue: queue.number):
            rows = transaction.all(statements.LOCK_JOBS, queue=queue.number, ids=sorted(ids))
            for job_id, incarnation, state, shelf, keeps, *belongs in rows:
                what = member(*belongs)
                if what is None or what.composition != composition.number or state == FAILED:
                    continue
                if state == LEASED:
                    requested.append(incarnation)
                elif shelf == queue.line:  # what was cleared will be swept
                    removed.append(incarnation)
                    ends.append(what.end(Outcome.CANCELLED))
                    queue.delayed -= state == DELAYED
                    queue.ready -= state != DELAYED
                    kept += [ended(queue, (job_id, incarnation), keeps, transaction.now)] if keeps else []
        transaction.change_all(statements.REMOVE, removed)
        transaction.change_all(statements.REQUEST_CANCELS, requested)
        keep(transaction, queues, kept)
        return ends

    def page(self, home: int, after: str, most: int) -> Iterable[Composition]:
        """Return compositions of a home, by their ids, those behind one."""
        return [Composition(*row) for row in self._transaction.all(texts.PAGE, home=home, after=after, most=most)]

    def over(self, home: int, until: int, most: int) -> Sequence[Composition]:
        """Lock and return compositions that were over by a time."""
        return [Composition(*row) for row in self._transaction.all(texts.OVER, home=home, until=until, most=most)]


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

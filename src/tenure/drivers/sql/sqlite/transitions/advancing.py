"""Advancing compositions: what it asks of the file, and the steps that settling, cancelling and claiming take."""

from collections.abc import Iterable, Sequence

from tenure.drivers.sql import advancing
from tenure.drivers.sql.advancing import Budget
from tenure.drivers.sql.nodes import Composition, End, Waiting, waiting
from tenure.drivers.sql.sqlite import compositions, statements
from tenure.drivers.sql.sqlite.schema import DELAYED, READY
from tenure.drivers.sql.sqlite.transaction import QueueRow, Transaction
from tenure.drivers.sql.sqlite.transitions.locking import holder_of


def advance(transaction: Transaction, ends: Sequence[End], budget: Budget | None = None) -> None:
    """Tell the ends of jobs, and do what follows."""
    if ends:
        advancing.advance(Nodes(transaction), ends, budget or Budget())


def work_off(transaction: Transaction, queues: Iterable[QueueRow], budget: Budget | None = None) -> None:
    """Do what is left to be done with the compositions whose homes these queues are."""
    budget = budget or Budget()
    for queue in queues:
        if queue.first_todo is not None and queue.first_todo <= transaction.now:
            if advancing.work_off(Nodes(transaction), queue.number, budget):
                transaction.unfinished.add(queue.name)
            queue.first_todo = None


class Nodes:
    """The nodes of compositions. Nobody else writes while a transaction does, so nothing needs to be locked."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    @property
    def now(self) -> int:
        """The time, in microseconds since 1970."""
        return self._transaction.now

    def lock(self, numbers: Sequence[int]) -> Iterable[Composition]:
        """Return these compositions, in order."""
        rows = (self._transaction.one(compositions.READ, (number,)) for number in numbers)
        return [Composition(*row) for row in rows if row is not None]

    def to_do(self, home: int, most: int) -> Iterable[Composition]:
        """Return compositions of a home with which something is to be done."""
        return [Composition(*row) for row in self._transaction.all(compositions.TO_DO, (home, self.now, most))]

    def nodes(self, composition: Composition, numbers: Sequence[int]) -> Iterable[Waiting]:
        """Return those of the nodes that have not ended and are no jobs yet."""
        rows = (self._transaction.one(compositions.FIND_NODE, (composition.number, number)) for number in numbers)
        return [waiting(row) for row in rows if row is not None]

    def due(self, composition: Composition, most: int) -> Iterable[Waiting]:
        """Return due nodes, the last that came first."""
        return [waiting(row) for row in self._transaction.all(compositions.DUE, (composition.number, most))]

    def release(self, composition: Composition, nodes: Sequence[Waiting]) -> set[int]:
        """Make jobs of these nodes; return the numbers of those whose id or unique text another job has."""
        transaction = self._transaction
        transaction.change_each(
            compositions.SET_INPUT,
            [(node.input, composition.number, node.node) for node in nodes if node.input is not None],
        )
        numbers = transaction.numbers(len(nodes))
        return {
            node.node
            for node, number in zip(nodes, numbers, strict=True)
            if not self._released(composition, node, number)
        }

    def _released(self, composition: Composition, node: Waiting, number: int) -> bool:
        transaction = self._transaction
        queue = transaction.open(node.queue or "")
        if node.unique:
            holder_of(transaction, queue, node.unique)  # one that was cleared loses it
        delay = node.delay or 0
        place = transaction.now + delay if delay else -(node.priority or 0)
        state = DELAYED if delay else READY
        tells = node.tells[0] if node.tells else None
        if not transaction.change(
            compositions.RELEASE,
            (number, queue.number, queue.line, state, place, self.now, tells, composition.number, node.node),
        ):
            return False
        if queue.first_until is not None:
            transaction.change(statements.DROP_END, (queue.number, node.id))
        queue.d_delayed += bool(delay)
        queue.d_ready += not delay
        transaction.woken.add(queue.name)
        return True

    def change(self, composition: Composition, nodes: Sequence[Waiting]) -> None:
        """Write what these nodes need and have been told, and their turn."""
        number = composition.number
        self._transaction.change_each(
            compositions.CHANGE, [(node.needs, node.bad, node.turn, number, node.node) for node in nodes]
        )
        self._transaction.change_each(
            compositions.SET_INPUT, [(node.input, number, node.node) for node in nodes if node.input is not None]
        )

    def remove(self, composition: Composition, numbers: Sequence[int]) -> None:
        """Remove the rows of nodes that have ended, or are jobs now."""
        self._transaction.change_each(compositions.REMOVE, [(composition.number, number) for number in numbers])

    def save(self, composition: Composition) -> None:
        """Write a composition's row, and see to it that what is left of it will be done."""
        self._transaction.change(compositions.SAVE, composition.row)
        if composition.due:
            home = composition.names[0]
            self._transaction.unfinished.add(home)
            self._transaction.woken.add(home)

    def forget_nodes(self, composition: Composition, most: int) -> int:
        """Remove some nodes, whatever they wait for, and return how many there were."""
        return self._transaction.change(compositions.FORGET_NODES, (composition.number, most))

    def forget(self, numbers: Sequence[int]) -> None:
        """Remove compositions."""
        self._transaction.change_each(compositions.FORGET, [(number,) for number in numbers])

"""Advancing compositions: what it asks of the database, and the steps that settling, cancelling and claiming take.

Jobs are locked before compositions, and compositions in the order of their numbers; whoever has locked a composition
locks no job that is there, so nobody waits in a circle.
"""

from collections.abc import Iterable, Sequence

import msgspec

from tenure.drivers.sql import advancing
from tenure.drivers.sql.advancing import Budget
from tenure.drivers.sql.nodes import Composition, End, Waiting, waiting
from tenure.drivers.sql.server import compositions, statements
from tenure.drivers.sql.server.texts import DELAYED, READY
from tenure.drivers.sql.server.transaction import QueueRow, Transaction
from tenure.drivers.sql.server.transitions.locking import unlock_cleared


def advance(transaction: Transaction, ends: Sequence[End], budget: Budget | None = None) -> None:
    """Tell the ends of jobs, and do what follows."""
    if ends:
        advancing.advance(Nodes(transaction), ends, budget or Budget())


def work_off(transaction: Transaction, queues: Iterable[QueueRow], budget: Budget | None = None) -> None:
    """Do what is left to be done with the compositions whose homes these queues are."""
    budget = budget or Budget()
    for queue in list(queues):
        if queue.first_todo is not None and queue.first_todo <= transaction.now:
            if advancing.work_off(Nodes(transaction), queue.number, budget):
                transaction.unfinished.add(queue.name)
            queue.first_todo = None


class Nodes:
    """The nodes of compositions."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    @property
    def now(self) -> int:
        """The time, in microseconds since 1970."""
        return self._transaction.now

    def lock(self, numbers: Sequence[int]) -> Iterable[Composition]:
        """Return these compositions, in order, each locked until the transaction ends."""
        return [Composition(*row) for row in self._transaction.all(compositions.LOCK, numbers=list(numbers))]

    def to_do(self, home: int, most: int) -> Iterable[Composition]:
        """Lock and return compositions of a home with which something is to be done, that nobody else has locked."""
        rows = self._transaction.all(compositions.TO_DO, home=home, now=self.now, most=most)
        return [Composition(*row) for row in rows]

    def nodes(self, composition: Composition, numbers: Sequence[int]) -> Iterable[Waiting]:
        """Return those of the nodes that have not ended and are no jobs yet."""
        find = compositions.FIND_NODES
        rows = self._transaction.all(find, labels=[label(composition.number, number) for number in numbers])
        return [waiting(row) for row in rows]

    def due(self, composition: Composition, most: int) -> Iterable[Waiting]:
        """Return due nodes, the last that came first."""
        rows = self._transaction.all(compositions.DUE, composition=composition.number, most=most)
        return [waiting(row) for row in rows]

    def release(self, composition: Composition, nodes: Sequence[Waiting]) -> set[int]:
        """Make jobs of these nodes; return the numbers of those whose id or unique text another job has."""
        transaction = self._transaction
        self._give(composition, nodes)
        queues = {queue.name: queue for queue in transaction.find(*(node.queue or "" for node in nodes))}
        for queue in queues.values():
            unlock_cleared(transaction, queue, [node.unique for node in _of(queue, nodes) if node.unique])
        numbers = dict(zip(transaction.numbers(len(nodes)), nodes, strict=True))
        given = [
            {"g_label": label(composition.number, node.node), **self._given(queues[node.queue or ""], node, number)}
            for number, node in numbers.items()
        ]
        changed = transaction.change(
            compositions.RELEASE,
            now=self.now,
            given=msgspec.json.encode(given).decode(),
        )
        stored = set(numbers)
        if changed != len(nodes):
            stored = {number for (number,) in transaction.all(statements.FIND_MINE, incarnations=list(numbers))}
        released = [node for number, node in numbers.items() if number in stored]
        for queue in queues.values():
            self._count(queue, _of(queue, released))
        return {node.node for number, node in numbers.items() if number not in stored}

    def _given(self, queue: QueueRow, node: Waiting, number: int) -> dict[str, int | None]:
        return {
            "g_incarnation": number,
            "g_queue": queue.number,
            "g_shelf": queue.line,
            "g_state": DELAYED if node.delay else READY,
            "g_place": self.now + node.delay if node.delay else -(node.priority or 0),
            "g_tells": node.tells[0] if node.tells else None,
        }

    def _count(self, queue: QueueRow, released: Sequence[Waiting]) -> None:
        if not released:
            return
        transaction = self._transaction
        delayed = sum(bool(node.delay) for node in released)
        queue.delayed += delayed
        queue.ready += len(released) - delayed
        transaction.woken.add(queue.name)
        if queue.first_until is not None:
            transaction.change(statements.DROP_ENDS, queue=queue.number, ids=[node.id for node in released])

    def _give(self, composition: Composition, nodes: Sequence[Waiting]) -> None:
        """Write what nodes are given."""
        for node in nodes:
            if node.input is not None:
                named = label(composition.number, node.node)
                self._transaction.change(compositions.SET_INPUT, label=named, input=node.input)

    def change(self, composition: Composition, nodes: Sequence[Waiting]) -> None:
        """Write what these nodes need and have been told, and their turn."""
        given = [
            {
                "g_label": label(composition.number, node.node),
                "g_needs": node.needs,
                "g_bad": node.bad,
                "g_turn": node.turn,
            }
            for node in nodes
        ]
        self._transaction.change(compositions.CHANGE, given=msgspec.json.encode(given).decode())
        self._give(composition, nodes)

    def remove(self, composition: Composition, numbers: Sequence[int]) -> None:
        """Remove the rows of nodes that have ended, or are jobs now."""
        labels = [label(composition.number, number) for number in numbers]
        self._transaction.change(compositions.REMOVE, labels=labels)

    def save(self, composition: Composition) -> None:
        """Write a composition's row, and see to it that what is left of it will be done."""
        self._transaction.change(compositions.SAVE, **composition.row)
        if composition.due:
            home = composition.names[0]
            self._transaction.unfinished.add(home)
            self._transaction.woken.add(home)

    def forget_nodes(self, composition: Composition, most: int) -> int:
        """Remove some nodes, whatever they wait for, and return how many there were."""
        found = self._transaction.all(compositions.FORGETTABLE, composition=composition.number, most=most)
        if found:
            self.remove(composition, [node for (node,) in found])
        return len(found)

    def forget(self, numbers: Sequence[int]) -> None:
        """Remove compositions."""
        self._transaction.change(compositions.FORGET, numbers=list(numbers))


def label(composition: int, node: int) -> str:
    """Return what names a node in its table."""
    return f"{composition}.{node}"


def _of(queue: QueueRow, nodes: Sequence[Waiting]) -> list[Waiting]:
    return [node for node in nodes if node.queue == queue.name]

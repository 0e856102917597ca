"""Advancing compositions, whatever the database: which nodes are opened, ended, or made jobs of, and what is told whom.

All of it happens while the composition's row is locked, so that nobody else changes its nodes. A node that waits for
nothing any more is *due*; due nodes are worked off like a stack, so that the jobs behind the first of many gates come
before the other gates are opened. What one call does not get done stays due in the database (P6).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from tenure.compositions import MOST_NEXT, MOST_RELEASED
from tenure.drivers.sql.nodes import TAKES, Composition, End, Outcome, Waiting
from tenure.drivers.sql.transitions import STEP

MOST_TOLD: Final = 10 * MOST_NEXT
"""How many nodes the gates tell that one call opens."""
MOST_AT_ONCE: Final = 10
"""How many compositions one call looks after that nobody settled anything of."""


class Nodes(Protocol):
    """What advancing asks of a database, inside one transaction."""

    @property
    def now(self) -> int:
        """The time, in microseconds since 1970."""
        ...

    def lock(self, numbers: Sequence[int]) -> Iterable[Composition]:
        """Return these compositions, in order, each locked until the transaction ends."""
        ...

    def to_do(self, home: int, most: int) -> Iterable[Composition]:
        """Lock and return compositions of a home with which something is to be done, that nobody else has locked."""
        ...

    def nodes(self, composition: Composition, numbers: Sequence[int]) -> Iterable[Waiting]:
        """Return those of the nodes that have not ended and are no jobs yet."""
        ...

    def due(self, composition: Composition, most: int) -> Iterable[Waiting]:
        """Return due nodes, the last that came first."""
        ...

    def release(self, composition: Composition, nodes: Sequence[Waiting]) -> set[int]:
        """Make jobs of these nodes; return the numbers of those whose id or unique text another job has."""
        ...

    def change(self, composition: Composition, nodes: Sequence[Waiting]) -> None:
        """Write what these nodes need and have been told, and their turn."""
        ...

    def remove(self, composition: Composition, numbers: Sequence[int]) -> None:
        """Remove the rows of nodes that have ended, or are jobs now."""
        ...

    def save(self, composition: Composition) -> None:
        """Write a composition's row, and see to it that what is left of it will be done."""
        ...

    def forget_nodes(self, composition: Composition, most: int) -> int:
        """Remove some nodes, whatever they wait for, and return how many there were."""
        ...

    def forget(self, numbers: Sequence[int]) -> None:
        """Remove compositions."""
        ...


@dataclass(slots=True)
class Budget:
    """What one call may still do."""

    jobs: int = MOST_RELEASED
    told: int = MOST_TOLD

    def take(self, node: Waiting) -> bool:
        """Take what it costs to work off a due node; False when that is not there."""
        if node.runs is None:
            self.told -= len(node.tells) + 1
            return self.told >= 0
        self.jobs -= 1
        return self.jobs >= 0


@dataclass(slots=True)
class Told:
    """What a node is told in one call."""

    times: int = 0
    bad: bool = False
    result: bytes | None = None


def advance(nodes: Nodes, ends: Sequence[End], budget: Budget) -> None:
    """Tell the ends of jobs, and do what follows."""
    by_composition: dict[int, list[End]] = {}
    for end in ends:
        by_composition.setdefault(end.composition, []).append(end)
    if by_composition:
        for composition in nodes.lock(sorted(by_composition)):
            step = Advance(nodes, composition, budget)
            step.tell_of(by_composition[composition.number])
            step.run()


def work_off(nodes: Nodes, home: int, budget: Budget) -> bool:
    """Do some of what is left to be done with the compositions of a home: work off nodes, and forget what is over.

    Returns whether there may be compositions that it did not come to.
    """
    over = []
    found = list(nodes.to_do(home, MOST_AT_ONCE))
    for composition in found:
        if composition.due and budget.jobs <= 0:
            nodes.save(composition)  # others are to know of it
        elif composition.due:
            Advance(nodes, composition, budget).run()
        elif composition.started or nodes.forget_nodes(composition, STEP) < STEP:
            over.append(composition.number)
    if over:
        nodes.forget(over)
    return len(found) == MOST_AT_ONCE


class Advance:
    """One step of one composition, whose row is locked."""

    def __init__(self, nodes: Nodes, composition: Composition, budget: Budget) -> None:
        self._nodes = nodes
        self._composition = composition
        self._budget = budget
        self._known: dict[int, Waiting] = {}
        self._told: dict[int, Told] = {}
        self._stack: list[Waiting] = []
        """Due nodes; the last is the next."""
        self._changed: dict[int, Waiting] = {}
        self._gone: set[int] = set()

    def tell_of(self, ends: Iterable[End]) -> None:
        """Count ends of its jobs, and tell them."""
        for end in ends:
            self._composition.count(end.node, end.outcome)
            if end.tells is not None:
                self.tell(end.tells, end.outcome, end.result)

    def tell(self, node: int, outcome: Outcome, result: bytes | None = None) -> None:
        """Tell a node of an end."""
        told = self._told.setdefault(node, Told())
        told.times += 1
        told.bad = told.bad or outcome is not Outcome.SUCCEEDED
        told.result = result

    def need_more(self, node: int, more: int) -> bool:
        """Let a gate wait for so many more; False, and nothing changes, when it is none that waits."""
        self._load([node])
        found = self._known.get(node)
        if found is None or found.runs is not None or found.turn is not None:
            return False
        found.needs += more
        self._changed[node] = found
        return True

    def cancel(self, numbers: Sequence[int]) -> None:
        """End those of its nodes that are no jobs yet."""
        self._load(numbers)
        for number in numbers:
            if number in self._known and number not in self._gone:
                self._end(self._known[number], Outcome.CANCELLED)

    def run(self) -> None:
        """Work off what is due, as far as that may be, and write everything."""
        while True:
            self._deliver()
            if not self._stack and self._composition.due and self._budget.jobs > 0:
                # Nothing of this call is due any more, so none of these is known as such.
                self._stack = [self._known.setdefault(node.node, node) for node in self._older()]
            batch = self._next()
            if not batch:
                break
            self._release([node for node in batch if node.runs is not None])
            for gate in (node for node in batch if node.runs is None):
                self._end(gate, Outcome.FAILED if gate.bad else Outcome.SUCCEEDED)
        self._write()

    def _older(self) -> list[Waiting]:
        return [node for node in self._nodes.due(self._composition, STEP) if node.node not in self._gone][::-1]

    def _load(self, numbers: Iterable[int]) -> None:
        missing = [number for number in numbers if number not in self._known and number not in self._gone]
        if missing:
            self._known |= {node.node: node for node in self._nodes.nodes(self._composition, missing)}

    def _deliver(self) -> None:
        told, self._told = self._told, {}
        self._load(told)
        due = []
        for number, what in told.items():
            node = self._known.get(number)
            if node is None or number in self._gone or node.turn is not None:
                continue  # it was ended by a cancel, before it had been told of everything
            node.needs = max(0, node.needs - what.times)
            node.bad = int(node.bad or what.bad)
            if node.flags & TAKES:
                node.input = what.result
            self._changed[number] = node
            if not node.needs:
                due.append(node)
        for node in reversed(due):
            self._composition.turn += 1
            self._composition.due += 1
            node.turn = self._composition.turn
            self._stack.append(node)

    def _next(self) -> list[Waiting]:
        """Take the next due nodes that are worked off at once: as many as there are, but gates for one step alone."""
        batch: list[Waiting] = []
        opened = 0
        while self._stack and opened < MOST_NEXT and self._budget.take(self._stack[-1]):
            batch.append(self._stack.pop())
            opened += len(batch[-1].tells) if batch[-1].runs is None else 0
        return batch

    def _release(self, jobs: Sequence[Waiting]) -> None:
        cancelling = bool(self._composition.cancelling)
        running = {node.node: node for node in jobs if node.may_run(cancelling=cancelling)}
        refused = self._nodes.release(self._composition, list(running.values())) if running else set()
        for node in jobs:
            if node.node in running and node.node not in refused:
                self._composition.due -= 1
                self._gone.add(node.node)
            else:
                # A job whose place is taken by another will never run: nobody is to wait for it.
                self._end(node, Outcome.CANCELLED)

    def _end(self, node: Waiting, outcome: Outcome) -> None:
        self._gone.add(node.node)
        self._composition.due -= node.turn is not None
        self._composition.count(node.node, outcome)
        for told in node.tells:
            self.tell(told, outcome)

    def _write(self) -> None:
        changed = [node for number, node in self._changed.items() if number not in self._gone]
        if changed:
            self._nodes.change(self._composition, changed)
        if self._gone:
            self._nodes.remove(self._composition, sorted(self._gone))
        self._composition.date(self._nodes.now)
        self._nodes.save(self._composition)

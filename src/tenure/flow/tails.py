"""Nodes of which it is not known yet whom they tell, and trees of gates for those that tell many."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from tenure.call import Call, Step
from tenure.compositions import MOST_NEXT, Gate, When


class Planned(NamedTuple):
    """A job of a composition, before it is encoded: see ``tenure.compositions.JobNode``."""

    number: int
    call: Call[Any] | Step
    result_ttl: float | None
    """If it has none of its own."""
    needs: int = 1
    when: When = When.SUCCESS
    next: int | None = None
    takes: bool = False
    gives: bool = False
    first: bool = False
    """Whether it is released when the composition starts."""


PlannedNode = Planned | Gate
Numbers = Callable[[], int]
"""Makes the numbers of gates."""


class Tail(Protocol):
    """The last node of a part, which tells what comes after the part."""

    def tell(self, number: int) -> Iterator[Gate]:
        """Let it tell a node; yields gates that are complete by that."""
        ...

    def close(self) -> Iterator[PlannedNode]:
        """Yield what is left of it: it tells no more than it does now."""
        ...


class Fan:
    """A gate that tells as many as it is made to, over a tree of gates.

    However many there are, it holds no more than a path through the tree: gates that are full are yielded.
    """

    def __init__(self, number: int, numbers: Numbers, needs: int = 0) -> None:
        self.number: int = number
        self.needs: int = needs
        self._numbers = numbers
        self._levels: list[list[int]] = [[]]

    def tell(self, number: int) -> Iterator[Gate]:
        """Let it tell a node, by itself or over gates; yields gates that are complete by that."""
        return self._put(0, number)

    def close(self) -> Iterator[Gate]:
        """Yield the rest of the tree, and the gate itself."""
        level = 0
        while level < len(self._levels) - 1:
            row = self._levels[level]
            level += 1
            if len(row) == 1:
                yield from self._put(level, row[0])
            else:
                yield from self._put(level, (gate := self._gate(row)).number)
                yield gate
        yield Gate(number=self.number, needs=self.needs, next=tuple(self._levels[-1]))

    def _put(self, level: int, number: int) -> Iterator[Gate]:
        if level == len(self._levels):
            self._levels.append([])
        row = self._levels[level]
        if len(row) == MOST_NEXT:
            gate = self._gate(row)
            row.clear()
            yield from self._put(level + 1, gate.number)
            yield gate
        row.append(number)

    def _gate(self, row: list[int]) -> Gate:
        return Gate(number=self._numbers(), next=tuple(row))


class JobTail:
    """A job, which can tell one node: a gate stands between it and several."""

    def __init__(self, planned: Planned, numbers: Numbers) -> None:
        self._planned = planned
        self._numbers = numbers
        self._told: list[int] = []
        self.gives: bool = False
        """Whether the next takes what it returns."""

    def tell(self, number: int) -> Iterator[Gate]:
        """Let it tell a node."""
        self._told.append(number)
        return iter(())

    def close(self) -> Iterator[PlannedNode]:
        """Yield the job, and the gates behind it."""
        planned = self._planned._replace(gives=self.gives)
        if len(self._told) < 2:
            yield planned._replace(next=self._told[0] if self._told else None)
            return
        fan = Fan(self._numbers(), self._numbers, 1)
        yield planned._replace(next=fan.number)
        for number in self._told:
            yield from fan.tell(number)
        yield from fan.close()

"""From a composition as a value to the nodes that it becomes, yielded one after the other: it may be long.

Jobs are numbered in the order in which they appear, as they are taken from what the caller has given; gates and
callbacks below 0. A node is yielded when it is known whom it tells, which may be late; nothing but that, and what the
caller holds himself, is kept of it.
"""

import itertools
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from tenure.call import Call
from tenure.compositions import MAX_MEMBERS, START, Kind, When
from tenure.errors import InvalidOption
from tenure.flow.tails import Fan, JobTail, Planned, PlannedNode, Tail
from tenure.flow.values import Batch, Chain, Composition, Part
from tenure.flow.workflow import Workflow

DEEPEST: Final = 32
"""How deeply compositions may be nested."""

Ends: TypeAlias = tuple[int, Tail]
"""The number of the node that is told to let a part begin, and the node that tells of its end."""
Made: TypeAlias = Generator[PlannedNode, None, Ends]


class Plan:
    """One composition, to be read once."""

    def __init__(self, top: Composition | Call[Any]) -> None:
        self._top = top
        self._most = MAX_MEMBERS
        self._path: list[str] = []
        self._open: list[Composition] = []
        self._below: Callable[[], int] = itertools.count(START, -1).__next__
        self.counted: int = 0
        """How many jobs were taken so far, callbacks left out."""
        self.first: Call[Any] | None = None
        """The first of them: known with the first node."""

    @property
    def kind(self) -> Kind:
        """What it is: a call with steps is a chain."""
        return self._top.kind if isinstance(self._top, Composition) else Kind.CHAIN

    def limit(self, most: int) -> None:
        """Set how many counted jobs there may be; raises ``InvalidOption`` when there are more already."""
        self._most = most
        if self.counted > most:
            raise self._too_many()

    def nodes(self) -> Iterator[PlannedNode]:
        """Yield all nodes; raises ``InvalidOption`` for what is no composition, when that is found."""
        start = Fan(self._below(), self._below, 1)
        entry, tail = yield from self._made(self._top, 1, first=True, ttl=None)
        yield from tail.close()
        yield from start.tell(entry)
        yield from start.close()

    # ------------------------------------------------------------------------------------------------------- its parts

    def _made(self, part: Part, needs: int, *, first: bool, ttl: float | None) -> Made:
        """Yield the nodes of a part that begins when it was told so often, but for the last of them."""
        if isinstance(part, Call):
            return (yield from self._call(part, needs, first=first, ttl=ttl))
        with self._inside(part):
            match part:
                case Batch():
                    return (yield from self._batch(part, needs, first=first, ttl=ttl))
                case Chain():
                    return (yield from self._chain(part, needs, first=first, ttl=ttl))
                case Workflow():
                    return (yield from self._workflow(part, needs, first=first, ttl=ttl))
                case _:
                    raise InvalidOption(f"{part.label} is no composition of this library")

    def _call(
        self,
        call: Call[Any],
        needs: int,
        *,
        first: bool,
        ttl: float | None,
        when: When = When.SUCCESS,
        counted: bool = True,
    ) -> Made:
        entry = number = self._number(call) if counted else self._below()
        tail = self._tail(Planned(number, call, ttl, needs=needs, when=when, first=first))
        for step in call.steps:
            number = self._number(call) if counted else self._below()
            tail.gives = True
            tail.tell(number)
            yield from tail.close()
            tail = self._tail(Planned(number, step, ttl, takes=True))
        return entry, tail

    def _chain(self, chain: Chain, needs: int, *, first: bool, ttl: float | None) -> Made:
        entry: int | None = None
        tail: Tail | None = None
        for place, step in enumerate(chain.steps, 1):
            with self._at(f"step {place}"):
                begins, ends = yield from self._made(step, 1 if tail else needs, first=first and tail is None, ttl=ttl)
            if tail is None:
                entry = begins
            else:
                yield from tail.tell(begins)
                yield from tail.close()
            tail = ends
        assert entry is not None, "an empty chain is refused when it is made"
        assert tail is not None
        return entry, tail

    def _batch(self, batch: Batch, needs: int, *, first: bool, ttl: float | None) -> Made:
        opens, joins = Fan(self._below(), self._below, needs), Fan(self._below(), self._below)
        ttl = batch.result_ttl if batch.result_ttl is not None else ttl
        for place, given in enumerate(batch.calls, 1):
            with self._at(f"member {place}"):
                begins, tail = yield from self._made(batch.part(given), 1, first=first, ttl=ttl)
            yield from opens.tell(begins)
            yield from tail.tell(joins.number)
            yield from tail.close()
            joins.needs += 1
        if not joins.needs:
            raise InvalidOption(f"{self._named(batch)} has no calls")
        yield from opens.close()
        for when, call in batch.callbacks:
            begins, tail = yield from self._call(call, 1, first=False, ttl=None, when=when, counted=False)
            yield from joins.tell(begins)
            yield from tail.close()
        return opens.number, joins

    def _workflow(self, workflow: Workflow, needs: int, *, first: bool, ttl: float | None) -> Made:
        befores = workflow.befores()
        if not befores:
            raise InvalidOption(f"{self._named(workflow)} has no calls")
        opens, joins = Fan(self._below(), self._below, needs), Fan(self._below(), self._below)
        ends: dict[str, Ends] = {}
        told: dict[str, list[str]] = {name: [] for name in befores}
        for name, before in befores.items():
            with self._at(f"step {name!r}"):
                ends[name] = yield from self._made(
                    workflow.steps[name].part, max(1, len(before)), first=first and not before, ttl=ttl
                )
            for one in before:
                told[one].append(name)
            if not before:
                yield from opens.tell(ends[name][0])
        for name, afters in told.items():
            tail = ends[name][1]
            for after in afters:
                yield from tail.tell(ends[after][0])
            if not afters:
                yield from tail.tell(joins.number)
                joins.needs += 1
            yield from tail.close()
        yield from opens.close()
        return opens.number, joins

    # ------------------------------------------------------------------------------------------------ numbers and names

    def _number(self, call: Call[Any]) -> int:
        if self.counted >= self._most:
            raise self._too_many()
        if self.first is None:
            self.first = call
        self.counted += 1
        return self.counted - 1

    def _too_many(self) -> InvalidOption:
        return InvalidOption(
            f"{self._named(None)} has more than {self._most} jobs (QUEUE_MAX_COMPOSITION_MEMBERS): make several of it"
        )

    def _tail(self, planned: Planned) -> JobTail:
        return JobTail(planned, self._below)

    @contextmanager
    def _inside(self, part: Composition) -> Iterator[None]:
        if any(part is one for one in self._open):
            raise InvalidOption(f"{self._named(part)} contains itself, and would never end")
        if len(self._open) == DEEPEST:
            raise InvalidOption(f"{self._named(part)} is nested more deeply than {DEEPEST} compositions")
        if self._open and part.whole:
            raise InvalidOption(
                f"{self._named(part)} is a part of another composition: id and retention are for the whole"
            )
        self._open.append(part)
        try:
            yield
        finally:
            self._open.pop()

    @contextmanager
    def _at(self, place: str) -> Iterator[None]:
        self._path.append(place)
        try:
            yield
        finally:
            self._path.pop()

    def _named(self, part: Composition | None) -> str:
        top = self._top.label if isinstance(self._top, Composition) else "the chain"
        if part is None or (part is self._top and not self._path):
            return top
        return f"{part.label} ({', '.join(self._path)} of {top})"

"""Compositions that run at once, in the process that pushes them: the rules of ``tenure.compositions`` in memory.

Who runs the jobs is somebody else's part: ``Walk.jobs`` yields each when its turn has come, and is sent what it came
to. Everything is known when the push returns, so the handle needs no store.
"""

import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from tenure.compositions import (
    START,
    CompositionStatus,
    JobNode,
    NewComposition,
    Node,
    When,
    ended_as,
    job_id,
)
from tenure.flow.handle import Member
from tenure.queue import JobState, Lease


class Came(NamedTuple):
    """What a job came to: succeeded, failed or cancelled."""

    state: JobState
    value: Any = None
    passed: bytes | None = None
    """What it returned, encoded for the next."""
    reason: str = ""
    error: Exception | None = None


class Turn(NamedTuple):
    """A job whose turn has come."""

    node: JobNode
    given: bytes | None
    """What the job before it has returned, if it takes that."""


class Walk:
    """One composition, from its first job to its last."""

    def __init__(self, composition: NewComposition, nodes: Iterable[Node]) -> None:
        self._new = composition
        self._created = time.time()
        self._nodes = {node.number: node for node in nodes}
        self._needs = {number: node.needs for number, node in self._nodes.items()}
        self._unwell: set[int] = set()
        """Nodes that were told of an end that was no success."""
        self._given: dict[int, bytes | None] = {}
        self._told: deque[int] = deque([START])
        """Nodes that were told of an end, once for each, and have not looked at it."""
        self.ends: dict[int, Came] = {}
        """What jobs came to, by number."""

    def jobs(self) -> Generator[Turn, Came, None]:
        """Yield each job that runs when its turn has come; send what it came to."""
        while self._told:
            number = self._told.popleft()
            self._needs[number] -= 1
            if self._needs[number]:
                continue
            node = self._nodes[number]
            if not isinstance(node, JobNode):
                self._tell(node.next, well=number not in self._unwell)
                continue
            if self._runs(node):
                came = yield Turn(node, self._given.pop(number, None))
            else:
                came = Came(JobState.CANCELLED)
            self.ends[number] = came
            well = came.state is JobState.SUCCEEDED
            if node.next is not None:
                if node.gives and well:
                    self._given[node.next] = came.passed
                self._tell((node.next,), well=well)

    def _runs(self, node: JobNode) -> bool:
        unwell = node.number in self._unwell
        return node.when is When.ANY or (node.when is When.FAILURE) is unwell

    def _tell(self, numbers: Sequence[int], *, well: bool) -> None:
        self._told.extend(numbers)
        if not well:
            self._unwell.update(numbers)

    async def grow(self, lease: Lease, nodes: Sequence[JobNode]) -> bool:
        """Add jobs that tell what the job of a lease tells: see ``Compositions.grow``."""
        place = lease.id.rpartition(".")[2]
        member = None if place.startswith("c") else self._nodes[int(place)]
        told = member.next if isinstance(member, JobNode) else None
        if told is None or isinstance(self._nodes[told], JobNode):
            return False
        for number, node in enumerate(nodes, self._total()):
            push = msgspec.structs.replace(node.push, id=job_id(self._new.id, number))
            self._nodes[number] = msgspec.structs.replace(node, number=number, push=push, next=told)
            self._needs[number] = 1
            self._told.append(number)
        self._needs[told] += len(nodes)
        return True

    async def composition(self, home: str, composition_id: str) -> CompositionStatus | None:  # noqa: ARG002
        """Return how far it has come."""
        return self.status()

    def _total(self) -> int:
        return sum(number >= 0 for number, node in self._nodes.items() if isinstance(node, JobNode))

    def status(self) -> CompositionStatus:
        """Return how far it has come."""
        states = [came.state for number, came in self.ends.items() if number >= 0]
        failed, cancelled = states.count(JobState.FAILED), states.count(JobState.CANCELLED)
        return CompositionStatus(
            id=self._new.id,
            home=self._new.home,
            kind=self._new.kind,
            name=self._new.name,
            state=ended_as(self._new.kind, failed=failed, cancelled=cancelled, cancelling=False),
            total=self._total(),
            succeeded=states.count(JobState.SUCCEEDED),
            failed=failed,
            cancelled=cancelled,
            created_at=self._created,
            finished_at=time.time(),
        )


class Ran:
    """A composition that has run, as its handle sees it."""

    def __init__(self, walk: Walk) -> None:
        self._status = walk.status()
        self._ends = walk.ends

    async def status(self) -> CompositionStatus | None:
        """Return what it came to."""
        return self._status

    async def cancel(self) -> bool:
        """Return False: it is over."""
        return False

    async def members(self, first: int, number: int) -> Sequence[Member]:
        """Return what became of so many members."""
        last = min(first + number, self._status.total)
        return [self._member(place) for place in range(first, last)]

    def _member(self, number: int) -> Member:
        came = self._ends[number]
        return Member(
            number=number,
            id=job_id(self._status.id, number),
            state=came.state,
            result=came.value,
            reason=came.reason,
            type=type(came.error).__name__ if came.error is not None else "",
        )

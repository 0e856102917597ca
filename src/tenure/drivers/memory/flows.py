"""The compositions of a process, in memory: every step from one node to the next (``tenure.compositions``).

They span queues: whatever settles or claims, in whatever queue, works off what is to be done. Nothing here waits,
locks or knows of threads: ``Store`` does that.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from tenure.clock import Clock
from tenure.compositions import (
    MOST_RELEASED,
    START,
    CompositionPage,
    Gate,
    JobNode,
    NewComposition,
    Node,
    job_id,
)
from tenure.drivers.memory.homes import Homes
from tenure.drivers.memory.ledger import Ledger
from tenure.drivers.memory.members import End, Graph, Member, Stage
from tenure.errors import InvalidOption, StoreRefused

MOST_STEPS = 2 * MOST_RELEASED
"""How many nodes one call resolves at most, gates too (P6)."""
MOST_GROWN = 500
"""How many jobs are added to a batch at a time."""


class Flows:
    """Compositions, and what is still to be done for them."""

    def __init__(self, clock: Clock, ledger: Callable[[str], Ledger]) -> None:
        self._clock = clock
        self._ledger = ledger
        self._homes = Homes(clock)
        # Nodes that were told of all that they need. What a gate lets go comes first, then who was told earlier.
        self._resolved: deque[Member] = deque()
        self._cleared: deque[Member] = deque()

    # -------------------------------------------------------------------------------------------------------- storing

    def prepare(self, made: NewComposition) -> bool:
        """Begin to store a composition; False when there is one with this id."""
        self._homes.sweep()
        return self._homes.add(made) is not None

    def add(self, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        """Store nodes of a composition that has not started."""
        graph = self._made(home, composition_id)
        if graph.started:
            raise StoreRefused("STARTED", "the composition has started")
        self._take_in(graph, nodes)

    def _made(self, home: str, composition_id: str) -> Graph:
        graph = self._homes.graph(home, composition_id)
        if graph is None:
            raise StoreRefused("UNKNOWN", "there is no such composition; one that never starts is forgotten in a day")
        return graph

    def _take_in(self, graph: Graph, nodes: Iterable[Node]) -> list[Member]:
        members = [Member(graph, node, node.needs) for node in nodes]
        graph.members.update((member.node.number, member) for member in members)
        counted = sum(member.counted for member in members)
        graph.total += counted
        graph.pending += counted
        graph.left += len(members)
        return members

    def start(self, home: str, composition_id: str) -> None:
        """Let it begin."""
        graph = self._made(home, composition_id)
        if graph.started:
            return
        if START not in graph.members:
            raise InvalidOption(f"a composition begins with the gate {START}; nothing was started")
        graph.started = True
        self._homes.started(graph)
        self._note(graph)
        self._tell(graph, START, well=True)

    def grow(self, member: Member | None, nodes: Sequence[Node]) -> bool:
        """Add counted jobs that tell what this member tells."""
        if len(nodes) > MOST_GROWN or any(isinstance(node, Gate) or not node.counted for node in nodes):
            raise InvalidOption(f"a batch grows by up to {MOST_GROWN} counted jobs at a time; nothing was added")
        if member is None or not member.counted or member.graph.cancelled or not member.next:
            return False
        graph = member.graph
        told = graph.members[member.next[0]]
        if told.job is not None:
            return False
        renamed = [
            _renumbered(node, graph.made.id, number, told.node.number)
            for number, node in enumerate(nodes, graph.total)
            if isinstance(node, JobNode)
        ]
        told.needs += len(renamed)
        self._resolved += self._take_in(graph, renamed)
        return True

    # ------------------------------------------------------------------------------------------------------ advancing

    def ended(self, member: Member, end: End, result: bytes | None = None) -> None:
        """Take the end of a node: count it, and tell those that it names."""
        if member.stage is Stage.ENDED:
            return
        graph = member.graph
        member.stage = Stage.ENDED
        graph.left -= 1
        if member.counted:
            graph.ends[end] += 1
            graph.pending -= 1
        if not graph.pending:
            self._note(graph)
        for number in reversed(member.next):
            self._tell(graph, number, well=end is End.SUCCEEDED, result=result, first=member.job is None)

    def _note(self, graph: Graph) -> None:
        """Note when the last counted job, and the last node of all, has ended."""
        if not graph.pending and graph.finished_at is None:
            graph.finished_at = self._clock.time()
        if not graph.left:
            self._homes.over(graph)

    def _tell(self, graph: Graph, number: int, *, well: bool, result: bytes | None = None, first: bool = False) -> None:
        member = graph.members[number]
        member.needs -= 1
        member.well = member.well and well
        if isinstance(member.node, JobNode) and member.node.takes:
            member.input = result
        if member.needs == 0 and member.stage is Stage.WAITS:
            (self._resolved.appendleft if first else self._resolved.append)(member)

    def cleared(self, members: Sequence[Member]) -> None:
        """Take the end of jobs that were cleared: it is told step by step."""
        self._cleared += members

    @property
    def unfinished(self) -> bool:
        """Whether there is something to be done."""
        return bool(self._resolved or self._cleared)

    def work(self) -> set[str]:
        """Do what is to be done, at most ``MOST_RELEASED`` jobs' worth; return the queues that got jobs."""
        queues: set[str] = set()
        jobs = 0
        for _ in range(MOST_STEPS):
            if jobs == MOST_RELEASED or not self.unfinished:
                break
            if not self._resolved:
                self.ended(self._cleared.popleft(), End.CANCELLED)
                jobs += 1
                continue
            member = self._resolved.popleft()
            if isinstance(member.node, Gate):
                self.ended(member, End.SUCCEEDED if member.well else End.FAILED)
            elif member.stage is Stage.WAITS:
                jobs += 1
                queues |= self._release(member, member.node)
        return queues

    def _release(self, member: Member, node: JobNode) -> set[str]:
        """Push the job, or end it cancelled when it may not run, or its id or its unique text is another's."""
        if member.may_run:
            member.stage = Stage.RELEASED
            if self._ledger(node.push.queue).push(node.push, member).outcome == "stored":
                return {node.push.queue}
        self.ended(member, End.CANCELLED)
        return set()

    # ------------------------------------------------------------------------------------------------------ operating

    def cancel(self, home: str, composition_id: str) -> Graph | None:
        """Let nothing of it begin any more but callbacks that run in any case; None when it has ended."""
        graph = self._homes.readable(home, composition_id)
        if graph is None or graph.finished_at is not None:
            return None
        graph.cancelled = True
        return graph

    def cancel_members(self, graph: Graph, first: int) -> None:
        """Cancel ``MOST_RELEASED`` counted jobs from a number on."""
        for number in range(first, min(first + MOST_RELEASED, graph.total)):
            member = graph.members[number]
            if member.stage is Stage.WAITS:
                self.ended(member, End.CANCELLED)
            elif member.stage is Stage.RELEASED and member.job is not None:
                self._ledger(member.job.push.queue).cancel_member(member.job.push.id, member)

    def prune(self, home: str, until: float) -> int:
        """Forget compositions that were over by then, at most a step of them."""
        return self._homes.prune(home, until)

    def sweep(self) -> None:
        """Forget some of those whose time is over, and of those that never started."""
        self._homes.sweep()

    def graph(self, home: str, composition_id: str) -> Graph | None:
        """Return a composition that can be read, or None."""
        return self._homes.readable(home, composition_id)

    def page(self, home: str, limit: int, cursor: str | None) -> CompositionPage:
        """Return compositions of a home."""
        return self._homes.page(home, limit, cursor)


def _renumbered(node: JobNode, composition_id: str, number: int, told: int) -> JobNode:
    push = msgspec.structs.replace(node.push, id=job_id(composition_id, number))
    return msgspec.structs.replace(node, number=number, push=push, needs=0, next=told, takes=False, gives=False)

"""Plans of compositions: what is true of every one, and what its jobs come to by a simpler reading of the rules."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tenure.call import Call, Step
from tenure.compositions import MOST_NEXT, START, Gate, JobNode, NewComposition, Node, When, job_id
from tenure.flow.inline import Came, Walk
from tenure.flow.plan import Plan
from tenure.flow.tails import Planned, PlannedNode
from tenure.flow.values import Batch, Chain, Composition
from tenure.flow.workflow import Workflow
from tenure.queue import JobState, Push

Fails = Callable[[Call[Any] | Step], bool]


def planned(top: Composition | Call[Any]) -> list[PlannedNode]:
    """Return all nodes of a composition, in the order in which they are made."""
    return list(Plan(top).nodes())


def told_by(node: PlannedNode) -> tuple[int, ...]:
    """Return the numbers of those that a node tells."""
    if isinstance(node, Gate):
        return tuple(node.next)
    return () if node.next is None else (node.next,)


def check(nodes: Sequence[PlannedNode]) -> None:
    """Assert what a store relies on."""
    by_number = {node.number: node for node in nodes}
    assert len(by_number) == len(nodes), "no number twice"
    tellers: dict[int, list[int]] = {number: [] for number in by_number}
    for node in nodes:
        assert len(told_by(node)) <= MOST_NEXT
        assert len(set(told_by(node))) == len(told_by(node))
        for number in told_by(node):
            tellers[number].append(node.number)
    for number, node in by_number.items():
        assert node.needs == (1 if number == START else len(tellers[number])), f"node {number}"
        assert node.needs > 0
    jobs = [node for node in nodes if isinstance(node, Planned)]
    counted = sorted(job.number for job in jobs if job.number >= 0)
    assert counted == list(range(len(counted)))
    assert isinstance(by_number[START], Gate)
    assert tellers[START] == []
    for job in jobs:
        if job.takes:
            [teller] = tellers[job.number]
            before = by_number[teller]
            assert isinstance(before, Planned)
            assert before.gives
        if job.gives:
            assert job.next is not None
            after = by_number[job.next]
            assert isinstance(after, Planned)
            assert after.takes
    _check_order(by_number, dict(tellers))


def _check_order(by_number: dict[int, PlannedNode], tellers: dict[int, list[int]]) -> None:
    """Assert that every node is reached, so that there is no cycle."""
    left = {number: len(before) for number, before in tellers.items()}
    free = [START]
    for number in free:
        for after in told_by(by_number[number]):
            left[after] -= 1
            if not left[after]:
                free.append(after)
    assert sorted(free) == sorted(by_number)


def stored(nodes: Iterable[PlannedNode]) -> list[Node]:
    """Return nodes as a store takes them, with nothing in their envelopes."""
    return [node if isinstance(node, Gate) else _job(node) for node in nodes]


def _job(node: Planned) -> JobNode:
    push = Push(queue="default", id=job_id("x", node.number), envelope=b"{}")
    return JobNode(number=node.number, push=push, needs=node.needs, when=node.when, next=node.next)


def walked(top: Composition | Call[Any], fails: Fails) -> dict[int, JobState]:
    """Return what the counted jobs of a composition come to, by its nodes."""
    plan = Plan(top)
    nodes = list(plan.nodes())
    calls = {node.number: node.call for node in nodes if isinstance(node, Planned)}
    walk = Walk(NewComposition(id="x", home="default", kind=plan.kind), stored(nodes))
    jobs = walk.jobs()
    turn = next(jobs, None)
    while turn is not None:
        came = Came(JobState.FAILED if fails(calls[turn.node.number]) else JobState.SUCCEEDED)
        try:
            turn = jobs.send(came)
        except StopIteration:
            turn = None
    return {number: came.state for number, came in walk.ends.items() if number >= 0}


def expected(top: Composition | Call[Any], fails: Fails) -> dict[int, JobState]:
    """Return the same by what compositions mean, without any node."""
    states: list[JobState] = []
    _read(top, True, fails, states)
    return dict(enumerate(states))


def _read(part: Composition | Call[Any], well: bool, fails: Fails, states: list[JobState]) -> bool:
    """Note what each job of a part comes to, in order of appearance; return whether all went well."""
    if isinstance(part, Call):
        calls: list[Call[Any] | Step] = [part, *part.steps]
        for one in calls:
            came = (JobState.FAILED if fails(one) else JobState.SUCCEEDED) if well else JobState.CANCELLED
            states.append(came)
            well = came is JobState.SUCCEEDED
        return well
    if isinstance(part, Chain):
        for step in part.steps:
            well = _read(step, well, fails, states)
        return well
    if isinstance(part, Batch):
        ended = [_read(part.part(call), well, fails, states) for call in part.calls]
        return all(ended)
    assert isinstance(part, Workflow)
    ends: dict[str, bool] = {}
    for name, before in part.befores().items():  # in the strategies steps come after those that they name
        ends[name] = _read(part.steps[name].part, well and all(ends[one] for one in before), fails, states)
    return all(ends.values())


def of_kind(nodes: Iterable[PlannedNode], when: When) -> list[Planned]:
    """Return the jobs that run on such endings."""
    return [node for node in nodes if isinstance(node, Planned) and node.when is when]

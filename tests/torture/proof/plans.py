"""Compositions as they were made: who waits for whom, written down before one is let begin."""

from collections.abc import Sequence

from tenure.compositions import Gate, JobNode, NewComposition, Node, job_id
from tenure.testing.history import Flow


class Plans:
    """The nodes of those that are being stored."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str], dict[int, Node]] = {}

    def begin(self, new: NewComposition) -> None:
        self._nodes[new.home, new.id] = {}

    def add(self, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        self._nodes[home, composition_id] |= {node.number: node for node in nodes}

    def end(self, home: str, composition_id: str) -> Flow:
        """Return the whole of one, without its gates."""
        nodes = self._nodes.pop((home, composition_id))
        jobs = [node for node in nodes.values() if isinstance(node, JobNode)]
        told_by: dict[int, list[int]] = {}
        for node in nodes.values():
            for told in node.next if isinstance(node, Gate) else () if node.next is None else (node.next,):
                told_by.setdefault(told, []).append(node.number)

        def before(number: int) -> set[str]:
            found: set[str] = set()
            for other in told_by.get(number, ()):
                found |= before(other) if isinstance(nodes[other], Gate) else {job_id(composition_id, other)}
            return found

        ids = {node.number: job_id(composition_id, node.number) for node in jobs}
        return Flow(
            composition_id,
            home,
            {ids[node.number]: tuple(sorted(before(node.number))) for node in jobs},
            {ids[node.number]: node.when.value for node in jobs if node.when.value != "success"},
            tuple(ids[node.number] for node in jobs if not node.counted),
        )

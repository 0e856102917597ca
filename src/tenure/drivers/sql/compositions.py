"""``SqlCompositions``: ``tenure.compositions.Compositions`` over transactions, whatever the database."""

from collections.abc import Sequence
from functools import partial
from typing import Final, TypeVar

from tenure.compositions import CompositionPage, CompositionStatus, Gate, JobNode, NewComposition, Node
from tenure.drivers.sql.calling import Calling
from tenure.drivers.sql.parts import split
from tenure.drivers.sql.transitions import STEP
from tenure.drivers.sql.units import micros
from tenure.errors import InvalidOption
from tenure.naming import check_job_id, shown
from tenure.queue import Lease
from tenure.summaries import LONGEST_PAGE, check_age, check_limit

Tx = TypeVar("Tx")

MOST_GROWN: Final = 500
"""How many jobs are added to a batch at a time."""


class SqlCompositions(Calling[Tx]):
    """Keeps and advances compositions. Their jobs may be in any queues of the namespace."""

    async def prepare(self, composition: NewComposition) -> bool:
        """Begin to store a composition; False, and nothing changes, when there is one with this id in this home."""
        return await self._write("push", partial(self._transitions.prepare, composition=composition))

    async def add(self, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        """Store nodes of a composition that has not started, in parts."""
        for part in split(nodes, _size):
            add = partial(self._transitions.add, home=home, composition_id=composition_id, nodes=part)
            await self._write("push", add, weight=len(part))

    async def start(self, home: str, composition_id: str) -> None:
        """Let it begin: from here on it can be read, and its first jobs are released."""
        start = partial(self._transitions.start, home=home, composition_id=composition_id)
        await self._write("push", start, weight=STEP)

    async def grow(self, lease: Lease, nodes: Sequence[Node]) -> bool:
        """Add counted jobs to a batch from inside one of its members: see ``Compositions.grow``."""
        if len(nodes) > MOST_GROWN or any(isinstance(node, Gate) or not node.counted for node in nodes):
            raise InvalidOption(f"a batch grows by up to {MOST_GROWN} counted jobs at a time; nothing was added")
        return await self._write("push", partial(self._transitions.grow, lease=lease, nodes=nodes), weight=len(nodes))

    async def composition(self, home: str, composition_id: str) -> CompositionStatus | None:
        """Return how far it has come; None for one that is unknown here, has not started or is forgotten."""
        return await self._read(partial(self._transitions.composition, home=home, composition_id=composition_id))

    async def compositions(self, home: str, *, limit: int = 100, cursor: str | None = None) -> CompositionPage:
        """Return those whose home this is, by their ids, a page at a time; a thousand at most."""
        check_limit(limit)
        after = "" if cursor is None else _id_in(cursor)
        page = partial(self._transitions.compositions, home=home, limit=min(limit, LONGEST_PAGE), after=after)
        return await self._read(page)

    async def cancel_composition(self, home: str, composition_id: str) -> bool:
        """Cancel what has not ended, in steps: see ``Compositions.cancel_composition``."""
        begin = partial(self._transitions.begin_to_cancel, home=home, composition_id=composition_id)
        total = await self._write("operate", begin)
        if total is None:
            return False
        for first in range(0, total, STEP):
            some = partial(self._transitions.cancel_some, home=home, composition_id=composition_id, first=first)
            await self._write("operate", some, weight=STEP)
        return True

    async def prune_compositions(self, home: str, *, older_than: float) -> int:
        """Forget compositions that were over at least so many seconds ago; return their exact number.

        When a step cannot be done, its error is raised; what the steps before it forgot stays forgotten.
        """
        check_age(older_than)
        old = await self._read(partial(self._transitions.old, age=micros(older_than) - 1))
        total = 0
        while True:
            prune = partial(self._transitions.prune_compositions, home=home, old=old)
            forgotten, readable = await self._write("operate", prune, weight=STEP)
            total += readable
            if forgotten < STEP:
                return total


def _id_in(cursor: str) -> str:
    """Return the id of the last composition of a page, or raise ``InvalidOption``."""
    try:
        return check_job_id(bytes.fromhex(cursor).decode())
    except (ValueError, InvalidOption):
        raise InvalidOption(f"{shown(cursor)} is no cursor of this listing; begin without one") from None


def _size(node: Node) -> int:
    return len(node.push.envelope) if isinstance(node, JobNode) else 0

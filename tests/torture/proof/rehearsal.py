"""A short run in one process that passes every way on which a defect of a store would show.

Two holders work on one queue: leases lapse and come back, a holder that lost its lease goes on as if it had not,
answers are lost, ids are used again, what was delayed is asked for before its time.
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from tenure.compositions import JobNode, Kind, NewComposition, Node
from tenure.errors import StoreError
from tenure.naming import new_job_id
from tenure.queue import Ack, Claimed, Drop, Fail, Failure, Lease, Push, Queue, Release, Settlement
from tenure.testing.contract.composing import batch, chain, composer, unique
from tenure.testing.history import History, Terms, Verdict, read
from tests.torture.proof.places import Place, counted, tally
from tests.torture.proof.program import QUEUES
from tests.torture.proof.recording import Log

QUEUE = QUEUES[1]
SHORT, LONG = 0.12, 30.0
WHY = Failure(reason="exception")
Lose = Callable[[str], Any]
"""Have the answer to the next call of this kind be lost."""


class Rehearsal:
    """The two holders, ``first`` and ``second``."""

    def __init__(self, first: Queue, second: Queue, lose: Lose | None, evict: Callable[[], Awaitable[None]]) -> None:
        self._first = first
        self._second = second
        self._lose = lose
        self._evict = evict

    async def run(self) -> None:
        """Play all of it; then work off what is left."""
        for part in (
            *(self._zombie, self._swept, self._early, self._back, self._twice, self._reused, self._lost),
            *(self._chained, self._batched, self._unique),
        ):
            await part()
            await self._evict()
        await self._work_off()

    async def _push(self, number: int = 1, **more: Any) -> list[str]:
        ids = [new_job_id() for _ in range(number)]
        await self._first.push([Push(queue=QUEUE, id=job_id, envelope=b"{}", **more) for job_id in ids])
        return ids

    async def _claim(self, queue: Queue, number: int, lease: float = LONG, wait: float = 0.0) -> Sequence[Lease]:
        with contextlib.suppress(StoreError):  # a store with a defect may refuse what it made
            claimed: Claimed = await queue.claim([QUEUE], limit=number, lease=lease, wait=wait, crash_limit=50)
            return claimed.leases
        return ()

    async def _until(self, queue: Queue, number: int, lease: float = LONG, tries: int = 2) -> list[Lease]:
        """Claim until so many are there, or nothing came so often: a store with a defect may never give them."""
        found: list[Lease] = []
        while len(found) < number and tries:
            more = await self._claim(queue, number - len(found), lease, wait=0.15)
            found += more
            tries -= not more
        return found

    async def _settle(self, queue: Queue, settlements: Sequence[Settlement]) -> None:
        with contextlib.suppress(StoreError):
            await queue.settle(settlements)

    async def _zombie(self) -> None:
        """The first holder's leases lapse; it renews and settles all the same, before and after the second does."""
        await self._push(6)
        old = await self._until(self._first, 6, SHORT)
        new = await self._until(self._second, 6)
        await self._first.renew(old)
        await self._settle(
            self._first, [Ack(old[0]), Fail(old[1], WHY), Release(old[2]), Drop(old[3])] if len(old) > 3 else []
        )
        await self._second.renew(new)
        await self._settle(self._second, [Ack(lease) for lease in new])
        await self._first.renew(old)
        await self._settle(self._first, [Ack(lease) for lease in old])

    async def _early(self) -> None:
        """Jobs that are not due, and leases that have not lapsed, are asked for."""
        await self._push(3, delay=0.4)
        await self._push(2)
        held = await self._until(self._first, 2)
        early = list(await self._claim(self._second, 5))
        due = await self._until(self._second, 3, tries=4)
        await self._settle(self._second, [Ack(lease) for lease in [*early, *due]])
        await self._settle(self._first, [Ack(lease) for lease in held])

    async def _back(self) -> None:
        """Given back free, given back late, failed and tried again by an operator, set aside for good."""
        await self._push(4)
        leases = await self._until(self._first, 4)
        await self._first.renew(leases)
        if len(leases) == 4:
            free, later, failing, dropped = leases
            await self._settle(
                self._first, [Release(free, free=True), Release(later, delay=0.2), Fail(failing, WHY), Drop(dropped)]
            )
        early = list(await self._claim(self._second, 4))
        again = await self._until(self._second, 2)
        await self._first.renew(leases)
        await self._settle(self._second, [Ack(lease) for lease in [*early, *again]])

    async def _twice(self) -> None:
        """The same id, while it waits, runs, and is delayed."""
        (waits,) = await self._push(1)
        again = Push(queue=QUEUE, id=waits, envelope=b"{}")
        await self._second.push([again])
        leases = await self._until(self._first, 1)
        await self._second.push([again])
        await self._settle(self._first, [Ack(lease) for lease in leases])

    async def _reused(self) -> None:
        """An id that is used again after its job was cancelled."""
        (job_id,) = await self._push(1)
        await self._first.cancel(QUEUE, [job_id])
        await self._first.push([Push(queue=QUEUE, id=job_id, envelope=b"{}")])
        leases = await self._until(self._second, 1)
        await self._settle(self._second, [Ack(lease) for lease in leases])

    async def _lost(self) -> None:
        """Answers are lost on the way, and the driver asks again."""
        if self._lose is None:
            return
        self._lose("push")
        await self._push(2)
        for lost in ("settle", "claim"):
            if lost == "claim":
                self._lose(lost)
            leases = await self._until(self._first, 1)
            if lost == "settle":
                self._lose(lost)
            await self._settle(self._first, [Ack(lease) for lease in leases])

    async def _begin(self, kind: Kind, make: Callable[..., Sequence[Node]], size: int) -> None:
        composition = new_job_id()
        store = composer(self._first)
        nodes = [
            replace(node, push=replace(node.push, queue=QUEUE)) if isinstance(node, JobNode) else node
            for node in make(size, of=composition)
        ]
        with contextlib.suppress(StoreError):
            await store.prepare(NewComposition(id=composition, home=QUEUE, kind=kind))
            await store.add(QUEUE, composition, nodes)
            await store.start(QUEUE, composition)

    async def _chained(self) -> None:
        """A step lapses, is given back, comes again and is acknowledged; the next one fails, and ends the chain."""
        await self._begin(Kind.CHAIN, chain, 3)
        old = await self._until(self._first, 1, SHORT)
        new = await self._until(self._second, 1)
        await self._settle(self._first, [Ack(lease) for lease in old])
        await self._settle(self._second, [Release(lease) for lease in new])
        for last in (Ack, lambda lease: Fail(lease, WHY)):
            leases = await self._until(self._second, 1)
            await self._settle(self._second, [last(lease) for lease in leases])

    async def _batched(self) -> None:
        """Some members end together, some alone; of the second batch one fails. The callbacks are left for later."""
        for failing in (False, True):
            await self._begin(Kind.BATCH, batch, 5)
            leases = await self._until(self._first, 5)
            if self._lose is not None:
                self._lose("settle")
            await self._settle(self._first, [Ack(lease) for lease in leases[:3]])
            await self._settle(self._second, [Fail(lease, WHY) if failing else Ack(lease) for lease in leases[3:4]])
            await self._settle(self._second, [Ack(lease) for lease in leases[4:]])
            called = await self._until(self._second, 2)
            await self._settle(self._second, [Ack(lease) for lease in called])

    async def _unique(self) -> None:
        """One text: while it waits and runs, and when it was acknowledged, failed, dropped."""
        text = unique("one of them")
        for end in (Ack, Drop, lambda lease: Fail(lease, WHY)):
            await self._push(2, unique=text)
            leases = await self._until(self._second, 1)
            await self._push(1, unique=text)
            await self._settle(self._second, [end(lease) for lease in leases])

    async def _swept(self) -> None:
        """Leases lapse again and again: whoever took them back before is gone."""
        await self._push(2)
        for _ in range(3):
            await self._until(self._first, 2, SHORT)
        await self._push(3)
        await self._first.clear(QUEUE)

    async def _work_off(self) -> None:
        for _ in range(12):
            counts = await self._second.counts(QUEUE)
            if not counts.ready + counts.delayed + counts.leased:
                return
            leases = await self._claim(self._second, 20, wait=0.15)
            await self._settle(self._second, [Ack(lease) for lease in leases])


async def rehearsed(
    place: Place,
    logs: Sequence[Log],
    first: Queue,
    second: Queue,
    lose: Lose | None,
    evict: Callable[[], Awaitable[None]],
) -> Verdict:
    """Play it, and judge."""
    await Rehearsal(first, second, lose, evict).run()
    page = await composer(first).compositions(QUEUE)
    dump = place.look(QUEUE, counted(await first.counts(QUEUE)))
    dump = replace(dump, compositions={one.id: tally(one) for one in page.compositions})
    history = History(Terms(tolerance=0.003 if place.driver == "sqlite" else 0.0))
    for log in logs:
        history.add(read(log.path))
    history.add(place.read([QUEUE]))
    history.add([dump])
    return history.verdict()

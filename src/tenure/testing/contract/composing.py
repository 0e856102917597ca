"""The nodes of compositions, and the steps that behaviours of them are written in."""

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tenure.compositions import (
    START,
    CompositionPage,
    Compositions,
    CompositionStatus,
    Gate,
    JobNode,
    Kind,
    NewComposition,
    Node,
    When,
    job_id,
)
from tenure.queue import Ack, Lease, Queue, Settled, Settlement
from tenure.testing.contract.steps import NOTHING, Q, claim, eventually, ids, job

C = "c"
"""The composition of a behaviour that needs one."""
END = -2
"""The gate that the members of a batch tell."""
CALLBACKS = {When.SUCCESS: -11, When.FAILURE: -12, When.ANY: -13}
"""The numbers of a batch's callbacks."""
NODE_OPTIONS = {"needs", "when", "takes", "gives"}


def composer(queue: Queue) -> Compositions:
    """Return the driver as what keeps compositions, or skip."""
    if not queue.capabilities.compositions:
        pytest.skip(f"the driver {queue.capabilities.driver!r} keeps no compositions (Compositions)")
    return cast("Compositions", queue)


def unique(text: str) -> str:
    """Return what a push has for a unique text."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def member(number: int, tells: int | None = None, *, of: str = C, queue: str = Q, **options: Any) -> JobNode:
    """Return a job of a composition; what is no option of its node is one of its push."""
    node = {name: options.pop(name) for name in NODE_OPTIONS & options.keys()}
    pushed = job(job_id(of, number), queue=queue, envelope=options.pop("envelope", NOTHING), **options)
    return JobNode(number=number, push=pushed, next=tells, **node)


def chain(length: int, *, of: str = C, results: bool = False, **options: Any) -> list[Node]:
    """Return a chain of jobs; each takes what the one before it returned, if there are to be results."""
    last = length - 1
    steps = [
        member(
            number,
            number + 1 if number < last else None,
            of=of,
            takes=results and number > 0,
            gives=results and number < last,
            **options,
        )
        for number in range(length)
    ]
    return [Gate(number=START, next=(0,)), *steps]


def batch(size: int, *, of: str = C, callbacks: Sequence[When] = tuple(CALLBACKS), **options: Any) -> list[Node]:
    """Return a batch of jobs, and its callbacks; gates of a hundred jobs stand between."""
    fans = [
        Gate(number=-100 - first // 100, next=tuple(range(first, min(first + 100, size))))
        for first in range(0, size, 100)
    ]
    told = [CALLBACKS[when] for when in callbacks]
    return [
        Gate(number=START, next=tuple(fan.number for fan in fans) or (END,)),
        *fans,
        Gate(number=END, needs=size or 1, next=tuple(told)),
        *(member(CALLBACKS[when], of=of, when=when) for when in callbacks),
        *(member(number, END, of=of, **options) for number in range(size)),
    ]


async def prepared(
    queue: Queue, nodes: Sequence[Node], *, of: str = C, home: str = Q, kind: Kind = Kind.WORKFLOW, **options: Any
) -> None:
    """Store a composition."""
    store = composer(queue)
    assert await store.prepare(NewComposition(id=of, home=home, kind=kind, **options))
    await store.add(home, of, nodes)


async def begun(queue: Queue, nodes: Sequence[Node], *, of: str = C, home: str = Q, **options: Any) -> None:
    """Store a composition and start it."""
    await prepared(queue, nodes, of=of, home=home, **options)
    await composer(queue).start(home, of)


async def status(queue: Queue, of: str = C, *, home: str = Q) -> CompositionStatus:
    """Return how far a composition has come."""
    found = await composer(queue).composition(home, of)
    assert found is not None, "there is no such composition"
    assert (found.id, found.home) == (of, home)
    assert found.pending >= 0
    assert (found.finished_at is not None) is found.finished is (found.pending == 0)
    return found


async def tally(queue: Queue, of: str = C) -> tuple[str, int, int, int, int]:
    """Return a composition's state, and how many of its jobs there are, succeeded, failed and were cancelled."""
    found = await status(queue, of)
    return found.state.value, found.total, found.succeeded, found.failed, found.cancelled


async def listed(queue: Queue, home: str = Q, *, limit: int = 100) -> list[CompositionStatus]:
    """Return all compositions of a home, read page by page."""
    found: list[CompositionStatus] = []
    cursors: set[str | None] = set()
    page = CompositionPage(compositions=(), cursor=None)
    while not cursors or page.cursor is not None:
        assert page.cursor not in cursors, "the listing goes round and round"
        cursors.add(page.cursor)
        page = await composer(queue).compositions(home, limit=limit, cursor=page.cursor)
        assert len(page.compositions) <= limit
        found += page.compositions
    return found


async def acknowledged(queue: Queue, lease: Lease, result: bytes | None = None) -> None:
    """Acknowledge a lease that is held."""
    assert list(await queue.settle([Ack(lease, result)])) == [Settled.DONE]


async def ran(queue: Queue, *settlements: Settlement, queues: Sequence[str] = (Q,), batch: int = 50) -> list[str]:
    """Make these settlements, then acknowledge all that comes until nothing does; return the ids of that."""
    if settlements:
        assert set(await queue.settle(settlements)) == {Settled.DONE}
    found: list[str] = []
    while leases := await claim(queue, batch, queues=queues):
        assert [lease.doomed for lease in leases] == [None] * len(leases)
        assert set(await queue.settle([*map(Ack, leases)])) == {Settled.DONE}
        found += ids(leases)
    return found


async def over(queue: Queue, count: int = 1, *, home: str = Q) -> None:
    """Return when so many compositions were over, callbacks too, and are forgotten now; claims do what is left."""
    forgotten = 0

    async def probe() -> bool:
        nonlocal forgotten
        assert await claim(queue, 1) == []
        forgotten += await composer(queue).prune_compositions(home, older_than=0)
        return forgotten >= count

    await eventually(probe, what=f"{count} compositions over")
    assert forgotten == count

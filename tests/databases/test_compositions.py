"""Compositions on a database server: many connections at once, several queues, and an acknowledgement of a caller's."""

import asyncio
import random
from collections.abc import Callable
from typing import cast

import pytest

from tenure.compositions import START, Compositions, CompositionState, Gate, JobNode, Kind, NewComposition, Node, job_id
from tenure.drivers.sql.server.driver import ServerQueue
from tenure.enlisting import enlist
from tenure.queue import Ack, Drop, Fail, Failure, Lease, Push, Queue, Release, Settled, Settlement
from tenure.testing.contract.steps import Q, claim, claim_one, done, ids
from tests.databases.support import Place, assert_consistent

Keep = Callable[[Queue], Queue]

OTHER = "other"
END, CALLBACK = -2, -3
WHY = Failure(reason="exception")


def batch(of: str, size: int, *queues: str) -> list[Node]:
    """Return a batch whose jobs take turns in these queues, with a callback in the first."""

    def job(number: int, queue: str, **options: object) -> JobNode:
        push = Push(queue=queue, id=job_id(of, number), envelope=b"{}")
        return JobNode(number=number, push=push, **options)  # type: ignore[arg-type]

    fans = [
        Gate(number=-100 - first // 100, next=tuple(range(first, min(first + 100, size))))
        for first in range(0, size, 100)
    ]
    return [
        Gate(number=START, next=tuple(fan.number for fan in fans)),
        *fans,
        Gate(number=END, needs=size, next=(CALLBACK,)),
        job(CALLBACK, queues[0]),
        *(job(number, queues[number % len(queues)], next=END) for number in range(size)),
    ]


async def begun(queue: Queue, of: str, nodes: list[Node]) -> Compositions:
    store = cast("Compositions", queue)
    assert await store.prepare(NewComposition(id=of, home=Q, kind=Kind.BATCH))
    await store.add(Q, of, nodes)
    await store.start(Q, of)
    return store


async def worked(
    queue: Queue, seed: int, ends: Callable[[random.Random, Lease], Settlement], idle: int = 5
) -> list[str]:
    """Claim and settle until there is nothing any more; return what was ended."""
    chance = random.Random(seed)
    ended: list[str] = []
    names = [Q, OTHER]
    while idle:
        chance.shuffle(names)
        leases = await claim(queue, chance.randint(1, 30), queues=names, wait=0.2)
        idle -= not leases
        chance.shuffle(leases)
        settlements = [ends(chance, lease) for lease in leases]
        for settlement, settled in zip(settlements, await queue.settle(settlements), strict=True):
            assert settled in {Settled.DONE, Settled.CANCELLED}
            gone = settled is Settled.CANCELLED or not isinstance(settlement, Release)
            ended += [settlement.lease.id] if gone else []
    return ended


async def test_each_end_counts_once_however_many_settle_at_once(place: Place, opened: Keep) -> None:
    queues = [opened(place.queue()) for _ in range(4)]
    names = ["a", "b", "c"]
    (store, *_) = [await begun(queues[0], name, batch(name, 250, Q, OTHER)) for name in names]

    def end(chance: random.Random, lease: Lease) -> Settlement:
        ways: list[Settlement] = [Ack(lease), Ack(lease), Fail(lease, WHY), Drop(lease), Release(lease)]
        return chance.choice(ways)

    ended = [one for found in await asyncio.gather(*(worked(q, n, end) for n, q in enumerate(queues))) for one in found]
    members = {job_id(name, number) for name in names for number in range(250)}
    callbacks = {job_id(name, CALLBACK) for name in names}
    assert sorted(one for one in ended if one not in callbacks) == sorted(members)
    for name in names:
        status = await store.composition(Q, name)
        assert status is not None
        assert (status.total, status.pending) == (250, 0)
        assert status.state is CompositionState.COMPLETED_WITH_FAILURES
    # Callbacks of success: none of them may run, and nothing is left of any.
    assert not callbacks & set(ended)
    left = (
        "SELECT count(*) FROM tenure_nodes JOIN tenure_compositions ON tenure_compositions.number = composition "
        "JOIN tenure_queues ON tenure_queues.number = home WHERE namespace = :namespace"
    )
    assert place.ask(left, namespace=place.namespace) == [(0,)]
    assert await store.prune_compositions(Q, older_than=0) == 3
    assert_consistent(place)


async def test_a_cancel_among_settlements_leaves_every_job_ended_once(place: Place, opened: Keep) -> None:
    queues = [opened(place.queue()) for _ in range(3)]
    store = await begun(queues[0], "a", batch("a", 400, Q, OTHER))

    def end(_: random.Random, lease: Lease) -> Settlement:
        return Ack(lease) if lease.doomed is None else Release(lease)

    *found, cancelled = await asyncio.gather(
        *(worked(queue, seed, end) for seed, queue in enumerate(queues[1:])), store.cancel_composition(Q, "a")
    )
    assert cancelled is True
    ended = [one for some in found for one in cast("list[str]", some)]
    assert len(set(ended)) == len(ended)
    status = await store.composition(Q, "a")
    assert status is not None
    assert (status.total, status.pending, status.state) == (400, 0, CompositionState.CANCELLED)
    assert status.succeeded <= len(ended)
    assert await store.prune_compositions(Q, older_than=0) == 1
    assert_consistent(place)


async def test_what_is_released_wakes_who_waits_for_its_queue_elsewhere(place: Place, opened: Keep) -> None:
    queue, other = opened(place.queue()), opened(place.queue())

    def job(number: int, queue: str, then: int | None) -> JobNode:
        push = Push(queue=queue, id=job_id("c", number), envelope=b"{}")
        return JobNode(number=number, push=push, next=then, takes=number > 0, gives=then is not None)

    await begun(queue, "c", [Gate(number=START, next=(0,)), job(0, Q, 1), job(1, OTHER, None)])
    waiting = asyncio.create_task(claim_one(other, queues=[OTHER], wait=30))
    lease = await claim_one(queue)
    await asyncio.wait([waiting], timeout=0.3)
    assert not waiting.done()
    await done(queue, Ack(lease, b"what \0 it returned"))
    second = await asyncio.wait_for(waiting, 5)
    assert (second.id, second.input, second.composition) == ("c.1", b"what \0 it returned", "c")
    await done(other, Ack(second))


@pytest.mark.parametrize("commits", [True, False])
async def test_a_callers_acknowledgement_advances_with_its_commit(place: Place, opened: Keep, commits: bool) -> None:
    queue = cast("ServerQueue", opened(place.queue()))
    store = await begun(queue, "b", batch("b", 1, Q))
    lease = await claim_one(queue)
    with place.database.engine().connect() as connection:
        begun_by_hand = connection.begin()
        assert enlist("transaction", connection).within(lambda caller: queue.join_within(caller, lease)) is not None
        assert enlist("transaction", connection).within(lambda caller: queue.acknowledge_within(caller, lease))
        status = await store.composition(Q, "b")
        assert status is not None
        assert status.pending == 1
        begun_by_hand.commit() if commits else begun_by_hand.rollback()
    status = await store.composition(Q, "b")
    assert status is not None
    assert status.pending == (0 if commits else 1)
    assert ids(await claim(queue, 5)) == ([job_id("b", CALLBACK)] if commits else [])
    assert_consistent(place)

"""A composition is stored step by step, begins whole, can be read, and is forgotten when its time has come (P6)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import time
from typing import Any

import pytest

from tenure.compositions import Gate, Kind, NewComposition, Node, When
from tenure.errors import InvalidOption, NotSupported, StoreError
from tenure.queue import Ack, JobState
from tenure.testing.contract.composing import (
    C,
    batch,
    begun,
    chain,
    composer,
    listed,
    member,
    over,
    prepared,
    ran,
    status,
    tally,
)
from tenure.testing.contract.steps import (
    EMPTY,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    eventually,
    ids,
    inspector,
    pass_time,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_a_composition_that_has_not_started_is_seen_by_nobody(store: StoreUnderTest) -> None:
    await prepared(store.queue, batch(3))
    assert await composer(store.queue).composition(Q, C) is None
    assert await listed(store.queue) == []
    assert await store.queue.counts(Q) == EMPTY
    assert await claim(store.queue, 10) == []
    assert not await composer(store.queue).cancel_composition(Q, C)
    assert await composer(store.queue).prune_compositions(Q, older_than=0) == 0
    await composer(store.another()).start(Q, C)
    assert ids(await claim(store.queue, 10)) == ["c.0", "c.1", "c.2"]


async def test_a_composition_that_has_started_tells_what_it_is_and_how_far_it_has_come(store: StoreUnderTest) -> None:
    before = time.time()
    await begun(store.queue, batch(3), kind=Kind.BATCH, name="Nightly import — №1")
    found = await status(store.another())
    assert (found.kind, found.name, found.state.value) == (Kind.BATCH, "Nightly import — №1", "active")
    assert (found.total, found.succeeded, found.failed, found.cancelled) == (3, 0, 0, 0)
    assert (found.pending, found.progress, found.finished_at) == (3, 0, None)
    assert before - 5 <= found.created_at <= time.time() + 5
    (lease,) = await claim(store.queue)
    await done(store.queue, Ack(lease))
    assert (await status(store.queue)).progress == 33
    await ran(store.queue)
    found = await status(store.queue)
    assert (found.state.value, found.progress, found.pending) == ("completed", 100, 0)
    assert found.finished_at is not None
    assert found.created_at <= found.finished_at <= time.time() + 5


@pytest.mark.parametrize("kind", Kind)
async def test_a_composition_keeps_what_it_was_made_as(store: StoreUnderTest, kind: Kind) -> None:
    await begun(store.queue, chain(1), kind=kind)
    found = await status(store.queue)
    assert (found.kind, found.name) == (kind, "")


async def test_jobs_that_wait_for_others_are_in_no_count_and_in_no_state(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(3))
    assert await where(store.queue) == {"ready": 1}
    states = await inspector(store.queue).states(Q, ["c.0", "c.1", "c.2"])
    assert list(states) == [JobState.READY, JobState.GONE, JobState.GONE]


async def test_an_id_is_taken_by_one_composition_of_a_home(store: StoreUnderTest) -> None:
    flows = composer(store.queue)
    new = NewComposition(id=C, home=Q, kind=Kind.CHAIN)
    assert await flows.prepare(new)
    assert not await flows.prepare(new)
    await flows.add(Q, C, chain(1))
    assert not await composer(store.another()).prepare(new)
    await flows.start(Q, C)
    assert not await flows.prepare(new)
    await ran(store.queue)
    assert not await flows.prepare(new)
    assert await tally(store.queue) == ("completed", 1, 1, 0, 0)
    await over(store.queue)
    assert await flows.prepare(new)


async def test_the_same_id_in_another_home_or_namespace_is_another_composition(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(2))
    await begun(store.queue, chain(1, queue="other"), home="other")
    elsewhere = store.elsewhere()
    await begun(elsewhere, chain(3))
    assert (await status(store.queue)).total == 2
    assert (await status(store.queue, home="other")).total == 1
    assert (await status(elsewhere)).total == 3
    assert await ran(store.queue, queues=["other"]) == ["c.0"]
    assert (await status(store.queue)).succeeded == 0


async def test_what_is_unknown_is_told_as_such(store: StoreUnderTest) -> None:
    flows = composer(store.queue)
    assert await flows.composition(Q, "nobody") is None
    assert await flows.composition("nowhere", C) is None
    assert not await flows.cancel_composition(Q, "nobody")
    assert await flows.prune_compositions("nowhere", older_than=0) == 0
    assert await listed(store.queue, "nowhere") == []
    with pytest.raises(StoreError):
        await flows.add(Q, "nobody", chain(1))
    with pytest.raises(StoreError):
        await flows.start(Q, "nobody")
    await assert_empty(store.queue)


async def test_nodes_come_in_as_many_calls_as_it_takes(store: StoreUnderTest) -> None:
    nodes = batch(1300, callbacks=[When.ANY])
    flows = composer(store.queue)
    assert await flows.prepare(NewComposition(id=C, home=Q, kind=Kind.BATCH))
    await flows.add(Q, C, nodes[40:])
    await flows.add(Q, C, nodes[:10])
    await flows.add(Q, C, [])
    await flows.add(Q, C, nodes[10:40])
    await flows.start(Q, C)
    assert (await status(store.queue)).total == 1300
    assert await ran(store.queue, batch=200) == [*(f"c.{number}" for number in range(1300)), "c.c13"]
    assert await tally(store.queue) == ("completed", 1300, 1300, 0, 0)


async def test_large_jobs_of_a_composition_are_stored_byte_for_byte(store: StoreUnderTest) -> None:
    envelopes = [bytes([number]) * 300_000 + b"\x00\xff|\n" for number in range(6)]
    await begun(
        store.queue,
        [
            Gate(number=-1, next=tuple(range(6))),
            *(member(number, envelope=envelope) for number, envelope in enumerate(envelopes)),
        ],
    )
    leases = {lease.id: lease.envelope for lease in await claim(store.queue, 10)}
    assert leases == {f"c.{number}": envelope for number, envelope in enumerate(envelopes)}


async def test_a_composition_of_callbacks_alone_has_ended_when_it_starts(store: StoreUnderTest) -> None:
    await begun(store.queue, batch(0), kind=Kind.BATCH)
    found = await status(store.queue)
    assert (found.state.value, found.total, found.progress) == ("completed", 0, 100)
    assert sorted(await ran(store.queue)) == ["c.c11", "c.c13"]
    await over(store.queue)


async def test_compositions_are_listed_once_each_page_by_page(store: StoreUnderTest) -> None:
    for number in range(23):
        await begun(store.queue, chain(1, of=f"c{number}"), of=f"c{number}", name=f"n{number}")
    await begun(store.queue, chain(1, queue="other"), home="other")
    await prepared(store.queue, chain(1, of="unstarted"), of="unstarted")
    for limit in (1, 7, 23, 100):
        found = await listed(store.queue, limit=limit)
        assert sorted((one.id, one.name) for one in found) == sorted((f"c{n}", f"n{n}") for n in range(23))
        assert {one.home for one in found} == {Q}
    assert [one.id for one in await listed(store.queue, "other")] == [C]
    assert await listed(store.queue) == [await status(store.queue, one.id) for one in await listed(store.queue)]


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": -1}, {"cursor": "no cursor"}], ids=str)
async def test_a_listing_of_compositions_that_cannot_be_is_refused(
    store: StoreUnderTest, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidOption):
        await composer(store.queue).compositions(Q, **options)


async def test_a_prune_forgets_what_is_over_and_tells_its_number(store: StoreUnderTest) -> None:
    flows = composer(store.queue)
    for number in range(4):
        await begun(store.queue, chain(1, of=f"c{number}"), of=f"c{number}")
    leases = await claim(store.queue, 3)
    await done(store.queue, *map(Ack, leases))
    assert await flows.prune_compositions(Q, older_than=3600) == 0
    assert len(await listed(store.queue)) == 4
    assert await flows.prune_compositions("other", older_than=0) == 0
    assert await flows.prune_compositions(Q, older_than=0) == 3
    assert await flows.prune_compositions(Q, older_than=0) == 0
    assert [one.id for one in await listed(store.queue)] == ["c3"]
    assert await flows.composition(Q, "c0") is None
    assert await ran(store.queue) == ["c3.0"]
    assert await flows.prune_compositions(Q, older_than=0) == 1
    assert await listed(store.queue) == []
    for age in (-1.0, float("nan")):
        with pytest.raises(InvalidOption):
            await flows.prune_compositions(Q, older_than=age)


async def test_a_prune_of_many_is_exact(store: StoreUnderTest) -> None:
    for number in range(130):
        await begun(store.queue, chain(1, of=f"c{number}"), of=f"c{number}")
    assert len(await ran(store.queue, batch=130)) == 130
    assert await composer(store.queue).prune_compositions(Q, older_than=0) == 130
    assert await listed(store.queue) == []


async def test_an_age_counts_from_when_all_of_a_composition_had_ended(store: StoreUnderTest) -> None:
    flows = composer(store.queue)
    await begun(store.queue, batch(1, callbacks=[When.ANY]))
    await done(store.queue, Ack(await claim_one(store.queue)))
    await pass_time(store.queue, 0.3)
    await done(store.queue, Ack(await claim_one(store.queue)))
    assert await flows.prune_compositions(Q, older_than=0.25) == 0
    await pass_time(store.queue, 0.3)
    assert await flows.prune_compositions(Q, older_than=0.25) == 1


@pytest.mark.parametrize("when", [When.SUCCESS, When.ANY])
async def test_a_composition_is_not_over_before_its_callbacks_are(store: StoreUnderTest, when: When) -> None:
    flows = composer(store.queue)
    await begun(store.queue, batch(2, callbacks=[when], delay=0), retention=0.2)
    await done(store.queue, *map(Ack, await claim(store.queue, 2)))
    assert await tally(store.queue) == ("completed", 2, 2, 0, 0)
    assert await flows.prune_compositions(Q, older_than=0) == 0
    lease = await claim_one(store.queue)
    await pass_time(store.queue, 0.3)
    assert await flows.prune_compositions(Q, older_than=0) == 0
    assert (await status(store.queue)).finished
    await done(store.queue, Ack(lease))
    await eventually(lambda: gone(store), what="forgotten")


async def gone(store: StoreUnderTest, of: str = C) -> bool:
    assert await claim(store.queue) == []
    return await composer(store.queue).composition(Q, of) is None


async def test_a_composition_can_be_read_for_its_time_and_is_gone_then(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(1, of="short"), of="short", retention=0.3)
    await begun(store.queue, chain(1, of="long"), of="long")
    await pass_time(store.queue, 0.35)  # the time begins when all of it has ended
    await ran(store.queue)
    assert len(await listed(store.queue)) == 2
    await pass_time(store.queue, 0.31)
    assert await composer(store.queue).composition(Q, "short") is None
    assert [one.id for one in await listed(store.queue)] == ["long"]
    assert await composer(store.queue).prepare(NewComposition(id="short", home=Q, kind=Kind.CHAIN))


async def test_jobs_of_one_composition_may_be_in_several_queues_where_the_driver_says_so(store: StoreUnderTest) -> None:
    nodes: list[Node] = [
        Gate(number=-1, next=(0, 1)),
        member(0, -2, queue=Q),
        member(1, -2, queue="other"),
        Gate(number=-2, needs=2, next=(2,)),
        member(2, queue="third"),
    ]
    flows = composer(store.queue)
    if not store.queue.capabilities.spanning:
        assert await flows.prepare(NewComposition(id=C, home=Q, kind=Kind.WORKFLOW))
        with pytest.raises(NotSupported):
            await flows.add(Q, C, nodes)
        return
    await begun(store.queue, nodes)
    assert await ran(store.queue, queues=["other"]) == ["c.1"]
    assert await ran(store.queue, queues=["third"]) == []
    assert await ran(store.queue) == ["c.0"]
    assert await ran(store.queue, queues=["third"]) == ["c.2"]
    assert await tally(store.queue) == ("completed", 3, 3, 0, 0)


async def test_a_composition_may_be_of_another_queue_than_its_home_where_the_driver_says_so(
    store: StoreUnderTest,
) -> None:
    flows = composer(store.queue)
    if not store.queue.capabilities.spanning:
        pytest.skip(f"the driver {store.queue.capabilities.driver!r} keeps compositions in one queue")
    await begun(store.queue, chain(2, queue="other"))
    assert await ran(store.queue, queues=["other"]) == ["c.0", "c.1"]
    assert await tally(store.queue) == ("completed", 2, 2, 0, 0)
    assert await flows.composition("other", C) is None

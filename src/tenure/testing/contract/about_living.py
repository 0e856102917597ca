"""A driver opens nothing before it is needed, works from any loop, and closes what it opened."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import threading

from tenure.operating import FailedJobs, Inspector
from tenure.queue import Ack, feature
from tenure.testing.contract.racing import contenders
from tenure.testing.contract.steps import (
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    ids,
    job,
    push,
    pushed_and_claimed,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def in_a_loop_of_its_own(store: StoreUnderTest, name: str) -> None:
    """Push, claim and settle from another event loop, in another thread."""

    async def life() -> None:
        await push(store.queue, job(name, queue=name))
        lease = await claim_one(store.queue, queues=[name], wait=5)
        assert [one.value for one in await store.queue.renew([lease])] == ["held"]
        await done(store.queue, Ack(lease))

    await asyncio.to_thread(asyncio.run, life())


async def test_a_driver_tells_what_it_can_do(store: StoreUnderTest) -> None:
    capabilities = store.queue.capabilities
    assert capabilities.driver
    assert capabilities == store.another().capabilities
    assert capabilities.shared or store.opener is None
    assert 1 in capabilities.durability


async def test_reading_and_operating_are_offered_whole_or_not_at_all(store: StoreUnderTest) -> None:
    for protocol in (Inspector, FailedJobs):
        names = [name for name in vars(protocol) if not name.startswith("_")]
        offered = [name for name in names if hasattr(store.queue, name)]
        assert offered in ([], names)
        assert feature(store.queue, protocol) is (offered == names)


# K3
async def test_closing_is_safe_before_the_first_use_and_twice(store: StoreUnderTest) -> None:
    unused = store.another() if store.opener else store.elsewhere()
    await unused.aclose()
    await unused.aclose()
    await push(store.queue, job("x"))
    assert ids(await drained(store.queue, 1)) == ["x"]


# K3
async def test_closing_one_driver_leaves_the_store_and_the_others_alone(store: StoreUnderTest) -> None:
    one = store.another() if store.opener else store.elsewhere()
    lease = await pushed_and_claimed(one)
    await one.aclose()
    await one.aclose()
    if store.opener:
        assert await where(store.queue) == {"leased": 1}
        await done(store.queue, Ack(lease))
    await assert_empty(store.queue)


async def test_a_driver_serves_one_event_loop_after_another(store: StoreUnderTest) -> None:
    for number in range(4):
        await in_a_loop_of_its_own(store, f"loop-{number}")
    await push(store.queue, job("x"))
    assert ids(await drained(store.queue, 1)) == ["x"]


async def test_a_driver_serves_several_event_loops_at_once(store: StoreUnderTest) -> None:
    await push(store.queue, job("first"))
    await asyncio.gather(*(in_a_loop_of_its_own(store, f"loop-{number}") for number in range(3)))
    assert ids(await drained(store.queue, 1)) == ["first"]


async def test_a_push_from_one_loop_wakes_a_claim_in_another(store: StoreUnderTest) -> None:
    claiming = threading.Event()
    got: list[str] = []

    async def life() -> None:
        claiming.set()
        lease = await claim_one(store.queue, wait=20)
        got.append(lease.id)
        await done(store.queue, Ack(lease))

    other = asyncio.create_task(asyncio.to_thread(asyncio.run, life()))
    await asyncio.to_thread(claiming.wait)
    await store.queue.counts(Q)
    await push(store.queue, job("x"))
    await asyncio.wait_for(other, 10)
    assert got == ["x"]


async def test_a_driver_survives_a_fork(store: StoreUnderTest) -> None:
    if store.opener is None:  # what a fork copies of a store in memory is not the store
        assert not store.queue.capabilities.shared
        return
    async with contenders(store, "fork", [{}]) as (parent,):
        report = await parent.hear()
    assert report == {"parent": ["stored", "stored"], "child": 0}
    assert sorted(ids(await claim(store.queue, 10))) == ["child", "parent-after", "parent-before"]

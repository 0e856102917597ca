"""Keepers renew and pushers push from threads, on connections of their own."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import msgspec

from tenure.naming import new_token
from tenure.queue import Ack, Cancelled, Keeper, Pusher, Queue, Release, Renewal
from tenure.testing.contract.steps import (
    SHORT,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    ids,
    job,
    jobs,
    lapsed,
    numbered,
    push,
    pushed_and_claimed,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


@contextmanager
def keeping(queue: Queue) -> Iterator[Keeper]:
    keeper = queue.keeper()
    try:
        yield keeper
    finally:
        keeper.close()


@contextmanager
def pushing(queue: Queue) -> Iterator[Pusher]:
    pusher = queue.pusher()
    try:
        yield pusher
    finally:
        pusher.close()


async def test_a_keeper_renews_what_is_held_and_nothing_else(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(3), job("x", queue="other"))
    leases = await claim(store.queue, 4, queues=[Q, "other"])
    await done(store.queue, Ack(leases[1]))
    leases.append(msgspec.structs.replace(leases[0], token=new_token()))
    with keeping(store.queue) as keeper:
        answers = await asyncio.to_thread(keeper.renew, leases)
        assert [answer.value for answer in answers] == ["held", "lost", "held", "held", "lost"]
        assert list(await asyncio.to_thread(keeper.renew, [])) == []
    assert await where(store.queue) == {"leased": 2}


# K7
async def test_a_keeper_holds_a_lease_while_the_event_loop_is_blocked(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, lease=0.5)
    stop = threading.Event()
    answers: list[Renewal] = []

    def keep() -> None:
        with keeping(store.queue) as keeper:
            while not stop.wait(0.1):
                answers.extend(keeper.renew([lease]))

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        time.sleep(1.5)  # noqa: ASYNC251 - a handler that blocks the loop is what is tested
        assert await claim(store.another()) == []
        assert await where(store.queue) == {"leased": 1}
    finally:
        stop.set()
        await asyncio.to_thread(thread.join)
    assert set(answers) == {Renewal.HELD}
    await done(store.queue, Ack(lease))


async def test_a_keeper_tells_of_a_cancel(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x"))
    with keeping(store.queue) as keeper:
        if await store.queue.cancel(Q, ["x"]) == [Cancelled.REQUESTED]:
            assert list(await asyncio.to_thread(keeper.renew, [lease])) == [Renewal.CANCEL_REQUESTED]


async def test_a_keeper_never_acquires(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, lease=SHORT)
    with keeping(store.queue) as keeper:
        await lapsed(store.queue)
        held = await claim_one(store.another())
        assert list(await asyncio.to_thread(keeper.renew, [lease, held])) == [Renewal.LOST, Renewal.HELD]
        await done(store.queue, Release(held))
        assert list(await asyncio.to_thread(keeper.renew, [lease, held])) == [Renewal.LOST] * 2
    assert await where(store.queue) == {"ready": 1}


async def test_a_keeper_is_closed_twice_and_before_its_first_use(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue)
    unused = store.queue.keeper()
    unused.close()
    unused.close()
    used = store.queue.keeper()
    assert list(await asyncio.to_thread(used.renew, [lease])) == [Renewal.HELD]
    await asyncio.to_thread(used.close)
    used.close()
    await done(store.queue, Ack(lease))


async def test_a_pusher_stores_each_job_once(store: StoreUnderTest) -> None:
    await push(store.queue, job("held"))
    with pushing(store.queue) as pusher:
        answers = await asyncio.to_thread(pusher.push, jobs("a", "held", "a"))
        assert [(one.id, one.outcome) for one in answers] == [("a", "stored"), ("held", "held"), ("a", "held")]
        assert list(await asyncio.to_thread(pusher.push, [])) == []
    assert ids(await drained(store.queue, 2)) == ["held", "a"]


async def test_a_pusher_takes_every_option(store: StoreUnderTest) -> None:
    with pushing(store.queue) as pusher:
        pushes = [job("later", delay=60), job("x", envelope=b"\x00\xff", crash_limit=1, expires_in=60)]
        await asyncio.to_thread(pusher.push, pushes)
    assert await where(store.queue) == {"ready": 1, "delayed": 1}
    lease = await claim_one(store.queue)
    assert (lease.id, lease.envelope, lease.doomed) == ("x", b"\x00\xff", None)


async def test_a_pusher_serves_many_threads(store: StoreUnderTest) -> None:
    with pushing(store.queue) as pusher, ThreadPoolExecutor(8) as pool:
        loop = asyncio.get_running_loop()
        pushes = [[job(f"t{thread}-{number}") for number in range(10)] for thread in range(8)]
        calls = [loop.run_in_executor(pool, pusher.push, [one]) for batch in pushes for one in batch]
        answers = await asyncio.gather(*calls)
    assert [one.outcome for (one,) in answers] == ["stored"] * 80
    assert [one.id for (one,) in answers] == [one.id for batch in pushes for one in batch]
    assert sorted(ids(await drained(store.queue, 80))) == sorted(one.id for batch in pushes for one in batch)


async def test_a_pusher_splits_what_one_call_cannot_carry(store: StoreUnderTest) -> None:
    with pushing(store.queue) as pusher:
        answers = await asyncio.to_thread(pusher.push, numbered(1100))
    assert {one.outcome for one in answers} == {"stored"}
    assert ids(await drained(store.queue, 1100, batch=200)) == [one.id for one in numbered(1100)]


async def test_a_pusher_wakes_a_waiting_claim(store: StoreUnderTest) -> None:
    with pushing(store.another()) as pusher:
        claiming = asyncio.create_task(claim(store.queue, wait=20))
        await store.queue.counts(Q)
        await asyncio.to_thread(pusher.push, [job("x")])
        assert ids(await asyncio.wait_for(claiming, 5)) == ["x"]


async def test_a_pusher_is_closed_twice_and_before_its_first_use(store: StoreUnderTest) -> None:
    unused = store.queue.pusher()
    unused.close()
    unused.close()
    used = store.queue.pusher()
    await asyncio.to_thread(used.push, [job("x")])
    await asyncio.to_thread(used.close)
    used.close()
    assert ids(await drained(store.queue, 1)) == ["x"]


async def test_the_same_id_pushed_by_both_ways_at_once_is_one_job(store: StoreUnderTest) -> None:
    with pushing(store.queue) as pusher:
        for number in range(20):
            one = job(f"x{number}")
            blocking = asyncio.to_thread(pusher.push, [one])
            (a,), (b,) = await asyncio.gather(blocking, store.another().push([one]))
            assert sorted([a.outcome, b.outcome]) == ["held", "stored"]
    assert len(await drained(store.queue, 20)) == 20
    await assert_empty(store.queue)

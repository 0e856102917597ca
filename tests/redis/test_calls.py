"""Bulk calls are split and put together again; what fails in the middle takes nothing else with it."""

import asyncio
import threading
import time

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.endpoint import Endpoint
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.lanes import IDLE, Lanes, Patience
from tenure.drivers.redis.scripts import Scripts
from tenure.drivers.redis.session import Session
from tenure.drivers.redis.waiting import Waiter
from tenure.errors import ConnectionFailed, InvalidOption, StoreRefused
from tenure.queue import Ack, Claimed, Push, Release, Renewal, Settled, Settlement
from tests.redis.scripted import Scripted
from tests.redis.steps import Q, claim, claim_one, ids, job, jobs, waiting
from tests.support.processes import eventually_async
from tests.support.proxy import Proxy
from tests.support.servers import Server

# What is tested here is this side of the connection: one server will do.
SERVERS = ["valkey"]


@pytest.mark.parametrize("cancellations", [1, 3])
async def test_a_claim_cancelled_while_it_is_under_way_gives_back_what_it_brings(
    server: Server, queue: RedisQueue, namespace: str, cancellations: int
) -> None:
    with Proxy(server.socket) as proxy:
        far = RedisQueue.from_url(proxy.url, namespace=namespace)
        await queue.push(jobs(3))
        await far.counts(Q)
        proxy.delay(0.1)
        claiming = asyncio.create_task(claim(far, 2, wait=5))

        async def leased() -> bool:
            return (await queue.counts(Q)).leased == 2

        await eventually_async(leased, every=0.001)
        for _ in range(cancellations):
            claiming.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await claiming
        # It is back before the cancelled caller goes on, and it costs no attempt.
        assert (await queue.counts(Q)).leased == 0
        assert sorted(lease.attempt for lease in await claim(queue, 3)) == [1, 1, 1]
        await far.aclose()


async def test_a_cancelled_claim_whose_server_is_gone_is_cancelled_all_the_same(
    server: Server, queue: RedisQueue, namespace: str
) -> None:
    with Proxy(server.socket) as proxy:
        far = RedisQueue.from_url(proxy.url, namespace=namespace, patience=Patience(answer=0.5, repeats=0.5))
        await far.push(jobs(2))
        proxy.delay(0.1)
        claiming = asyncio.create_task(claim(far, 2))

        async def leased() -> bool:
            return (await queue.counts(Q)).leased == 2

        await eventually_async(leased, every=0.001)
        claiming.cancel()
        await asyncio.sleep(0)
        proxy.refuse()
        proxy.cut_next_reply(b"free")
        with pytest.raises(asyncio.CancelledError):
            await claiming
        await far.aclose()


async def test_a_queue_that_fails_does_not_take_what_others_brought(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    client.set(f"{{{namespace}:spoilt}}:jobs", "x")
    await queue.push([job("a")])
    assert ids((await queue.claim([Q, "spoilt"], limit=5, lease=60, wait=0)).leases) == ["a"]
    with pytest.raises(StoreRefused):
        await queue.claim([Q, "spoilt"], limit=5, lease=60, wait=0)


async def test_what_was_settled_before_another_queue_failed_is_told_as_repeated(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    await queue.push([job("a"), job("b"), job("c", queue="other"), job("d")])
    leases = (await queue.claim([Q, "other"], limit=5, lease=60, wait=0)).leases
    await queue.cancel(Q, ["d"])
    key = f"{{{namespace}:other}}:jobs"
    client.set(key, "x")
    ends: list[Settlement] = [Release(leases[3]), Release(leases[2]), Ack(leases[0]), Ack(leases[1])]
    assert ids([end.lease for end in ends]) == ["c", "d", "a", "b"]
    ends = [ends[1], ends[0], *ends[2:]]
    with pytest.raises(StoreRefused):
        await queue.settle(ends)
    client.delete(key)
    assert await queue.settle(ends) == [Settled.CANCELLED, Settled.DONE, Settled.REPEATED, Settled.REPEATED]
    assert await queue.settle(ends) == [Settled.STALE] * 4


async def test_a_push_to_several_queues_keeps_the_order_of_each(queue: RedisQueue) -> None:
    bulk = [job(f"{place}", queue=f"q{place % 3}") for place in range(1600)]
    assert {one.outcome for one in await queue.push(bulk)} == {"stored"}
    for place in range(3):
        leases = (await queue.claim([f"q{place}"], limit=1000, lease=60, wait=0)).leases
        assert ids(leases) == [str(number) for number in range(place, 1600, 3)]


async def test_no_call_carries_more_than_a_mebibyte_or_500_jobs(server: Server, namespace: str) -> None:
    with Proxy(server.socket) as proxy:
        queue = RedisQueue.from_url(proxy.url, namespace=namespace)
        await queue.push([job(f"big{place}", envelope=b"x" * 60_000) for place in range(40)])
        await queue.push([job("huge", envelope=b"x" * 3_000_000)])
        await queue.push(jobs(1100))
        digest = Scripts()["push"].digest
        sizes = [len(command) for command in proxy.executed_commands if digest in command or b"EVAL\r\n" in command]
        assert len(sizes) in {7, 8}  # one more if the script was not known yet
        assert sorted(sizes)[-2] < 1_060_000
        assert (await queue.counts(Q)).ready == 1141
        await queue.aclose()


async def test_a_part_that_fails_stops_the_parts_behind_it(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    client.set(f"{{{namespace}:spoilt}}:jobs", "x")
    answers = await queue.push([job("a"), job("b", queue="spoilt"), job("c"), job("d", queue="third")])
    assert [one.outcome for one in answers] == ["stored", "refused", "stored", "refused"]
    assert isinstance(answers[1].error, StoreRefused)
    with pytest.raises(StoreRefused):
        await queue.push([job("b", queue="spoilt")])


async def test_one_call_leases_at_most_a_thousand(queue: RedisQueue) -> None:
    await queue.push(jobs(1200))
    leases = await claim(queue, 5000)
    assert len(leases) == 1000
    more = await claim(queue, 5000)
    assert await queue.renew([*leases, *more]) == [Renewal.HELD] * 1200
    assert set(await queue.settle([Ack(lease) for lease in [*more, *leases]])) == {Settled.DONE}
    assert await queue.claim([Q], limit=0, lease=1, wait=0) == Claimed()
    assert await queue.claim([], limit=5, lease=1, wait=0) == Claimed()


async def test_a_job_behind_a_thousand_cancelled_ones_is_found_in_one_call(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    await queue.push([*jobs(1000), job("last")])
    await queue.cancel(Q, [f"j{place}" for place in range(1000)])
    assert ids(await claim(queue, 5)) == ["last"]
    assert "ready" not in Scripted(client, namespace).dump()


async def test_the_records_of_a_clear_are_taken_away_by_later_calls_a_hundred_at_a_time(
    server: Server, client: redis.Redis, namespace: str
) -> None:
    raw = Scripted(client, namespace)
    with Proxy(server.socket) as proxy:
        queue = RedisQueue.from_url(proxy.url, namespace=namespace)
        await queue.push(jobs(450))
        assert await queue.clear(Q) == 450
        await queue.push(jobs(20))
        assert await queue.clear(Q) == 20
        assert len(raw.dump()["gone"]) == 2
        assert await claim(queue) == []

        async def swept() -> bool:
            await claim(queue)
            return "gone" not in raw.dump()

        await eventually_async(swept)
        assert not [name for name in raw.dump() if name.startswith("gone")]
        # 100, 100, 100, 100, 50, none; 20, none; the first one is sent whole if the script is not known yet.
        assert proxy.count(Scripts()["sweep"].digest) >= 7
        await queue.aclose()


async def test_sweeping_that_fails_is_begun_again_by_another_claim(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    raw = Scripted(client, namespace)
    await queue.push(jobs(5))
    await queue.clear(Q)
    (leftover,) = (name for name in raw.dump() if name.startswith("gone:"))
    kept = client.dump(raw.key(leftover))
    client.delete(raw.key(leftover))
    client.set(raw.key(leftover), "x")
    for _ in range(3):
        assert await claim(queue) == []
    client.delete(raw.key(leftover))
    client.restore(raw.key(leftover), 0, kept)  # type: ignore[arg-type]

    async def swept() -> bool:
        await claim(queue)
        return "gone" not in raw.dump()

    await eventually_async(swept)


NAN = float("nan")


@pytest.mark.parametrize(
    "wrong",
    [
        job("a", delay=-1.0),
        job("a", delay=NAN),
        job("a", delay=float("inf")),
        job("a", expires_in=NAN),
        job("a", priority=101),
        job("a", priority=-101),
        job("a", crash_limit=0),
        job("a|1"),
        job("a\n"),
        job(""),
        job("a", queue="a b"),
    ],
)
async def test_a_push_that_cannot_be_right_is_refused_whole(queue: RedisQueue, wrong: Push) -> None:
    with pytest.raises(InvalidOption):
        await queue.push([job("good"), wrong])
    assert (await queue.counts(Q)).size == 0


async def test_claims_and_settlements_that_cannot_be_right_are_refused(queue: RedisQueue) -> None:
    await queue.push([job("a")])
    for wrong in ({"lease": NAN}, {"lease": -1}, {"wait": NAN}, {"crash_limit": 0}):
        with pytest.raises(InvalidOption):
            await queue.claim([Q], **{"limit": 1, "lease": 60, "wait": 0, **wrong})  # type: ignore[arg-type]
    lease = await claim_one(queue)
    with pytest.raises(InvalidOption):
        await queue.settle([Release(lease, delay=NAN)])
    with pytest.raises(InvalidOption):
        await queue.cancel(Q, ["a|1"])


async def test_a_delay_of_ten_thousand_years_is_kept(queue: RedisQueue) -> None:
    await queue.push([job("a", delay=3.2e11), job("b", delay=1e300)])
    claimed = await queue.claim([Q], limit=1, lease=60, wait=0)
    assert claimed.leases == []
    assert claimed.next_due is not None
    assert claimed.next_due > 9e10


def test_closing_in_one_loop_closes_the_others_too(server: Server, client: redis.Redis, namespace: str) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace)
    used, closed = threading.Event(), threading.Event()
    told: list[str] = []

    async def other() -> None:
        await queue.counts(Q)
        used.set()
        claiming = asyncio.create_task(claim(queue, wait=30))
        await asyncio.to_thread(closed.wait, 10)
        try:
            await claiming
        except ConnectionFailed as error:
            told.append(str(error))

    async def one() -> None:
        await queue.counts(Q)
        await queue.aclose()

    thread = threading.Thread(target=asyncio.run, args=(other(),))
    thread.start()
    used.wait(10)
    asyncio.run(waiting(client))
    asyncio.run(one())
    closed.set()
    thread.join(10)
    assert told == ["the queue is closed; nothing was sent"]


def test_a_lane_takes_a_new_id_after_a_long_rest() -> None:
    lanes = Lanes()
    lane = lanes.take("push", Q)
    lanes.give("push", Q, lane)
    assert lanes.take("push", Q) is lane
    lane.recorded()
    lane.used -= IDLE + 1
    lanes.give("push", Q, lane)
    fresh = lanes.take("push", Q)
    assert fresh.client != lane.client
    assert fresh.number == 1


async def test_a_marker_that_came_too_late_for_its_reader_is_not_forgotten(
    server: Server, client: redis.Redis, namespace: str
) -> None:
    session = Session(Endpoint.from_url(server.url), Keyspace(namespace), Scripts(), Patience())
    waiter, wake = Waiter(session), Keyspace(namespace).wake([Q])[0]
    for _ in range(3):
        await waiter.wait([Q], 0.03)
        # The server has not looked yet whether that reader is over time, and may still hand it the marker.
        client.rpush(wake, "1")
        before = time.perf_counter()
        await waiter.wait([Q], 5)
        assert time.perf_counter() - before < 1
        assert client.llen(wake) == 0
    await session.close()

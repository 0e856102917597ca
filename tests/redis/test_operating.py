"""Listing, pruning, pausing and the unreadable store, where they are this store's own: bounds, places, lost replies."""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.claiming import HELD_UP
from tenure.errors import InvalidOption
from tenure.operating import Control, Diagnosis, JobLister, JobPage, Pruning, UnreadableStore
from tenure.queue import Ack, Fail, Failure, JobState, Lease, Release, SetAside, feature
from tests.redis.scripted import Scripted, with_set_clock
from tests.redis.steps import Q, claim, claim_one, ids, job, jobs, waiting
from tests.support.processes import eventually_async
from tests.support.proxy import Proxy
from tests.support.servers import Server

WHY = Failure(reason="exception")


@pytest.fixture
def raw(client: redis.Redis, namespace: str) -> Scripted:
    return Scripted(client, namespace)


def listed(page: JobPage) -> list[str]:
    return [one.id for one in page.jobs]


def test_it_has_everything_that_operators_ask_for(server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace)
    for protocol in (JobLister, UnreadableStore, Pruning, Control, Diagnosis):
        assert feature(queue, protocol)


# ------------------------------------------------------------------------------------------------------------- listing


@pytest.mark.parametrize("state", [JobState.READY, JobState.DELAYED, JobState.RUNNING])
async def test_a_listing_keeps_its_place_while_jobs_before_it_leave(
    queue: RedisQueue, state: JobState, client: redis.Redis
) -> None:
    await queue.push(
        [job(f"j{n:02}", delay=600.0 if state is JobState.DELAYED else 0, priority=-(n // 20)) for n in range(60)]
    )
    leases: list[Lease] = []
    if state is JobState.RUNNING:
        leases += await claim(queue, 60)
    first = await queue.jobs(Q, state, limit=10)
    seen = listed(first)
    cursor = first.cursor
    while cursor is not None:
        # What was just listed leaves, by one way or another, and its place with it.
        if state is JobState.READY:
            assert ids(await claim(queue, 10)) == seen[-10:]
        elif state is JobState.DELAYED:
            await queue.cancel(Q, seen[-10:])
        else:
            await queue.settle([Ack(lease) for lease in leases if lease.id in seen[-10:]])
        await queue.push([job(f"new-{len(seen)}", priority=-9)])
        page = await queue.jobs(Q, state, limit=10, cursor=cursor)
        seen += listed(page)
        cursor = page.cursor
        if len(seen) >= 60:
            break
    assert seen[:60] == sorted(seen[:60])
    assert len(set(seen)) == len(seen) >= 60


async def test_a_listing_keeps_its_place_over_a_clear(queue: RedisQueue) -> None:
    await queue.push(jobs(20))
    page = await queue.jobs(Q, JobState.READY, limit=5)
    await queue.clear(Q)
    await queue.push(jobs(3, "new"))
    assert listed(await queue.jobs(Q, JobState.READY, limit=5, cursor=page.cursor)) == ["new0", "new1", "new2"]


async def test_thousands_of_places_of_cancelled_jobs_are_passed_over_in_bounded_calls(
    queue: RedisQueue, client: redis.Redis, server: Server, namespace: str
) -> None:
    await queue.push([*jobs(2500), job("last")])
    await queue.cancel(Q, [f"j{n}" for n in range(1, 2500)])
    with Proxy(server.socket) as proxy:
        far = RedisQueue.from_url(proxy.url, namespace=namespace)
        first = await far.jobs(Q, JobState.READY, limit=1)
        before = proxy.count(b"EVALSHA")
        second = await far.jobs(Q, JobState.READY, limit=1, cursor=first.cursor)
        assert (listed(first), listed(second), second.cursor) == (["j0"], ["last"], None)
        assert proxy.count(b"EVALSHA") - before <= 4
        await far.aclose()


async def test_a_page_of_large_jobs_ends_at_a_mebibyte(queue: RedisQueue, raw: Scripted) -> None:
    await queue.push(jobs(60, envelope=b"x" * 50_000))
    page = await queue.jobs(Q, JobState.READY, limit=60)
    assert 20 <= len(page.jobs) <= 31
    seen = listed(page)
    while page.cursor is not None:
        page = await queue.jobs(Q, JobState.READY, limit=60, cursor=page.cursor)
        seen += listed(page)
    assert seen == [f"j{n}" for n in range(60)]


async def test_a_listing_does_not_look_at_more_than_it_shows(own_server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace)
    with redis.Redis(unix_socket_path=own_server.socket, protocol=2) as client:
        keys = Scripted(client, namespace)
        pipeline = client.pipeline(transaction=False)
        for start in range(0, 40_000, 1000):
            names = range(start, start + 1000)
            pipeline.hset(keys.key("jobs"), mapping={f"j{n}": f"{n}|0|0|0|0|0|1|0\n{{}}" for n in names})
            pipeline.zadd(keys.key("delayed"), {f"j{n}|{n}": 10**13 for n in names})
            pipeline.rpush(keys.key("ready"), *(f"j{n}|{n}" for n in names))
        pipeline.execute()
        # In the middle of forty thousand that fall due at the same time: found by halving, not by walking.
        page = keys.call("delayed", [10, 1, 10**13, "j25|"])
        assert page[4:5] == [b"j26000|26000"]
        client.config_resetstat()
        keys.call("delayed", [10, 1, 10**13, "j25|"])
        keys.call("ready", [10, 3, 20_000, ""])
        calls = {name: used["calls"] for name, used in client.info("commandstats").items()}
        assert sum(calls.values()) < 60
    await queue.aclose()


async def test_a_cursor_shows_no_token(queue: RedisQueue) -> None:
    await queue.push(jobs(2))
    leases = await claim(queue, 2)
    page = await queue.jobs(Q, JobState.RUNNING, limit=1)
    assert page.cursor is not None
    assert all(lease.token not in repr(page) for lease in leases)
    assert all(lease.token.encode() not in base64.urlsafe_b64decode(page.cursor) for lease in leases)


async def test_a_cursor_of_another_state_is_refused(queue: RedisQueue) -> None:
    await queue.push([*jobs(3), *(job(f"d{n}", delay=60) for n in range(3))])
    cursors = {state: (await queue.jobs(Q, state, limit=1)).cursor for state in (JobState.READY, JobState.DELAYED)}
    with pytest.raises(InvalidOption):
        await queue.jobs(Q, JobState.DELAYED, cursor=cursors[JobState.READY])
    with pytest.raises(InvalidOption):
        await queue.jobs(Q, JobState.RUNNING, cursor=cursors[JobState.DELAYED])


async def test_what_somebody_else_wrote_does_not_stop_a_listing(queue: RedisQueue, raw: Scripted) -> None:
    await queue.push([job("a"), job("b", delay=60), job("c")])
    held = await claim_one(queue)
    raw.client.rpush(raw.key("ready"), "", "|", "nobody|1", b"\xff|\xfe", "spoilt|1")
    raw.client.hset(raw.key("jobs"), mapping={"spoilt": b"\xff no header", b"\xff": b"1|1"})
    raw.client.zadd(raw.key("delayed"), {b"garbage": 1, b"\xff\xfe": float("inf"), b"spoilt|1": 0.5})
    raw.client.zadd(raw.key("leased"), {"garbage": float("-inf"), "a": 1.5, f"{held.id}|x|y|z": 3})
    raw.client.hset(raw.key("taken"), mapping={"ready": "many", "suspects": b"\xff"})
    ready = await queue.jobs(Q, JobState.READY, limit=1)
    rest = await queue.jobs(Q, JobState.READY, cursor=ready.cursor)
    assert listed(ready) == ["c"]
    (spoilt,) = (one for one in rest.jobs if one.id == "spoilt")
    assert (spoilt.name, spoilt.attempts, spoilt.seconds) == ("", 0, None)
    assert "b" in listed(await queue.jobs(Q, JobState.DELAYED))
    assert held.id in listed(await queue.jobs(Q, JobState.RUNNING))
    assert ids(await claim(queue, 9)) == ["c"]


# ------------------------------------------------------------------------------------------------------------- pruning


def test_a_prune_goes_in_steps_of_a_hundred_and_takes_nothing_that_failed_since(raw: Scripted) -> None:
    raw = Scripted(raw.client, raw.key("").decode()[1:].partition(":")[0], with_set_clock())
    raw.set_clock(1000)

    def fail(start: int, count: int, at: int) -> None:
        for number in range(start, start + count):
            raw.client.hset(raw.key("failed"), f"f{number}", "1|1|0|0|0|0|1|0\n{}\n{}")
            raw.client.zadd(raw.key("failed:at"), {f"f{number}": at})

    fail(0, 150, 900)
    fail(150, 30, 1000)
    # The first step takes all of its own millisecond; what fails in it afterwards is not among those that were meant.
    assert raw.numbered("prune", "p", 1, [0, ""])[1] == b"100|100|999"
    assert raw.client.zcount(raw.key("failed:at"), 1000, 1000) == 0
    fail(200, 5, 1000)
    assert raw.numbered("prune", "p", 2, [0, "999"])[1] == b"80|80|999"
    assert raw.client.hlen(raw.key("failed")) == 5
    fail(300, 120, 1000)
    assert raw.numbered("prune", "p", 3, [0, ""])[1] == b"0|0|"
    raw.set_clock(1001)
    assert raw.numbered("prune", "p", 4, [0, ""])[1] == b"100|100|1000"
    assert raw.numbered("prune", "p", 5, [0, "1000"])[1] == b"25|25|1000"
    fail(0, 2, 1001)
    assert raw.numbered("prune", "p", 6, [1, ""])[1] == b"0|0|1000"


async def test_a_place_without_a_record_is_removed_and_not_counted(queue: RedisQueue, raw: Scripted) -> None:
    raw.client.zadd(raw.key("failed:at"), {"ghost": 5})
    assert await queue.prune(Q, older_than=0) == 0
    assert "failed:at" not in raw.dump()


# ------------------------------------------------------------------------------------------------ clearing, cancelling


async def test_requests_of_cleared_jobs_go_with_their_records_and_those_of_others_stay(
    queue: RedisQueue, raw: Scripted
) -> None:
    await queue.push(jobs(300))
    lapsing = await claim(queue, 100, lease=0.05)
    held = await claim(queue, 50)
    await queue.cancel(Q, ids([*lapsing, *held]))
    await queue.pause(Q)

    async def recovered() -> bool:
        await claim(queue)
        return (await queue.counts(Q)).leased == 50

    await eventually_async(recovered)
    assert raw.client.hlen(raw.key("cancel")) == 150
    assert await queue.clear(Q) == 250
    await queue.resume(Q)
    await queue.push([job(lapsing[0].id)])
    again = await claim_one(queue)
    assert again.doomed is None
    await queue.cancel(Q, [again.id])

    async def swept() -> bool:
        await claim(queue)
        return raw.dump().keys().isdisjoint({"gone"})

    await eventually_async(swept)
    assert set(raw.dump()["cancel"]) == {lease.id.encode() for lease in [*held, again]}


async def test_a_cancelled_claim_whose_server_has_gone_keeps_its_caller_for_a_few_seconds_only(
    server: Server, queue: RedisQueue, namespace: str
) -> None:
    with Proxy(server.socket) as proxy:
        far = RedisQueue.from_url(proxy.url, namespace=namespace)
        await far.push(jobs(3))
        assert ids(await claim(far)) == ["j0"]
        proxy.blackhole()
        claiming = asyncio.create_task(claim(far, 5))

        async def leased() -> bool:
            return (await queue.counts(Q)).leased == 3

        await eventually_async(leased)
        before = time.monotonic()
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming
        assert HELD_UP - 0.5 < time.monotonic() - before < HELD_UP + 1.5
        proxy.heal()

        async def given_back() -> bool:
            return (await queue.counts(Q)).leased == 1

        await eventually_async(given_back)
        leases = await claim(queue, 5)
        assert {(lease.id, lease.attempt, lease.deliveries) for lease in leases} == {("j1", 1, 2), ("j2", 1, 2)}
        await far.aclose()


# ------------------------------------------------------------------------------------------------------------- pausing


async def test_a_paused_queue_keeps_nobody_busy(
    server: Server, queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    await queue.push(jobs(200))
    await queue.pause(Q)
    with Proxy(server.socket) as proxy:
        far = RedisQueue.from_url(proxy.url, namespace=namespace)
        claiming = asyncio.create_task(claim(far, 5, wait=2.2))
        await waiting(client)
        await queue.push(jobs(20, "more"))
        assert await claiming == []
        # It looks once a second, and for a marker that was left; it does not spin over jobs that it may not have.
        assert proxy.count(b"EVALSHA") <= 8
        await far.aclose()


async def test_which_queues_are_paused_is_one_round_trip(server: Server, namespace: str) -> None:
    with Proxy(server.socket) as proxy:
        queue = RedisQueue.from_url(proxy.url, namespace=namespace)
        await queue.pause("q7")
        before = proxy.executed
        assert list(await queue.paused([f"q{n}" for n in range(10)])) == [n == 7 for n in range(10)]
        assert proxy.executed == before + 1
        assert list(await queue.paused([])) == []
        assert proxy.executed == before + 1
        await queue.aclose()


# ----------------------------------------------------------------------------------------------------- the unreadable


async def test_keys_are_those_of_the_stream_and_nothing_else_is_one(queue: RedisQueue, raw: Scripted) -> None:
    await queue.push(jobs(3))
    await queue.settle([SetAside(lease, "odd") for lease in await claim(queue, 3)])
    records = await queue.unreadable(Q)
    assert [record.key.encode() for record in records] == [key for key, _ in raw.client.xrange(raw.key("unreadable"))]  # type: ignore[union-attr]
    for odd in ("-", "+", "(1-1", "1", f"0{records[0].key}", "18446744073709551615-18446744073709551615", "1-1-1"):
        assert await queue.unreadable_bytes(Q, odd) is None
        assert await queue.drop_unreadable(Q, [odd]) == [False]
        with pytest.raises(InvalidOption):
            await queue.unreadable(Q, after=odd)
    assert await queue.unreadable(Q, after="999999999999999999-0") == []


async def test_more_records_than_one_call_tells_are_told_all(queue: RedisQueue, raw: Scripted) -> None:
    pipeline = raw.client.pipeline(transaction=False)
    for number in range(1, 1201):
        pipeline.xadd(raw.key("unreadable"), {"id": f"x{number}", "reason": "no", "record": "r"}, id=f"{number}-0")
    pipeline.execute()
    records = await queue.unreadable(Q, limit=1100)
    assert [record.id for record in records] == [f"x{number}" for number in range(1, 1101)]
    rest = await queue.unreadable(Q, limit=1100, after=records[-1].key)
    assert len(rest) == 100
    assert await queue.drop_unreadable(Q, [record.key for record in (*records, *rest)]) == [True] * 1200
    assert (await queue.counts(Q)).unreadable == 0


async def test_an_entry_that_somebody_else_wrote_is_told_as_far_as_it_goes(queue: RedisQueue, raw: Scripted) -> None:
    raw.client.xadd(raw.key("unreadable"), {b"\xff": b"\xfe", b"id": b"\xff"}, id="5-0")
    (record,) = await queue.unreadable(Q)
    assert (record.id, record.reason, record.size, record.set_aside_at) == ("\ufffd", "", 0, 0.005)
    assert await queue.unreadable_bytes(Q, record.key) == b""


# ------------------------------------------------------------------------------------------------------- lost replies


async def test_operators_changes_are_repeated_and_answered_as_the_first_time(
    server: Server, queue: RedisQueue, namespace: str
) -> None:
    await queue.push(jobs(5))
    leases = await claim(queue, 5)
    await queue.settle([Fail(leases[0], WHY), Fail(leases[1], WHY), SetAside(leases[2], "no"), Release(leases[3])])
    (record,) = await queue.unreadable(Q)
    with Proxy(server.socket) as proxy:
        far = RedisQueue.from_url(proxy.url, namespace=namespace)
        calls: list[tuple[bytes, Callable[[], Awaitable[Any]], Any]] = [
            (b":failed:at", lambda: far.prune(Q, older_than=0), 2),
            (b":paused", lambda: far.pause(Q), True),
            (b":paused", lambda: far.resume(Q), True),
            (b":unreadable", lambda: far.drop_unreadable(Q, [record.key]), [True]),
            (b":restart", far.request_restart, None),
        ]
        for match, call, answer in calls:
            cut = proxy.cut_next_reply(match)
            answered = await call()
            assert cut.happened
            assert answered == (await queue.restart_marker() if answer is None else answer)
        assert await queue.prune(Q, older_than=0) == 0
        await far.aclose()

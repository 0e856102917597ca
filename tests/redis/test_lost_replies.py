"""A reply that is lost is asked for again, and the second sending changes nothing (P1)."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.lanes import Patience
from tenure.errors import ConnectionFailed, OutcomeUnknown
from tenure.queue import Ack, Cancelled, Fail, Failure, Release, Settled
from tests.redis.scripted import Scripted
from tests.redis.steps import Q, claim, claim_one, ids, job, jobs
from tests.support.processes import eventually_async
from tests.support.proxy import Proxy
from tests.support.servers import Server

FAILURE = Failure(reason="exception")

# What is tested here is this side of the connection: one server will do.
SERVERS = ["valkey"]


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.socket) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: Proxy, namespace: str, client: redis.Redis) -> AsyncIterator[RedisQueue]:
    """A driver behind the proxy, past its handshake and its first calls."""
    queue = RedisQueue.from_url(proxy.url, namespace=namespace, patience=Patience(answer=0.5, repeats=1.5))
    await queue.push([job("first")])
    await queue.settle([Ack(await claim_one(queue))])
    yield queue
    await queue.aclose()


@pytest.mark.parametrize("keep", [0, 3])
async def test_a_push_whose_reply_is_cut_makes_one_job(far: RedisQueue, proxy: Proxy, keep: int) -> None:
    cut = proxy.cut_next_reply(b"payload-a", keep=keep)
    (pushed,) = await far.push([job("a", envelope=b"payload-a")])
    assert cut.happened
    assert pushed.outcome == "stored"
    assert proxy.count(b"payload-a") == 2
    assert ids(await claim(far, 10)) == ["a"]


async def test_a_push_is_stored_once_though_its_job_is_over_when_the_repeat_arrives(
    far: RedisQueue, queue: RedisQueue, proxy: Proxy
) -> None:
    proxy.blackhole()
    pushing = asyncio.create_task(far.push([job("a")]))
    lease = await claim_one(queue, wait=5)
    assert await queue.settle([Ack(lease)]) == [Settled.DONE]
    proxy.heal()
    (pushed,) = await pushing
    assert pushed.outcome == "stored"
    assert (await queue.counts(Q)).size == 0


async def test_the_parts_of_a_bulk_are_each_stored_once(far: RedisQueue, proxy: Proxy) -> None:
    for match in (b"payload-0700", b"payload-1200"):
        proxy.cut_next_reply(match)
    bulk = [job(f"j{n}", envelope=b"payload-%04d" % n) for n in range(1300)]
    assert {pushed.outcome for pushed in await far.push(bulk)} == {"stored"}
    assert (await far.counts(Q)).ready == 1300


async def test_a_claim_whose_reply_is_cut_gets_what_it_was_given(far: RedisQueue, proxy: Proxy) -> None:
    await far.push([job("a", envelope=b"payload-a"), job("b")])
    cut = proxy.cut_next_reply(b"\r\n777\r\n")  # the length of the lease, in ms
    leases = await claim(far, 2, lease=0.777)
    assert cut.happened
    assert [(lease.id, lease.deliveries) for lease in leases] == [("a", 1), ("b", 1)]
    assert leases[0].envelope == b"payload-a"
    assert await far.settle([Ack(lease) for lease in leases]) == [Settled.DONE] * 2


async def test_a_repeated_claim_does_not_get_what_it_no_longer_holds(
    far: RedisQueue, queue: RedisQueue, proxy: Proxy, client: redis.Redis, namespace: str
) -> None:
    await far.push([job("a"), job("b")])
    proxy.blackhole()
    claiming = asyncio.create_task(claim(far, 2))
    raw = Scripted(client, namespace)

    async def both_leased() -> list[tuple[bytes, int]]:
        leased: list[tuple[bytes, int]] = raw.dump().get("leased", [])
        return leased if len(leased) == 2 else []

    leased = await eventually_async(both_leased)
    # Somebody who read the store settles one of the two.
    raw.settle("thief", 1, [leased[0][0]])
    proxy.heal()
    assert len(await claiming) == 1


async def test_a_settlement_whose_reply_is_cut_is_done_once_and_told_as_repeated(far: RedisQueue, proxy: Proxy) -> None:
    await far.push(jobs(4))
    leases = await claim(far, 4)
    cut = proxy.cut_next_reply(leases[0].token.encode())
    settled = await far.settle([Ack(leases[0]), Release(leases[1]), Fail(leases[2], FAILURE), Ack(leases[0])])
    assert cut.happened
    assert settled == [Settled.REPEATED, Settled.REPEATED, Settled.REPEATED, Settled.STALE]
    counts = await far.counts(Q)
    assert (counts.ready, counts.leased, counts.failed) == (1, 1, 1)


async def test_a_clear_whose_reply_is_cut_tells_the_exact_number(far: RedisQueue, proxy: Proxy) -> None:
    await far.push(jobs(7))
    cut = proxy.cut_next_reply(b":gone:")
    assert await far.clear(Q) == 7
    assert cut.happened
    assert await far.clear(Q) == 0


# S15
async def test_a_cancel_a_retry_and_a_forget_are_repeated_too(far: RedisQueue, proxy: Proxy) -> None:
    await far.push(jobs(3))
    first, second = await claim(far, 2)
    await far.settle([Fail(first, FAILURE), Fail(second, FAILURE)])
    failed = await far.failed(Q)
    for call, match in (
        (far.cancel(Q, ["j2"]), b"\r\nj2\r\n"),
        (far.retry(failed[:1]), b"\r\nj0\r\n"),
        (far.forget(failed[1:]), b"\r\nj1\r\n"),
    ):
        cut = proxy.cut_next_reply(match)
        (answer,) = await call
        assert cut.happened
        assert answer in {Cancelled.REMOVED, True}


async def test_a_request_that_never_arrived_is_sent_again(far: RedisQueue, proxy: Proxy) -> None:
    cut = proxy.cut_next_request(b"payload-a")
    assert (await far.push([job("a", envelope=b"payload-a")]))[0].outcome == "stored"
    assert cut.happened


async def test_a_swallowed_reply_counts_as_lost_after_a_while(far: RedisQueue, proxy: Proxy) -> None:
    proxy.blackhole()
    asyncio.get_running_loop().call_later(0.8, proxy.heal)
    assert (await far.push([job("a")]))[0].outcome == "stored"
    assert ids(await claim(far, 5)) == ["a"]


async def test_when_no_repeat_is_answered_the_outcome_is_unknown(
    far: RedisQueue, queue: RedisQueue, proxy: Proxy
) -> None:
    proxy.blackhole()
    before = time.monotonic()
    bulk = [*jobs(500), job("behind")]
    pushed = await far.push(bulk)
    assert 1.5 <= time.monotonic() - before < 6
    assert {one.outcome for one in pushed[:500]} == {"unknown"}
    assert isinstance(pushed[0].error, OutcomeUnknown)
    # What follows the part that failed was not sent.
    assert pushed[500].outcome == "refused"
    with pytest.raises(OutcomeUnknown):
        await claim(far)
    proxy.heal()
    # The lane whose fate is unknown is not used again.
    assert (await far.push([job("after")]))[0].outcome == "stored"
    assert (await queue.counts(Q)).ready + (await queue.counts(Q)).leased == 501


async def test_without_a_connection_nothing_was_sent(far: RedisQueue, queue: RedisQueue, proxy: Proxy) -> None:
    proxy.refuse()
    proxy.kill_connections()
    with pytest.raises(ConnectionFailed):
        await far.push([job("a")])
    with pytest.raises(ConnectionFailed):
        await claim(far)
    with pytest.raises(ConnectionFailed):
        await far.counts(Q)
    assert (await queue.counts(Q)).size == 0
    proxy.heal()
    assert (await far.push([job("a")]))[0].outcome == "stored"


async def test_a_dead_connection_is_noticed_before_anything_is_sent(far: RedisQueue, proxy: Proxy) -> None:
    for _ in range(3):
        proxy.kill_connections()
        sent = proxy.executed
        assert (await far.push([job("a")]))[0].outcome in {"stored", "held"}
        assert proxy.executed == sent + 1


async def test_a_call_whose_number_the_store_has_forgotten_goes_under_a_new_id(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    await queue.push([job("a")])
    leases = await claim(queue)
    for key in client.scan_iter(match=f"*{namespace}*:client:*"):
        client.delete(key)
    assert (await queue.push([job("b")]))[0].outcome == "stored"
    assert await queue.settle([Ack(leases[0])]) == [Settled.DONE]
    assert ids(await claim(queue)) == ["b"]
    assert (await queue.push([job("b")]))[0].outcome == "held"


async def test_a_repeat_whose_number_the_store_has_forgotten_has_an_unknown_outcome(
    far: RedisQueue, proxy: Proxy, client: redis.Redis, namespace: str
) -> None:
    await far.push([job("a")])
    proxy.blackhole()
    pushing = asyncio.create_task(far.push([job("b")]))
    raw = Scripted(client, namespace)

    async def executed() -> bool:
        return b"b" in raw.dump().get("jobs", {})

    await eventually_async(executed)
    for key in client.scan_iter(match=f"*{namespace}*:client:*"):
        client.delete(key)
    proxy.heal()
    (pushed,) = await pushing
    assert pushed.outcome == "unknown"
    # No second job was made.
    assert (await far.counts(Q)).ready == 2


async def test_what_a_client_leaves_behind_is_small_and_expires(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    await queue.push(jobs(300))
    await queue.settle([Ack(lease) for lease in await claim(queue, 300)])
    lengths = []
    for key in client.scan_iter(match=f"*{namespace}*:client:*"):
        lengths.append(client.strlen(key))
        assert 3_500_000 < client.pttl(key) <= 3_600_000
    # Pushes and settlements that were plainly done keep nothing but their number.
    assert sorted(lengths)[:2] == [2, 2]


async def test_an_empty_claim_writes_nothing(queue: RedisQueue, client: redis.Redis, namespace: str) -> None:
    for _ in range(5):
        assert await claim(queue) == []
    assert Scripted(client, namespace).dump() == {}


def test_the_keeper_renews_over_a_new_connection_when_the_old_one_is_cut(proxy: Proxy, namespace: str) -> None:
    async def held() -> object:
        queue = RedisQueue.from_url(proxy.url, namespace=namespace)
        await queue.push([job("a")])
        lease = await claim_one(queue)
        await queue.aclose()
        return lease

    lease = asyncio.run(held())
    keeper = RedisQueue.from_url(proxy.url, namespace=namespace).keeper()
    assert [one.value for one in keeper.renew([lease])] == ["held"]  # type: ignore[list-item]
    proxy.kill_connections()
    assert [one.value for one in keeper.renew([lease])] == ["held"]  # type: ignore[list-item]
    cut = proxy.cut_next_reply(b"EVALSHA")
    assert [one.value for one in keeper.renew([lease])] == ["held"]  # type: ignore[list-item]
    assert cut.happened
    keeper.close()
    keeper.close()


def test_the_blocking_pusher_makes_one_job_of_a_push_whose_reply_is_cut(proxy: Proxy, namespace: str) -> None:
    queue = RedisQueue.from_url(proxy.url, namespace=namespace, patience=Patience(answer=0.5, repeats=1))
    pusher = queue.pusher()
    assert pusher.push([job("a")])[0].outcome == "stored"
    cut = proxy.cut_next_reply(b"payload-b")
    assert pusher.push([job("b", envelope=b"payload-b")])[0].outcome == "stored"
    assert cut.happened
    proxy.blackhole()
    assert pusher.push([job("c")])[0].outcome == "unknown"
    proxy.refuse()
    proxy.kill_connections()
    with pytest.raises(ConnectionFailed):
        pusher.push([job("d")])
    pusher.close()

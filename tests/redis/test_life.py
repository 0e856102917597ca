"""Connections: made where and when they are needed, shared with nobody, closed by their owner."""

import asyncio
import os
import random
import threading
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
import redis
import redis.asyncio

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.endpoint import Endpoint
from tenure.drivers.redis.pool import MOST_IDLE
from tenure.errors import ConfigurationError, ConnectionFailed, InvalidOption, NotSupported
from tenure.operating import FailedJobs, Inspector
from tenure.queue import Ack, Claimed, Lease, Queue, feature
from tests.redis.steps import Q, claim, claim_one, ids, job, jobs, waiting
from tests.support.processes import eventually_async
from tests.support.proxy import Proxy
from tests.support.servers import Server

# What is tested here is this side of the connection: one server will do.
SERVERS = ["valkey"]


def in_child(work: Callable[[], None]) -> int:
    """Run the work in a forked child, and return its exit code."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - whatever it is, the parent learns of it by the code
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


async def test_it_has_everything_that_the_contract_asks_for(queue: RedisQueue) -> None:
    typed: Queue = queue
    assert callable(typed.claim)
    assert feature(queue, Inspector)
    assert feature(queue, FailedJobs)
    assert queue.capabilities.driver == "redis"


async def test_nothing_is_opened_before_first_use(namespace: str) -> None:
    queue = RedisQueue.from_url("redis://127.0.0.1:1", namespace=namespace)
    queue.keeper().close()
    queue.pusher().close()
    assert namespace in repr(queue)
    await queue.aclose()
    await queue.aclose()


async def test_a_closed_queue_sends_nothing(queue: RedisQueue) -> None:
    await queue.push([job("a")])
    await queue.aclose()
    with pytest.raises(ConnectionFailed, match="closed"):
        await queue.push([job("b")])
    with pytest.raises(ConnectionFailed, match="closed"):
        await claim(queue)


async def test_closing_ends_a_waiting_claim_and_takes_nothing_with_it(
    queue: RedisQueue, server: Server, client: redis.Redis, namespace: str
) -> None:
    claiming = asyncio.create_task(claim(queue, wait=20))
    await waiting(client)
    await queue.aclose()
    with pytest.raises(ConnectionFailed):
        await claiming
    other = RedisQueue.from_url(server.url, namespace=namespace)
    await other.push([job("a")])
    assert ids(await claim(other)) == ["a"]
    await other.aclose()


# K3
async def test_a_caller_keeps_its_client_and_its_connections(
    server: Server, client: redis.Redis, namespace: str
) -> None:
    own = redis.asyncio.Redis(unix_socket_path=server.socket, decode_responses=True, protocol=3)
    await own.set(f"{namespace}:mine", "1")
    queue = RedisQueue(own, namespace=namespace)
    envelope = bytes(range(256))
    await queue.push([job("a", envelope=envelope)])
    assert (await claim_one(queue)).envelope == envelope
    await queue.aclose()
    assert await own.get(f"{namespace}:mine") == "1"
    await own.aclose()


async def test_a_client_whose_connections_are_resolved_elsewhere_is_refused(server: Server, namespace: str) -> None:
    sentinel: Any = cast("Any", redis.asyncio.Sentinel)([("127.0.0.1", 1)])
    with pytest.raises(NotSupported, match="Sentinel"):
        RedisQueue(sentinel.master_for("mymaster"), namespace=namespace)
    with pytest.raises(NotSupported, match="cluster"):
        RedisQueue(cast("Any", redis.asyncio.RedisCluster.__new__(redis.asyncio.RedisCluster)), namespace=namespace)


async def test_tls_and_other_names_of_the_schemes_are_taken(namespace: str) -> None:
    for url in ("rediss://127.0.0.1:1/2", "valkeys://127.0.0.1:1", "valkey://127.0.0.1:1", "unix:///nowhere/s"):
        queue = RedisQueue.from_url(url, namespace=namespace)
        with pytest.raises(ConnectionFailed):
            await queue.counts(Q)
        with pytest.raises(ConnectionFailed):
            queue.pusher().push([job("a")])
        await queue.aclose()
    assert "6379" in repr(Endpoint.from_url("redis://"))


@pytest.mark.parametrize("url", ["http://x", "localhost:6379", "redis:/x", "", "unix//x", "redis://h:port/0"])
def test_a_url_that_is_none_is_refused_without_being_shown(url: str, namespace: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        RedisQueue.from_url(url.replace("h:", "user:hunter2@h:"), namespace=namespace)
    assert "hunter2" not in str(refused.value)


async def test_no_password_is_shown(server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url("redis://user:hunter2@127.0.0.1:1/0", namespace=namespace)
    with pytest.raises(ConnectionFailed) as failed:
        await queue.push([job("a")])
    assert "127.0.0.1:1" in str(failed.value)
    assert "hunter2" not in f"{queue!r} {failed.value} {failed.value.__cause__}"
    await queue.aclose()


@pytest.mark.parametrize("name", ["a}:{b", "{x}", "", "a b", "a*", "a:b", "x" * 200, "a\n"])
def test_a_name_that_could_reach_other_keys_is_refused(name: str, server: Server, namespace: str) -> None:
    with pytest.raises(InvalidOption):
        RedisQueue.from_url(server.url, namespace=name)
    if name and name not in {"a:b", "x" * 200}:
        with pytest.raises(InvalidOption):
            RedisQueue.from_url(server.url, namespace=namespace, prefix=name)
    with pytest.raises(InvalidOption):
        asyncio.run(RedisQueue.from_url(server.url, namespace=namespace).counts(name))


# S2
async def test_a_prefix_stands_before_every_key(server: Server, client: redis.Redis, namespace: str) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace, prefix=f"app-{namespace}:")
    await queue.push([job("a"), job("b", delay=5), job("c", priority=1)])
    await queue.settle([Ack(lease) for lease in await claim(queue, 2)])
    await queue.aclose()
    keys = list(client.scan_iter(match=f"*{namespace}*"))
    assert keys
    assert all(key.startswith(f"app-{namespace}:".encode()) for key in keys)


# K10
async def test_calls_do_not_wait_for_each_other_on_one_connection(
    server: Server, client: redis.Redis, namespace: str
) -> None:
    with Proxy(server.socket) as proxy:
        queue = RedisQueue.from_url(proxy.url, namespace=namespace)
        claiming = asyncio.create_task(claim(queue, wait=10))
        await waiting(client)
        before = asyncio.get_running_loop().time()
        await queue.counts(Q)
        assert asyncio.get_running_loop().time() - before < 0.5
        await queue.push([job("a")])
        assert ids(await claiming) == ["a"]
        await queue.aclose()


async def test_a_storm_of_cancellations_mixes_no_replies_and_leaks_no_connection(
    server: Server, namespace: str
) -> None:
    dice = random.Random(1)
    with Proxy(server.socket) as proxy:
        queue = RedisQueue.from_url(proxy.url, namespace=namespace)
        await queue.push(jobs(50))
        held: list[Lease] = list(await claim(queue, 10))
        kept = list(held)
        proxy.delay(0.005)

        async def one(number: int) -> None:
            calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
                lambda: queue.push([job(f"n{number}")]),
                lambda: queue.claim([Q], limit=3, lease=60, wait=0),
                lambda: queue.counts(Q),
                lambda: queue.renew(held),
                lambda: queue.cancel(Q, ["never"]),
                lambda: queue.states(Q, [lease.id for lease in held]),
            ]
            task = asyncio.create_task(dice.choice(calls)())
            await asyncio.wait([task], timeout=dice.random() * 0.02)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and isinstance(task.result(), Claimed):
                kept.extend(task.result().leases)

        for start in range(0, 300, 30):
            await asyncio.gather(*(one(number) for number in range(start, start + 30)))
        proxy.delay(0)
        assert {answer.value for answer in await queue.renew(held)} == {"held"}
        assert {state.value for state in await queue.states(Q, [lease.id for lease in held])} == {"running"}
        assert (await queue.push([job("last")]))[0].id == "last"

        async def given_back() -> bool:
            return (await queue.counts(Q)).leased == len(kept)

        await eventually_async(given_back)
        # One connection for each call at a time, and some of those are kept.
        assert proxy.connections <= MOST_IDLE + 5
        await queue.aclose()

        async def none_left() -> bool:
            return proxy.connections == 0

        await eventually_async(none_left)


def test_one_driver_serves_loops_of_several_threads_at_once(server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace)
    got: list[str] = []

    async def work(number: int) -> None:
        name = f"q{number}"
        for round_ in range(20):
            await queue.push([job(f"{number}-{round_}", queue=name)])
            (lease,) = (await queue.claim([name], limit=1, lease=60, wait=5)).leases
            await queue.settle([Ack(lease)])
            got.append(lease.id)

    threads = [threading.Thread(target=lambda number=number: asyncio.run(work(number))) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == 80


def test_a_child_of_fork_has_connections_and_numbers_of_its_own(server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace)
    pusher, keeper = queue.pusher(), queue.keeper()
    pusher.push([job("before")])

    async def lease_one() -> Lease:
        return await claim_one(queue)

    lease = asyncio.run(lease_one())
    keeper.renew([lease])

    def child() -> None:
        assert pusher.push([job("child")])[0].outcome == "stored"
        assert [answer.value for answer in keeper.renew([lease])] == ["held"]
        assert asyncio.run(lease_one()).id == "child"

    async def parent() -> None:
        # Forked while a loop runs and holds connections, as a supervisor would not, and as a test may.
        await queue.push([job("parent")])
        await queue.cancel(Q, ["parent"])
        assert in_child(child) == 0
        assert (await queue.push([job("after")]))[0].outcome == "stored"
        assert ids(await claim(queue, 5)) == ["after"]

    asyncio.run(parent())
    assert pusher.push([job("again")])[0].outcome == "stored"
    assert [answer.value for answer in keeper.renew([lease])] == ["held"]
    pusher.close()
    keeper.close()
    with pytest.raises(ConnectionFailed):
        pusher.push([job("x")])


def test_one_pusher_serves_many_threads(server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace)
    pusher = queue.pusher()
    outcomes: list[str] = []

    def work(number: int) -> None:
        for place in range(50):
            outcomes.extend(one.outcome for one in pusher.push([job(f"{number}-{place}"), job(f"same-{place}")]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("stored") == 8 * 50 + 50
    assert outcomes.count("held") == 7 * 50
    pusher.close()


async def test_concurrent_single_pushes_share_calls_and_each_gets_its_own_answer(
    server: Server, namespace: str
) -> None:
    with Proxy(server.socket) as proxy:
        queue = RedisQueue.from_url(proxy.url, namespace=namespace)
        await queue.push([job("j7")])
        before = proxy.count(b"EVALSHA")
        answers = await asyncio.gather(*(queue.push([job(f"j{number}")]) for number in range(200)))
        assert proxy.count(b"EVALSHA") - before <= 4
        assert [one.outcome for (one,) in answers].index("held") == 7
        assert [one.id for (one,) in answers] == [f"j{number}" for number in range(200)]
        assert ids(await claim(queue, 300)) == ["j7", *(f"j{number}" for number in range(200) if number != 7)]
        await queue.aclose()


async def test_the_scripts_may_be_flushed_at_any_moment(queue: RedisQueue, client: redis.Redis) -> None:
    keeper, pusher = queue.keeper(), queue.pusher()
    for number in range(5):
        client.script_flush()
        assert (await queue.push([job(f"a{number}")]))[0].outcome == "stored"
        client.script_flush()
        assert pusher.push([job(f"b{number}")])[0].outcome == "stored"
        client.script_flush()
        leases = await claim(queue, 2)
        assert len(leases) == 2
        client.script_flush()
        assert [answer.value for answer in keeper.renew(leases)] == ["held"] * 2
        client.script_flush()
        assert [answer.value for answer in await queue.renew(leases)] == ["held"] * 2
        client.script_flush()
        assert [answer.value for answer in await queue.settle([Ack(lease) for lease in leases])] == ["done"] * 2
        client.script_flush()
        assert (await queue.counts(Q)).size == 0
    keeper.close()
    pusher.close()

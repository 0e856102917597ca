"""A call that is cancelled leaves no answer behind for the next one to read, nothing half done, and no connection."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.pool import MOST_IDLE
from tenure.queue import Ack, Lease, Settled
from tests.redis.steps import job, jobs
from tests.support.processes import eventually_async
from tests.support.proxy import Proxy
from tests.support.servers import Server

# What is tested here is this side of the connection: one server will do.
SERVERS = ["valkey"]
TIMES = 100


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.socket) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: Proxy, namespace: str, client: redis.Redis) -> AsyncIterator[RedisQueue]:
    queue = RedisQueue.from_url(proxy.url, namespace=namespace)
    yield queue
    await queue.aclose()


Act = Callable[[RedisQueue, int, Lease], Coroutine[Any, Any, Any]]

ACTS: dict[str, Act] = {
    "push": lambda queue, number, _: queue.push([job(f"c{number}", queue=f"n{number % 10}-pushed")]),
    "claim": lambda queue, *_: queue.claim(["rest"], limit=1, lease=60, wait=0),
    "waiting claim": lambda queue, number, _: queue.claim([f"empty{number % 5}"], limit=1, lease=60, wait=30),
    "renew": lambda queue, _, lease: queue.renew([lease]),
    "settle": lambda queue, _, lease: queue.settle([Ack(lease)]),
    "read": lambda queue, number, _: queue.states("rest", [f"j{number}"]),
}


async def by_its_task(call: Coroutine[Any, Any, Any], cut: asyncio.Event) -> None:
    task = asyncio.ensure_future(call)
    await cut.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled() or task.exception() is None


async def by_a_timeout(call: Coroutine[Any, Any, Any], _: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(call, 0.05)
    except TimeoutError:
        return


@pytest.mark.parametrize("how", [by_its_task, by_a_timeout])
@pytest.mark.parametrize("name", ACTS)
async def test_after_cancelled_calls_every_answer_belongs_to_its_question(
    far: RedisQueue,
    queue: RedisQueue,
    proxy: Proxy,
    name: str,
    how: Callable[[Coroutine[Any, Any, Any], asyncio.Event], Coroutine[Any, Any, None]],
) -> None:
    for number in range(10):
        await far.push([job(f"j{place}", queue=f"n{number}") for place in range(number)])
    await far.push([*(job(f"h{place}", queue="held") for place in range(TIMES)), *jobs_of("rest", TIMES)])
    held = (await far.claim(["held"], limit=TIMES, lease=60, wait=0)).leases
    proxy.delay(0.2)
    before, cut = proxy.executed, asyncio.Event()
    cancelling = [asyncio.create_task(how(ACTS[name](far, n, held[n]), cut)) for n in range(TIMES)]
    await eventually_async(lambda: more(proxy, before), what="calls are under way", every=0.001)
    cut.set()
    await asyncio.gather(*cancelling)
    proxy.delay(0)

    for _ in range(10):
        sizes = await asyncio.gather(*(far.counts(f"n{number}") for number in range(10)))
        assert [counts.ready for counts in sizes] == list(range(10))
    # What was claimed by those who have gone is given back; a settlement is done or not, and asked again it tells.
    await eventually_async(lambda: all_back(queue), what="what nobody holds is ready again")
    told = await far.settle([Ack(lease) for lease in held])
    assert set(told) <= {Settled.DONE, Settled.REPEATED, Settled.STALE}
    assert (await queue.counts("held")).leased == 0
    if name != "settle":
        assert set(told) == {Settled.DONE}
    await eventually_async(lambda: few(proxy), what="connections do not pile up")


def jobs_of(queue: str, number: int) -> list[Any]:
    return [job(each.id, queue=queue) for each in jobs(number)]


async def more(proxy: Proxy, before: int) -> bool:
    return proxy.executed > before


async def all_back(queue: RedisQueue) -> bool:
    counts = await queue.counts("rest")
    return counts.ready == TIMES and counts.leased == 0


async def few(proxy: Proxy) -> bool:
    return proxy.connections <= MOST_IDLE + 6

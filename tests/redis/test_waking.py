"""A waiting claim is woken by one marker, starts due jobs on time, and costs next to nothing while it waits."""

import asyncio
import time

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.queue import Ack, Release
from tests.redis.scripted import Scripted
from tests.redis.steps import Q, claim, claim_one, ids, job, jobs, waiting
from tests.support.processes import eventually_async
from tests.support.servers import Server


async def test_a_push_to_an_idle_queue_wakes_a_waiting_claim_at_once(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    Scripted(client, namespace)
    delays = []
    for number in range(20):
        claiming = asyncio.create_task(claim_one(queue, wait=5))
        await waiting(client)
        before = time.perf_counter()
        await queue.push([job(f"j{number}")])
        lease = await claiming
        delays.append(time.perf_counter() - before)
        await queue.settle([Ack(lease)])
    assert sorted(delays)[10] < 0.02


async def test_the_marker_is_one_however_many_jobs_come(queue: RedisQueue, client: redis.Redis, namespace: str) -> None:
    for number in range(5):
        await queue.push([job(f"j{number}"), job(f"d{number}", delay=50 - number)])
        await queue.settle([Release(lease) for lease in await claim(queue, 10)])
    assert Scripted(client, namespace).dump()["wake"] == [b"1"]


async def test_each_claim_that_leaves_ready_jobs_wakes_the_next_one(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    Scripted(client, namespace)
    claims = [asyncio.create_task(claim(queue, wait=5)) for _ in range(6)]
    await waiting(client, 6)
    before = time.perf_counter()
    await queue.push(jobs(6))
    assert sorted([lease.id for leases in await asyncio.gather(*claims) for lease in leases]) == [
        f"j{n}" for n in range(6)
    ]
    # Within the second after which they would have looked by themselves.
    assert time.perf_counter() - before < 0.5


async def test_a_lost_marker_costs_at_most_a_second(queue: RedisQueue, client: redis.Redis, namespace: str) -> None:
    raw = Scripted(client, namespace)
    claiming = asyncio.create_task(claim_one(queue, wait=5))
    await waiting(client)
    before = time.perf_counter()
    # Straight into the store: nobody is woken.
    client.set(raw.key("wake"), "x")
    client.delete(raw.key("wake"))
    client.hset(raw.key("jobs"), "a", "1|0|0|0|0|0|0|0\n{}")
    client.rpush(raw.key("ready"), "a|1")
    lease = await claiming
    assert lease.id == "a"
    assert time.perf_counter() - before < 1.3


@pytest.mark.parametrize("delay", [0.12, 0.35, 1.4])
async def test_a_delayed_job_starts_within_50_ms_of_its_time_and_never_early(
    queue: RedisQueue, client: redis.Redis, delay: float
) -> None:
    await queue.push([job("late", delay=30)])
    claiming = asyncio.create_task(claim_one(queue, wait=5))
    await waiting(client)
    before = time.time()
    await queue.push([job("a", delay=delay)])
    sent = time.time()
    lease = await claiming
    now = time.time()
    assert lease.id == "a"
    assert now >= before + delay
    assert now <= sent + delay + 0.05


async def test_a_release_and_a_lapse_wake_too(queue: RedisQueue, client: redis.Redis) -> None:
    await queue.push([job("a")])
    lease = await claim_one(queue)
    claiming = asyncio.create_task(claim_one(queue, wait=5, lease=0.2))
    await waiting(client)
    before = time.perf_counter()
    await queue.settle([Release(lease)])
    assert (await claiming).attempt == 2
    assert time.perf_counter() - before < 0.5
    before = time.perf_counter()
    assert (await claim_one(queue, wait=5)).crashes == 1
    assert 0.19 <= time.perf_counter() - before < 0.5


async def test_several_queues_are_waited_for_together_and_claimed_in_their_order(
    queue: RedisQueue, client: redis.Redis
) -> None:
    claiming = asyncio.create_task(queue.claim(["high", Q, "low"], limit=2, lease=60, wait=5))
    await waiting(client)
    await queue.push([job("l", queue="low")])
    assert ids((await claiming).leases) == ["l"]
    await queue.push([job("l2", queue="low"), job("q"), job("h", queue="high")])
    assert ids((await queue.claim(["high", Q, "low"], limit=2, lease=60, wait=5)).leases) == ["h", "q"]


async def test_waiting_costs_less_than_a_hundredth_of_a_processor(queue: RedisQueue, client: redis.Redis) -> None:
    await claim(queue, wait=0.2)
    used, calls, started = time.process_time(), client.info("stats")["total_commands_processed"], time.perf_counter()
    assert await claim(queue, wait=3) == []
    passed = time.perf_counter() - started
    assert 3 <= passed < 3.5
    assert (time.process_time() - used) / passed < 0.01
    assert client.info("stats")["total_commands_processed"] - calls < 200


async def test_without_permission_to_block_it_is_polled(
    server: Server, queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    user = f"u{namespace}"
    Scripted(client, namespace).command("ACL", "SETUSER", user, "on", ">secret", "~*", "+@all", "-blpop")
    poor = RedisQueue.from_url(f"unix://{user}:secret@{server.socket}", namespace=namespace)
    claiming = asyncio.create_task(claim_one(poor, wait=5))
    await eventually_async(lambda: refused(client), what="it was refused to block")
    await queue.push([job("a")])
    assert (await claiming).id == "a"
    await poor.aclose()
    Scripted(client, namespace).command("ACL", "DELUSER", user)


async def refused(client: redis.Redis) -> bool:
    return bool(client.info("commandstats").get("cmdstat_blpop", {}).get("rejected_calls"))

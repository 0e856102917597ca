"""The lock of a unique job on the server: what it names, that it never outlives its job, nor is lost before its end."""

from collections.abc import Callable

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.layout import LAYOUTS, Layout
from tenure.queue import (
    Ack,
    Cancelled,
    Drop,
    Fail,
    Failure,
    Lease,
    Push,
    Pushed,
    Release,
    SetAside,
    Settled,
    Settlement,
)
from tests.redis.scripted import Scripted
from tests.redis.steps import Q, claim, claim_one, job, jobs
from tests.support.processes import eventually_async
from tests.support.servers import Server

TEXT = "0123456789abcdef" * 2
OTHER = "f" * 32
WHY = Failure(reason="exception")


def unique(job_id: str, text: str = TEXT, **options: float) -> Push:
    return Push(queue=Q, id=job_id, envelope=b"{}", unique=text, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", [Ack, Drop, lambda at: Fail(at, WHY), lambda at: SetAside(at, "odd")])
@pytest.mark.parametrize("keep", [0, 60])
async def test_every_end_frees_the_text_and_leaves_nothing_of_it(
    queue: RedisQueue, client: redis.Redis, namespace: str, end: Callable[[Lease], Settlement], keep: float
) -> None:
    await queue.push([unique("a", keep=keep), job("plain")])
    assert await queue.push([job("x"), unique("b"), unique("c", OTHER), unique("d", OTHER)]) == [
        Pushed("x", "stored"),
        Pushed("a", "held"),
        Pushed("c", "stored"),
        Pushed("c", "held"),
    ]
    lease = await claim_one(queue)
    assert lease.id == "a"
    assert (await queue.push([unique("b")]))[0] == Pushed("a", "held")
    assert await queue.settle([end(lease)]) == [Settled.DONE]
    assert client.hkeys(f"{{{namespace}:{Q}}}:unique") == [OTHER.encode()]
    assert (await queue.push([unique("b")]))[0] == Pushed("b", "stored")


async def test_a_stale_settlement_frees_nothing(queue: RedisQueue) -> None:
    await queue.push([unique("a")])
    lease = await claim_one(queue)
    assert await queue.settle([Release(lease)]) == [Settled.DONE]
    assert await queue.settle([Ack(lease)]) == [Settled.STALE]
    assert (await queue.push([unique("b")]))[0] == Pushed("a", "held")


async def test_a_clear_frees_at_once_and_its_sweep_frees_no_later_job(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    key = f"{{{namespace}:{Q}}}:unique"
    await queue.push([unique("a"), unique("z", OTHER), *jobs(150)])
    assert await queue.clear(Q) == 152
    assert client.hlen(key) == 2
    assert (await queue.push([unique("b")]))[0] == Pushed("b", "stored")
    assert (await queue.push([unique("c")]))[0] == Pushed("b", "held")
    await claim(queue, 1)

    async def swept() -> bool:
        return not client.exists(f"{{{namespace}:{Q}}}:gone")

    await eventually_async(swept)
    assert client.hkeys(key) == [TEXT.encode()]
    assert (await queue.push([unique("c")]))[0] == Pushed("b", "held")


async def test_a_job_of_the_same_id_without_the_text_does_not_hold_it(queue: RedisQueue) -> None:
    await queue.push([unique("a")])
    await queue.clear(Q)
    await queue.push([job("a")])
    assert (await queue.push([unique("b")]))[0] == Pushed("b", "stored")


async def test_a_retry_takes_the_text_again_or_leaves_the_job_failed(queue: RedisQueue) -> None:
    await queue.push([unique("a")])
    await queue.settle([Fail(await claim_one(queue), WHY)])
    await queue.push([unique("b")])
    (record,) = await queue.failed(Q)
    assert await queue.retry([record]) == [False]
    assert len(await queue.failed(Q)) == 1
    assert await queue.cancel(Q, ["b"]) == [Cancelled.REMOVED]
    assert await queue.retry([record]) == [True]
    assert (await queue.push([unique("c")]))[0] == Pushed("a", "held")


async def test_of_two_that_failed_one_retry_makes_one_ready(queue: RedisQueue) -> None:
    for job_id in "ab":
        await queue.push([unique(job_id)])
        await queue.settle([Fail(await claim_one(queue), WHY)])
    assert await queue.retry(await queue.failed(Q)) == [True, False]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
async def test_the_text_is_held_through_delays_and_lapses(layout: Layout, server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace, layout=layout)
    await queue.push([unique("a")])
    await queue.settle([Release(await claim_one(queue), delay=0.01)])
    (lease,) = await claim(queue, lease=0.01, wait=5)
    assert (lease.id, lease.deliveries) == ("a", 2)
    (lease,) = await claim(queue, wait=5)
    assert (lease.id, lease.crashes) == ("a", 1)
    assert (await queue.push([unique("b")]))[0] == Pushed("a", "held")
    assert await queue.settle([Ack(lease)]) == [Settled.DONE]
    assert (await queue.push([unique("b")]))[0] == Pushed("b", "stored")
    await queue.aclose()


def test_a_repeated_push_is_told_the_holders_again(client: redis.Redis, namespace: str) -> None:
    raw = Scripted(client, namespace)
    pushed = [("a", f"0|0|0|0|0|{TEXT}", b""), ("a", "", b""), ("b", f"0|0|0|0|0|{TEXT}", b"")]
    assert raw.push("c", 1, *pushed)[:2] == [b"done", b"shu a"]
    client.unlink(raw.key("jobs"))
    assert raw.push("c", 1, *pushed)[:2] == [b"repeated", b"shu a"]


def test_what_is_no_lock_holds_nothing(client: redis.Redis, namespace: str) -> None:
    raw = Scripted(client, namespace)
    client.hset(raw.key("unique"), TEXT, "junk")
    assert raw.push("c", 1, ("a", f"0|0|0|0|0|{TEXT}", b""))[1] == b""

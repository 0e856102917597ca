"""With the server's memory full, pushes are refused unwritten, and all that lets the queue drain still works."""

from typing import cast

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.layout import LAYOUTS, Layout
from tenure.errors import StoreRefused
from tenure.queue import Ack, Cancelled, Fail, Failure, JobState, Release, Renewal, SetAside, Settled, Settlement
from tenure.results import Progress, ProgressReport
from tests.redis.scripted import Scripted
from tests.redis.steps import Q, claim, job, jobs
from tests.support.servers import Server

ENVELOPE = b"x" * 2000


def fill(client: redis.Redis) -> None:
    used = cast("dict[str, int]", client.info("memory"))["used_memory"]
    client.config_set("maxmemory", used - 200_000)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
async def test_pushes_are_refused_unwritten_and_everything_else_goes_on(
    layout: Layout, own_server: Server, namespace: str
) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace, layout=layout)
    priority = 9 if queue.capabilities.priorities else 0
    with redis.Redis(unix_socket_path=own_server.socket, protocol=2) as client:
        await queue.push([job("kept", keep=600)])
        (keeping,) = await claim(queue, 1)
        await queue.push(
            [*jobs(400, envelope=ENVELOPE), *(job(f"d{n}", delay=0.001, envelope=ENVELOPE) for n in range(50))]
        )
        await queue.push([job("p", priority=priority), job("later", delay=600)])
        lapsing = await claim(queue, 20, lease=0.001)
        held = await claim(queue, 60)
        fill(client)
        raw = Scripted(client, namespace)
        before = raw.dump()

        for attempt in ([job("new")], [job("j399")], [job("new", priority=priority, delay=5)]):
            with pytest.raises(StoreRefused) as refused:
                await queue.push(attempt)
            assert refused.value.code == "OOM"
        assert raw.dump() == before

        assert set(await queue.renew(held)) == {Renewal.HELD}
        ends: list[Settlement] = [
            Release(held[0]),
            Release(held[1], delay=5),
            Release(held[2], crashed=True),
            SetAside(held[3], "odd"),
        ]
        ends += [Fail(lease, Failure(reason="exception", traceback="y" * 5000)) for lease in held[4:24]]
        assert set(await queue.settle(ends)) == {Settled.DONE}
        assert set(await queue.settle([Ack(lease) for lease in held[24:44]])) == {Settled.DONE}
        with pytest.raises(StoreRefused, match="OOM"):
            await queue.report([ProgressReport(keeping, Progress(0.5))])
        assert list(await queue.settle([Ack(keeping, b"r" * 5000)])) == [Settled.DONE]
        (end,) = await queue.endings(Q, ["kept"])
        assert end is not None
        assert end.result == b"r" * 5000
        more = await claim(queue, 50)  # recovers twenty, promotes fifty
        assert len(more) == 50
        assert (await queue.counts(Q)).delayed == 2
        assert len(lapsing) == 20
        assert await queue.cancel(Q, ["later", held[50].id]) == [Cancelled.REMOVED, Cancelled.REQUESTED]
        failed = await queue.failed(Q, limit=5)
        assert await queue.forget(failed[:2]) == [True, True]
        (aside,) = await queue.unreadable(Q)
        assert await queue.drop_unreadable(Q, [aside.key]) == [True]
        assert await queue.prune(Q, older_than=0) == 18
        assert (await queue.pause(Q), await queue.resume(Q)) == (True, True)
        assert [one.id for one in (await queue.jobs(Q, JobState.READY, limit=1)).jobs] != []
        waiting = (await queue.counts(Q)).ready + (await queue.counts(Q)).delayed
        assert await queue.clear(Q) == waiting
        client.config_set("maxmemory", 0)
        assert (await queue.push([job("new")]))[0].outcome == "stored"
    await queue.aclose()


async def test_a_repeated_push_learns_its_first_answer_though_memory_is_full_by_then(
    own_server: Server, namespace: str
) -> None:
    with redis.Redis(unix_socket_path=own_server.socket, protocol=2) as client:
        raw = Scripted(client, namespace)
        assert raw.push("c", 1, ("a", "", ENVELOPE), ("a", "", ENVELOPE))[1] == b"sh"
        fill(client)
        assert raw.push("c", 1, ("a", "", ENVELOPE), ("a", "", ENVELOPE))[:2] == [b"repeated", b"sh"]
        with pytest.raises(redis.ResponseError, match="maxmemory"):
            raw.push("c", 2, ("b", "", ENVELOPE))
        assert raw.push("c", 1, ("a", "", ENVELOPE))[0] == b"repeated"

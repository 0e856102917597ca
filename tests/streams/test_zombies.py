"""A holder that stood still past its lease, and an abandoned few among many that are held."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.queue import Ack, Renewal, Settled
from tenure.testing.contract import Opener
from tenure.testing.contract.racing import ProcessContender, spawn
from tests.redis.steps import Q, claim, ids, job, jobs
from tests.streams.line import StreamLine
from tests.support import processes
from tests.support.processes import eventually_async
from tests.support.servers import Server


@contextlib.asynccontextmanager
async def holding(server: Server, namespace: str, params: Mapping[str, Any]) -> AsyncIterator[ProcessContender]:
    """Run a process that claims and then does what it is told."""
    opener = Opener(factory="tests.contract.openers:streams", args=(server.url, namespace))
    holder = await spawn(opener, "hold", params)
    try:
        assert await holder.hear() == {"ready": True}
        await holder.say({"go": True})
        yield holder
    finally:
        await holder.close()


@pytest.mark.parametrize(
    ("order", "refusal"), [("renew", "lost"), ("progress", False), ("ack", "stale"), ("release", "stale")]
)
async def test_a_process_that_stood_still_past_its_lease_changes_nothing_when_it_goes_on(
    order: str, refusal: str | bool, line: StreamLine, server: Server, namespace: str
) -> None:
    await line.queue.push([job("contested", keep=60)])
    async with holding(server, namespace, {"limit": 1, "lease": 0.3}) as zombie:
        [(_, fence, _)] = (await zombie.hear())["held"]
        processes.pause(zombie.pid)
        try:
            (lease,) = await claim(line.queue, wait=5)
        finally:
            processes.cont(zombie.pid)
        assert (lease.id, lease.attempt, lease.fence > fence) == ("contested", 2, True)
        pending = line.pending
        await zombie.say({"do": order})
        assert (await zombie.hear())["answers"] == [refusal]
        assert line.pending == pending
        assert await line.queue.progress(Q, ["contested"]) == [None]
        assert await line.queue.renew([lease]) == [Renewal.HELD]
        assert await line.queue.settle([Ack(lease)]) == [Settled.DONE]
        await zombie.say({"do": order})
        assert (await zombie.hear())["answers"] == [refusal]
    assert (line.entries, line.pending) == ([], [])


def test_the_bare_commands_would_have_let_it_through(client: redis.Redis, namespace: str) -> None:
    stream, group = f"{namespace}:raw", "g"
    client.xgroup_create(stream, group, id="0", mkstream=True)
    entry = client.xadd(stream, {"job": "contested"})
    client.xreadgroup(group, "zombie", {stream: ">"})
    client.xclaim(stream, group, "other", 0, [entry])
    assert client.xpending_range(stream, group, "-", "+", 1)[0]["consumer"] == b"other"
    assert client.xclaim(stream, group, "zombie", 0, [entry], justid=True) == [entry]
    assert client.xpending_range(stream, group, "-", "+", 1)[0]["consumer"] == b"zombie"
    client.xclaim(stream, group, "other", 0, [entry])
    assert client.xack(stream, group, entry) == 1
    assert client.xpending(stream, group)["pending"] == 0


class Slow:
    """A live process with much in hand, as its keeper sees it."""

    def __init__(self, queue: RedisQueue, leases: Any) -> None:
        self._keeper, self._leases = queue.keeper(), leases
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew)
        self.answers: set[Renewal] = set()

    def _renew(self) -> None:
        while not self._over.wait(0.3):
            self.answers |= set(self._keeper.renew(self._leases))

    async def __aenter__(self) -> "Slow":
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        await asyncio.to_thread(self._thread.join)
        self._keeper.close()


async def test_the_last_ten_of_2500_pending_entries_are_recovered_within_their_lease_and_two_seconds(
    line: StreamLine,
) -> None:
    length = 1.0
    await line.queue.push(jobs(2500))
    live = [lease for _ in range(3) for lease in await claim(line.queue, 830, lease=length)]
    async with Slow(line.queue, live) as slow:
        abandoned = await claim(line.another(), 10, lease=length)
        began = time.monotonic()
        assert ids(abandoned) == [f"j{n}" for n in range(2490, 2500)]
        found: list[str] = []
        other = line.another()

        async def all_found() -> bool:
            found.extend(ids(await claim(other, 100, wait=0.5)))
            return len(found) >= 10

        await eventually_async(all_found)
        assert time.monotonic() - began < length + 2
        assert sorted(found) == sorted(ids(abandoned))
    assert slow.answers == {Renewal.HELD}
    assert await line.queue.settle([Ack(lease) for lease in live]) == [Settled.DONE] * 2490
    assert len(line.pending) == len(line.entries) == 10

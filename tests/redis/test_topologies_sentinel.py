"""Through Sentinel every call finds the primary, through failovers, and a demoted one is not written to."""

import asyncio
import functools
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.lanes import Patience
from tenure.errors import ConnectionFailed, StoreRefused
from tenure.queue import Ack, Renewal, Settled
from tests.redis.steps import claim, claim_one, job
from tests.support.absent import not_proven
from tests.support.addresses import sentinel_url
from tests.support.least import rules
from tests.support.load import Load
from tests.support.processes import eventually, eventually_async
from tests.support.sentinel import Sentinels, in_step, sentinels
from tests.support.servers import Server, redis7_binary
from tests.support.topologies import SPECIAL, client, loopback, raw, tell

pytestmark = pytest.mark.torture
BEHIND_SENTINEL = "+role"


@pytest.fixture(scope="module")
def group() -> Iterator[Sentinels]:
    with sentinels(redis7_binary() or not_proven("Redis 7", "apt-get install redis-server")) as group:
        yield group


@pytest.fixture
def whole(group: Sentinels) -> Iterator[Sentinels]:
    """The group, which a test may tear apart: behind it all servers are up and in step again."""
    yield group
    for server in group.servers:
        server.start()
        if server is not group.primary():
            group.wait_following(server)
    for sentinel in group.sentinels:
        eventually(sentinel.sees_all, 20, what="the sentinels see all")


@pytest.fixture
async def queue(group: Sentinels, namespace: str) -> AsyncIterator[RedisQueue]:
    queue = RedisQueue.from_url(sentinel_url(group), namespace=namespace)
    yield queue
    await queue.aclose()


async def in_thread(work: Any, *arguments: Any, **named: Any) -> Any:
    return await asyncio.to_thread(functools.partial(work, *arguments, **named))


def holds(server: Server, namespace: str, database: int = 0) -> bool:
    with closing(client(f"{server.url}?db={database}")) as control:
        return any(True for _ in control.scan_iter(match=f"*{namespace}*", count=1000))


async def test_the_primary_is_found_and_used(group: Sentinels, queue: RedisQueue, namespace: str) -> None:
    pusher, keeper = queue.pusher(), queue.keeper()
    await queue.push([job("a")])
    pusher.push([job("b")])
    leases = await claim(queue, 5)
    assert keeper.renew(leases) == [Renewal.HELD] * 2
    assert await queue.settle([Ack(lease) for lease in leases]) == [Settled.DONE] * 2
    assert holds(group.primary(), namespace)
    pusher.close()
    keeper.close()


async def test_a_database_is_chosen_by_its_number(group: Sentinels, namespace: str) -> None:
    queue = RedisQueue.from_url(sentinel_url(group, 5), namespace=namespace)
    await queue.push([job("a")])
    assert holds(group.primary(), namespace, 5)
    assert not holds(group.primary(), namespace)
    await queue.aclose()


async def test_a_sentinel_that_does_not_answer_is_passed_over(group: Sentinels, namespace: str) -> None:
    # It takes connections and says nothing. (A real one that was paused would leave the others alone for 30 s.)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = sentinel_url(group).replace("//", f"//127.0.0.1:{mute.getsockname()[1]},")
        queue = RedisQueue.from_url(url, namespace=namespace)
        await queue.push([job("a")])
        pusher = queue.pusher()
        await in_thread(pusher.push, [job("b")])
        pusher.close()
        assert (await queue.counts("q")).ready == 2
        await queue.aclose()


async def test_sentinels_that_know_no_such_name_or_do_not_answer_are_no_connection(
    group: Sentinels, namespace: str
) -> None:
    for url, why in (
        (sentinel_url(group).replace(f"/{group.master_name}/", "/other/"), "know no primary of that name"),
        ("redis+sentinel://user:hunter2@127.0.0.1:1/tenure?sentinel_password=hunter3", "no sentinel answers"),
    ):
        queue = RedisQueue.from_url(url, namespace=namespace)
        with pytest.raises(ConnectionFailed, match=f"{why}; nothing was sent") as failed:
            await queue.push([job("a")])
        with pytest.raises(ConnectionFailed, match=why):
            queue.pusher().push([job("a")])
        assert "hunter" not in f"{failed.value} {queue!r}"
        await queue.aclose()


@pytest.mark.parametrize("by_file", [False, True])
async def test_sentinels_have_credentials_of_their_own(
    group: Sentinels, namespace: str, tmp_path: Path, *, by_file: bool
) -> None:
    port = group.sentinel_ports[0]
    tell(loopback(port), "ACL", "SETUSER", "watcher", "on", f">{SPECIAL}", "~*", "&*", "+@all")
    login = f"redis://watcher:{quote(SPECIAL, safe='')}@127.0.0.1:{port}"
    tell(login, "ACL", "SETUSER", "default", "off")
    file = tmp_path / "pass word"
    file.write_text(f"{SPECIAL}\n")
    secret = f"sentinel_password_file={quote(str(file))}" if by_file else f"sentinel_password={quote(SPECIAL, safe='')}"
    alone = f"redis+sentinel://127.0.0.1:{port}/{group.master_name}"
    try:
        stranger = RedisQueue.from_url(alone, namespace=namespace)
        with pytest.raises(ConnectionFailed, match="the sentinels refuse to answer"):
            await stranger.push([job("a")])
        await stranger.aclose()
        queue = RedisQueue.from_url(f"{alone}?sentinel_username=watcher&{secret}", namespace=namespace)
        await queue.push([job("a")])
        await in_thread(queue.pusher().push, [job("b")])
        await queue.aclose()
    finally:
        tell(login, "ACL", "SETUSER", "default", "on")
        tell(loopback(port), "ACL", "DELUSER", "watcher")


async def test_a_user_with_the_documented_rights_can_do_it(group: Sentinels, namespace: str) -> None:
    for server in group.servers:
        tell(server, "ACL", "SETUSER", "jobs", "on", ">a secret", *rules(), BEHIND_SENTINEL, "+select")
    queue = RedisQueue.from_url(sentinel_url(group, 2).replace("//", "//jobs:a%20secret@"), namespace=namespace)
    try:
        await queue.push([job("a")])
        await in_thread(queue.pusher().push, [job("b")])
        assert await queue.settle([Ack(lease) for lease in await claim(queue, 5)]) == [Settled.DONE] * 2
    finally:
        await queue.aclose()
        for server in group.servers:
            tell(server, "ACL", "DELUSER", "jobs")


async def more(load: Load, seen: int) -> bool:
    return len(load.done) > seen + 50


@pytest.mark.timeout(120)
async def test_a_planned_failover_under_load_is_followed(whole: Sentinels, namespace: str) -> None:
    load = Load(sentinel_url(whole), namespace, durability=3, replicas=2, lease=2)
    async with load.running():
        await eventually_async(lambda: more(load, 0), what="there is load")
        before = await in_thread(whole.failover)
        promoted = await in_thread(whole.wait_failover)
        assert promoted is not before
        seen = len(load.done)
        await eventually_async(lambda: more(load, seen), what="the load goes on")
    # What both replicas had, is not lost, whichever was chosen: between the choice and its end the old primary still
    # takes writes, and the other replica alone may confirm them.
    assert load.accepted <= load.done
    load.judge()
    assert holds(promoted, namespace)


@pytest.mark.timeout(120)
async def test_a_killed_primary_under_load_is_replaced(whole: Sentinels, namespace: str) -> None:
    load = Load(sentinel_url(whole), namespace, lease=2)
    async with load.running():
        await eventually_async(lambda: more(load, 0), what="there is load")
        await in_thread(whole.wait_synced)
        synced = set(load.accepted)
        await in_thread(whole.kill9_primary)
        last = set(load.accepted)
        await in_thread(whole.wait_failover)
        seen = len(load.done)
        await eventually_async(lambda: more(load, seen), what="the load goes on")
    assert synced <= load.done
    # Class 1: only what was accepted in the moments before the death, and had not been copied, may be gone.
    lost = load.accepted - load.done
    assert lost <= last
    assert len(lost) <= 60
    load.judge()


@pytest.mark.timeout(120)
async def test_a_primary_that_wakes_after_its_replacement_is_not_written_to(
    whole: Sentinels, queue: RedisQueue, namespace: str
) -> None:
    pusher, keeper = queue.pusher(), queue.keeper()
    await queue.push([job("a"), job("b")])
    pusher.push([job("c")])
    lease = await claim_one(queue)
    keeper.renew([lease])
    await in_thread(whole.wait_synced)
    # Idle connections to it stay open all the while.
    asleep = await in_thread(whole.pause_primary)
    await in_thread(whole.wait_failover)
    asleep.cont()
    await queue.push([job("late")])
    await in_thread(pusher.push, [job("later")])
    assert await in_thread(keeper.renew, [lease]) == [Renewal.HELD]
    assert await queue.settle([Ack(lease)]) == [Settled.DONE]
    promoted = whole.primary()
    assert promoted is not asleep
    assert tell(promoted, "HLEN", f"{{{namespace}:q}}:jobs") == 4
    await eventually_async(lambda: in_thread(in_step, asleep), timeout=30, what="it has become a replica")
    assert (await queue.counts("q")).ready == 4
    pusher.close()
    keeper.close()


@pytest.mark.timeout(120)
async def test_a_waiting_claim_outlives_a_failover(whole: Sentinels, queue: RedisQueue) -> None:
    waiting = asyncio.create_task(queue.claim(["q"], limit=1, lease=60, wait=40))
    await queue.counts("q")
    await in_thread(whole.failover)
    await in_thread(whole.wait_failover)
    again: list[Any] = []

    async def pushed() -> bool:
        try:
            again.extend(await queue.push([job("a")]))
        except ConnectionFailed:
            return False
        return True

    await eventually_async(pushed, what="a push is taken")
    try:
        (lease,) = (await waiting).leases
    except ConnectionFailed:
        # Nothing was sent, and a worker claims again.
        (lease,) = await claim(queue)
    assert lease.id == "a"


async def test_a_server_that_is_no_primary_is_refused_as_it_is_connected_to(group: Sentinels, namespace: str) -> None:
    replica = group.replicas()[0]
    with closing(client(loopback(group.sentinel_ports[0]))) as control:
        raw(control, "SENTINEL", "MONITOR", "stale", "127.0.0.1", replica.port or 0, 1)
        try:
            url = sentinel_url(group).replace(f"/{group.master_name}/", "/stale/")
            queue = RedisQueue.from_url(url, namespace=namespace, patience=Patience(moves=0.2))
            for read_or_write in (
                queue.counts("q"),
                queue.push([job("a")]),
                in_thread(queue.pusher().push, [job("b")]),
            ):
                with pytest.raises(StoreRefused) as refused:
                    await read_or_write
                assert refused.value.code == "READONLY"
            await queue.aclose()
        finally:
            raw(control, "SENTINEL", "REMOVE", "stale")

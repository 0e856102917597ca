"""What a replica has, and what a restart brings back: the same line, with the same entries pending."""

from typing import Any

import pytest
import redis

from tenure.queue import Ack, Release, Settled
from tests.redis.conftest import BINARIES, SERVERS
from tests.redis.steps import Q, claim, ids, job, jobs
from tests.streams.line import GROUP, StreamLine
from tests.support.absent import not_proven
from tests.support.processes import eventually
from tests.support.servers import Server, redis_like
from tests.support.topologies import info

QUICK = ("--appendonly", "no")
"""Who follows a primary would write a new file first, and not end before."""


def state(line: StreamLine) -> tuple[Any, ...]:
    [group] = line.command("XINFO", "GROUPS", line.key)
    told = dict(zip(group[::2], group[1::2], strict=True))
    leased = line.client.zrange(line.keys.named("leased"), 0, -1, withscores=True)
    return line.entries, line.pending, told[b"last-delivered-id"], leased


async def worked(line: StreamLine) -> list[Any]:
    await line.queue.push([*jobs(20), job("later", delay=60)])
    held = list(await claim(line.queue, 10))
    await line.queue.settle([Ack(held[0]), Release(held[1]), Release(held[2], delay=60)])
    await line.queue.cancel(Q, ["j10"])
    return [*held[3:], *await claim(line.queue, 1)]


async def finished(line: StreamLine, held: list[Any]) -> None:
    assert await line.queue.settle([Ack(lease) for lease in held]) == [Settled.DONE] * len(held)
    rest = await claim(line.queue, 20)
    assert ids(rest) == [*(f"j{n}" for n in range(12, 20)), "j1"]
    assert await line.queue.settle([Ack(lease) for lease in rest]) == [Settled.DONE] * len(rest)
    assert (line.entries, line.pending) == ([], [])


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_replica_that_takes_over_goes_on_where_its_primary_was(kind: str, namespace: str) -> None:
    binary = BINARIES[kind]() or not_proven(kind, "see the fixtures of the same name")
    with (
        redis_like(binary, extra_args=[*QUICK, "--repl-diskless-sync-delay", "0"], tcp=True) as primary,
        redis_like(binary, extra_args=[*QUICK, "--replicaof", "127.0.0.1", str(primary.port)]) as copy,
        redis.Redis(unix_socket_path=primary.socket, protocol=2) as one,
        redis.Redis(unix_socket_path=copy.socket, protocol=2) as two,
    ):
        eventually(lambda: info(copy, "replication")["master_link_status"] == "up", 20, what="the replica follows")
        line, other = StreamLine(primary.url, one, namespace), StreamLine(copy.url, two, namespace)
        held = await worked(line)
        eventually(lambda: two.exists(line.key) and state(other) == state(line), what="the replica has it all")
        two.replicaof("NO", "ONE")
        await finished(other, held)
        await line.aclose()
        await other.aclose()


async def test_a_server_that_was_killed_brings_the_line_back_from_its_file(own_server: Server, namespace: str) -> None:
    with redis.Redis(unix_socket_path=own_server.socket, protocol=2) as raw:
        raw.config_set("appendfsync", "always")
        line = StreamLine(own_server.url, raw, namespace)
        held = await worked(line)
        before = state(line)
        own_server.kill9()
        own_server.start()
        assert state(line) == before
        assert line.command("XINFO", "GROUPS", line.key)[0][1] == GROUP.encode()
        await finished(line, held)
        await line.aclose()

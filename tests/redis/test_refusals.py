"""A refusal is told by its code, certain and unwritten; the driver goes on when the server does."""

import asyncio
import re
import threading
import time

import pytest
import redis

from tenure.drivers.redis import RedisQueue, refusals
from tenure.drivers.redis.lanes import Patience
from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreError, StoreRefused
from tenure.queue import Ack
from tests.redis.scripted import Scripted, with_set_clock
from tests.redis.steps import Q, claim, claim_one, ids, job
from tests.support.servers import Server


async def refused(queue: RedisQueue) -> str:
    with pytest.raises(StoreRefused) as caught:
        await queue.push([job("x", envelope=b"hunter2")])
    assert "nothing was written" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    return caught.value.code


@pytest.mark.parametrize("key", ["jobs", "running", "failed", "seq", "ready", "ready:prio", "delayed", "wake"])
async def test_a_foreign_value_in_a_key_refuses_the_push_before_it_writes(
    queue: RedisQueue, client: redis.Redis, namespace: str, key: str
) -> None:
    raw = Scripted(client, namespace)
    client.sadd(raw.key(key), "something else")
    assert await refused(queue) == "WRONGTYPE"
    assert list(client.scan_iter(match=f"{{{namespace}*")) == [raw.key(key)]


CLAIM_KEYS = [
    "jobs",
    "running",
    "ready",
    "ready:prio",
    "delayed",
    "leased",
    "suspects",
    "fence",
    "seq",
    "unreadable",
    "wake",
    "gone",
]


@pytest.mark.parametrize("key", CLAIM_KEYS)
def test_a_foreign_value_in_a_key_refuses_the_claim_before_it_writes(
    client: redis.Redis, namespace: str, key: str
) -> None:
    raw = Scripted(client, namespace)
    client.sadd(raw.key(key), "something else")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        raw.claim("c", 1)
    assert list(client.scan_iter(match=f"{{{namespace}*")) == [raw.key(key)]


@pytest.mark.parametrize(
    "key",
    [
        "jobs",
        "ready",
        "ready:prio",
        "delayed",
        "suspects",
        "failed",
        "failed:at",
        "unreadable",
        "seq",
        "wake",
        "cancel",
    ],
)
def test_a_foreign_value_in_a_key_refuses_the_settlement_before_it_writes(
    client: redis.Redis, namespace: str, key: str
) -> None:
    raw = Scripted(client, namespace)
    raw.push("p", 1, ("a", "", b"{}"), ("b", "", b"{}"))
    *_, first, _, second, _ = raw.claim("c", 1)
    client.delete(raw.key(key))
    client.sadd(raw.key(key), "something else")
    before = _typed(client, namespace)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        raw.settle("s", 1, [first], [("f", second, "{}", "")])
    assert _typed(client, namespace) == before


def _typed(client: redis.Redis, namespace: str) -> dict[bytes, bytes | None]:
    return {key: client.dump(key) for key in client.scan_iter(match=f"{{{namespace}*")}


async def test_a_replica_refuses_and_a_primary_again_accepts(own_server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace)
    await queue.push([job("a")])
    lease = await claim_one(queue)
    with redis.Redis(unix_socket_path=own_server.socket) as client:
        client.config_set("replica-serve-stale-data", "yes")
        client.replicaof("127.0.0.1", 1)
        assert await refused(queue) == "READONLY"
        with pytest.raises(StoreRefused, match="replica"):
            await queue.settle([Ack(lease)])
        client.replicaof("NO", "ONE")
    assert [one.value for one in await queue.settle([Ack(lease)])] == ["done"]
    await queue.aclose()


async def test_too_few_replicas_refuse(own_server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace)
    with redis.Redis(unix_socket_path=own_server.socket) as client:
        client.config_set("min-replicas-to-write", 1)
        assert await refused(queue) == "NOREPLICAS"
    await queue.aclose()


async def test_a_password_and_a_permission_are_asked_for_by_name(own_server: Server, namespace: str) -> None:
    with redis.Redis(unix_socket_path=own_server.socket) as client:
        raw = Scripted(client, namespace)
        raw.command("ACL", "SETUSER", "poor", "on", ">secret", "~*", "+@read")
        raw.command("ACL", "SETUSER", "default", "resetpass", ">sesame")
    for user, code in (("", "NOAUTH"), ("default:hunter2@", "WRONGPASS"), ("poor:secret@", "NOPERM")):
        queue = RedisQueue.from_url(f"unix://{user}{own_server.socket}", namespace=namespace)
        assert await refused(queue) == code
        keeper = queue.pusher()
        with pytest.raises(StoreRefused) as caught:
            keeper.push([job("x")])
        assert caught.value.code == code
        keeper.close()
        await queue.aclose()
    queue = RedisQueue.from_url(f"unix://default:sesame@{own_server.socket}?db=3", namespace=namespace)
    await queue.push([job("a")])
    assert ids(await claim(queue)) == ["a"]
    await queue.aclose()


async def test_as_many_clients_as_it_takes_is_no_connection(own_server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace)
    with redis.Redis(unix_socket_path=own_server.socket) as client:
        client.ping()
        client.config_set("maxclients", 1)
        with pytest.raises(ConnectionFailed):
            await queue.push([job("a")])
        client.config_set("maxclients", 100)
    assert (await queue.push([job("a")]))[0].outcome == "stored"
    await queue.aclose()


async def test_a_long_script_makes_it_busy_for_a_while(own_server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace)
    await queue.push([job("a")])
    with redis.Redis(unix_socket_path=own_server.socket, socket_timeout=30) as client:
        client.config_set("lua-time-limit", 50)
        spin = """
            local function micros() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
            local till = micros() + ARGV[1]
            repeat until micros() > till"""
        hog = threading.Thread(target=client.eval, args=(spin, 0, 600_000))
        hog.start()
        codes: list[object] = []
        until = time.monotonic() + 20
        while hog.is_alive() and time.monotonic() < until and "BUSY" not in codes:
            try:
                await queue.counts(Q)
            except StoreError as error:
                codes.append(getattr(error, "code", error))
            await asyncio.sleep(0)
        hog.join()
    assert "BUSY" in codes
    assert ids(await claim(queue)) == ["a"]
    await queue.aclose()


async def test_a_killed_server_is_no_connection_and_all_is_there_when_it_is_back(
    own_server: Server, namespace: str
) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace, patience=Patience(answer=1, repeats=2))
    await queue.push([job("a"), job("b")])
    (lease,) = await claim(queue)
    own_server.kill9()
    with pytest.raises(ConnectionFailed):
        await queue.push([job("c")])
    with pytest.raises(ConnectionFailed):
        await claim(queue, wait=1)
    own_server.start()
    # Its scripts are gone, and its data is not.
    assert [one.value for one in await queue.settle([Ack(lease)])] == ["done"]
    assert ids(await claim(queue, 5)) == ["b"]
    await queue.aclose()


async def test_a_paused_server_is_waited_for(own_server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace, patience=Patience(answer=0.2, repeats=5))
    await queue.push([job("first")])
    own_server.pause()
    asyncio.get_running_loop().call_later(0.7, own_server.cont)
    assert (await queue.push([job("a")]))[0].outcome == "stored"
    assert (await queue.counts(Q)).ready == 2
    await queue.aclose()


async def test_a_store_that_was_emptied_is_used_like_a_new_one(own_server: Server, namespace: str) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace)
    await queue.push([job("a")])
    lease = await claim_one(queue)
    with redis.Redis(unix_socket_path=own_server.socket) as client:
        for key in client.scan_iter():
            client.unlink(key)
    assert [one.value for one in await queue.settle([Ack(lease)])] == ["stale"]
    assert [one.value for one in await queue.renew([lease])] == ["lost"]
    await queue.push([job("a")])
    again = await claim_one(queue)
    assert again.fence > lease.fence
    await queue.push([job("b")])
    assert await queue.queues() == [Q]
    await queue.aclose()


@pytest.mark.parametrize("name", ["push", "settle"])
async def test_a_script_that_breaks_off_leaves_the_outcome_unknown(valkey: Server, namespace: str, name: str) -> None:
    source = with_set_clock()[name].source.decode()
    text, breaks = re.subn(r"\nremember\(client, [a-z.]+\)\n", "\nlocal x = nil + 1\n", source)
    assert breaks == 1
    broken = with_set_clock(**{name: text})
    queue = RedisQueue.from_url(valkey.url, namespace=namespace, scripts=broken)
    with redis.Redis(unix_socket_path=valkey.socket) as client:
        Scripted(client, namespace).set_clock(1000)
        if name == "push":
            assert (await queue.push([job("a")]))[0].outcome == "unknown"
        else:
            await queue.push([job("a")])
            with pytest.raises(OutcomeUnknown):
                await queue.settle([Ack(await claim_one(queue))])
        await queue.aclose()
        for key in client.scan_iter(match=f"*{namespace}*"):
            client.unlink(key)


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("command not allowed when used memory > 'maxmemory'.", "OOM", "OOM"),
        (
            "Error running script (call to f_1): @user_script:12: @user_script: 12: -OOM command not allowed",
            "ERR",
            "OOM",
        ),
        ("Error running script (call to f_1): @user_script:3: WRONGTYPE Operation against a key", None, "WRONGTYPE"),
        (
            "WRONGTYPE Operation against a key holding the wrong kind of value script: 1, on @user_script:5.",
            None,
            "WRONGTYPE",
        ),
        ("BUSY Redis is busy running a script.", None, "BUSY"),
        ("unknown command 'EVALSHA', with args beginning with: 'x'", "ERR", "ERR"),
        ("something", None, "ERR"),
        ("", None, "ERR"),
    ],
)
def test_a_code_is_found_where_the_server_puts_it(text: str, status: str | None, code: str) -> None:
    assert refusals.code(text, status) == code

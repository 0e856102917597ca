"""The proxy breaks what it was asked to break and nothing else, against a real server."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.proxy import Proxy
from tests.support.resp import Frames
from tests.support.servers import Server


def client(url: str, timeout: float = 5) -> redis.Redis:
    return redis.Redis.from_url(
        url, retry=Retry(NoBackoff(), 0), socket_timeout=timeout, single_connection_client=True, decode_responses=True
    )


@pytest.fixture(params=["unix", "tcp"])
def proxy(request: pytest.FixtureRequest, valkey: Server) -> Iterator[Proxy]:
    with Proxy(valkey.socket, tcp=request.param == "tcp") as proxy:
        yield proxy


@pytest.fixture
def direct(valkey: Server) -> Iterator[redis.Redis]:
    with closing(client(valkey.url)) as direct:
        yield direct


def test_it_passes_everything_on(proxy: Proxy, namespace: str) -> None:
    with closing(client(proxy.url)) as through:
        assert through.set(namespace, "ü" * 100_000)
        assert through.get(namespace) == "ü" * 100_000
        assert through.eval("return {1, {ARGV[1], false}, {}}", 0, "a\r\nb") == [1, ["a\r\nb", None], []]
        assert proxy.count(b"SET") >= 1
        assert proxy.connections == 1


@pytest.mark.parametrize("keep", [0, 2])
def test_a_cut_reply_was_executed(proxy: Proxy, direct: redis.Redis, namespace: str, keep: int) -> None:
    with closing(client(proxy.url)) as through:
        through.ping()
        fault = proxy.cut_next_reply(b"INCR", keep=keep)
        through.set(f"{namespace}:other", 1)
        assert not fault.happened
        with pytest.raises(redis.ConnectionError):
            through.incr(namespace)
        fault.wait()
        assert direct.get(namespace) == "1"
        assert through.incr(namespace) == 2  # the fault is spent
        assert proxy.count(b"INCR") == 2


def test_a_cut_request_was_not_executed(proxy: Proxy, direct: redis.Redis, namespace: str) -> None:
    with closing(client(proxy.url)) as through:
        through.ping()
        fault = proxy.cut_next_request(b"INCR")
        with pytest.raises(redis.ConnectionError):
            through.incr(namespace)
        fault.wait()
        assert direct.get(namespace) is None


def test_only_the_matching_reply_of_a_pipeline_is_cut(proxy: Proxy, direct: redis.Redis, namespace: str) -> None:
    with closing(client(proxy.url)) as through:
        through.ping()
        proxy.cut_next_reply(b"second")
        pipeline = through.pipeline(transaction=False)
        for value in ("first", "second", "third"):
            pipeline.rpush(namespace, value)
        with pytest.raises(redis.ConnectionError):
            pipeline.execute()
    assert direct.lrange(namespace, 0, 1) == ["first", "second"]


def test_a_black_hole_executes_and_stays_silent_until_it_heals(
    proxy: Proxy, direct: redis.Redis, namespace: str
) -> None:
    with closing(client(proxy.url, timeout=0.3)) as through:
        through.ping()
        proxy.blackhole()
        with pytest.raises(redis.TimeoutError):
            through.incr(namespace)
        assert direct.get(namespace) == "1"
        proxy.heal()
        assert through.incr(namespace) == 2


def test_a_partition_executes_nothing(proxy: Proxy, direct: redis.Redis, namespace: str) -> None:
    with closing(client(proxy.url, timeout=0.3)) as through:
        through.ping()
        proxy.blackhole(requests=True)
        with pytest.raises(redis.TimeoutError):
            through.incr(namespace)
        assert direct.get(namespace) is None
        proxy.heal()
        assert through.incr(namespace) == 1


def test_replies_can_be_late(proxy: Proxy) -> None:
    with closing(client(proxy.url)) as through:
        through.ping()
        proxy.delay(0.2)
        begun = time.monotonic()
        through.ping()
        assert time.monotonic() - begun >= 0.2


def test_connections_can_be_killed_and_refused(proxy: Proxy) -> None:
    with closing(client(proxy.url)) as through:
        through.ping()
        proxy.refuse()
        assert through.ping()
        assert proxy.kill_connections() == 1
        for _ in range(2):
            with pytest.raises(redis.ConnectionError):
                through.ping()
        proxy.heal()
        assert through.ping()


@pytest.mark.parametrize(
    "value",
    [
        b"+OK\r\n",
        b":1\r\n",
        b"$-1\r\n",
        b"$4\r\na\r\nb\r\n",
        b"*-1\r\n",
        b"*2\r\n*0\r\n$0\r\n\r\n",
        b"%1\r\n+k\r\n*1\r\n:1\r\n",
        b">2\r\n+message\r\n_\r\n",
        b"|1\r\n+ttl\r\n:1\r\n:5\r\n",
        b"PING\r\n",
    ],
)
def test_values_are_cut_out_of_a_stream_byte_by_byte(value: bytes) -> None:
    frames = Frames()
    found = [frame for byte in value * 2 for frame in frames.feed(bytes([byte]))]
    assert found == [value, value]
    assert Frames().feed(value * 3) == [value] * 3

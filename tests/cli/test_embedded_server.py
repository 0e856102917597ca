"""The embedded Valkey: one server a directory, whoever starts it and however it ends."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import redis

from tenure.drivers.redis.embedded import EmbeddedServer, find_binary
from tenure.errors import ConfigurationError, ConnectionFailed, MissingExtra
from tests.support import processes

STARTER = """
import sys
from tenure.drivers.redis.embedded import EmbeddedServer
print(EmbeddedServer(sys.argv[1]).start().url, flush=True)
"""


@pytest.fixture
def directory() -> Iterator[pathlib.Path]:
    """A directory with a short path, whose server is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="t-") as name:
        yield pathlib.Path(name)
        EmbeddedServer(name).stop()


def pid_of(server: EmbeddedServer) -> int:
    return int(msgspec.json.decode((server.directory / "server.json").read_bytes())["pid"])


def client(url: str) -> "contextlib.closing[redis.Redis]":
    return contextlib.closing(redis.Redis.from_url(url, decode_responses=True))


def test_it_starts_and_answers_on_a_unix_socket_only(directory: pathlib.Path) -> None:
    server = EmbeddedServer(directory).start()
    with client(server.url) as valkey:
        assert valkey.ping()
        assert valkey.config_get("port") == {"port": "0"}
        assert valkey.config_get("appendonly", "appendfsync") == {"appendonly": "yes", "appendfsync": "everysec"}
        assert valkey.config_get("save") == {"save": ""}
    server.stop()


def test_a_second_one_attaches_to_the_server_that_runs(directory: pathlib.Path) -> None:
    first, second = EmbeddedServer(directory).start(), EmbeddedServer(directory).start()
    assert first.url == second.url
    assert pid_of(first) == pid_of(second)
    first.stop()


def test_starting_twice_changes_nothing(directory: pathlib.Path) -> None:
    server = EmbeddedServer(directory).start()
    pid = pid_of(server)
    assert pid_of(server.start()) == pid
    server.stop()


def test_processes_that_race_for_one_directory_get_one_server(directory: pathlib.Path) -> None:
    def start(_: int) -> str:
        command = [sys.executable, "-c", STARTER, str(directory)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    with ThreadPoolExecutor(4) as pool:
        urls = set(pool.map(start, range(4)))
    assert len(urls) == 1
    with client(urls.pop().strip()) as valkey:
        assert valkey.info("server")["process_id"] == pid_of(EmbeddedServer(directory))


def test_data_written_survives_a_killed_server(directory: pathlib.Path) -> None:
    server = EmbeddedServer(directory).start()
    with client(server.url) as valkey:
        for number in range(100):
            valkey.rpush("kept", number)
    processes.kill9(pid_of(server))
    again = EmbeddedServer(directory).start()
    with client(again.url) as valkey:
        assert valkey.llen("kept") == 100
    again.stop()
    server.stop()


def test_the_one_who_started_a_killed_server_can_start_it_again(directory: pathlib.Path) -> None:
    server = EmbeddedServer(directory).start()
    killed = pid_of(server)
    processes.kill9(killed)
    assert pid_of(server.start()) != killed
    server.stop()


def test_whoever_attached_can_stop_it_and_nothing_is_left(directory: pathlib.Path) -> None:
    starter = EmbeddedServer(directory).start()
    pid = pid_of(starter)
    EmbeddedServer(directory).stop()
    assert not processes.alive(pid)
    assert not (directory / "server.json").exists()
    assert not (directory / "valkey.sock").exists()
    starter.stop()


def test_stopping_where_nothing_runs_or_ever_ran_is_fine(directory: pathlib.Path) -> None:
    EmbeddedServer(directory).stop()
    EmbeddedServer(directory / "absent").stop()


def test_a_record_that_names_a_stranger_gets_nobody_killed(directory: pathlib.Path) -> None:
    with processes.python("-c", "import time; time.sleep(60)") as stranger, EmbeddedServer(directory) as server:
        record = server.directory / "server.json"
        true = record.read_bytes()
        record.write_bytes(true.replace(b'"pid":%d' % pid_of(server), b'"pid":%d' % stranger.pid))
        with pytest.raises(ConnectionFailed, match="did not end"):
            EmbeddedServer(directory).stop(timeout=0.3)
        assert processes.alive(stranger.pid)
        record.write_bytes(true)


def test_a_path_too_long_for_a_socket_is_no_obstacle(directory: pathlib.Path) -> None:
    deep = directory / ("d" * 60) / ("e" * 60)
    server = EmbeddedServer(deep).start()
    path = pathlib.Path(server.url.removeprefix("unix://"))
    assert len(os.fsencode(path)) < 104
    with client(server.url) as valkey:
        assert valkey.ping()
    server.stop()
    assert not path.parent.exists()


def test_a_server_that_cannot_start_says_why(directory: pathlib.Path) -> None:
    with pytest.raises(ConnectionFailed, match="ended at its start"):
        EmbeddedServer(directory, binary="/bin/false").start()
    with EmbeddedServer(directory) as server:  # the failed one holds nothing any more
        assert server.url


def test_a_server_that_never_answers_is_given_up_and_ended(directory: pathlib.Path) -> None:
    silent = directory / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    server = EmbeddedServer(directory, binary=str(silent))
    with pytest.raises(ConnectionFailed, match="did not answer"):
        server.start(timeout=0.2)
    server.stop()


def test_it_has_no_url_before_it_is_started(directory: pathlib.Path) -> None:
    with pytest.raises(ConnectionFailed, match="not started"):
        _ = EmbeddedServer(directory).url


def test_the_program_named_in_the_environment_is_taken_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_VALKEY_SERVER", "/bin/true")
    assert find_binary() == "/bin/true"


def test_a_named_program_that_does_not_exist_is_an_error_with_the_keys_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_VALKEY_SERVER", "/does/not/exist")
    with pytest.raises(ConfigurationError, match="TENURE_VALKEY_SERVER"):
        find_binary()


def test_without_any_program_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENURE_VALKEY_SERVER", raising=False)
    monkeypatch.setenv("PATH", "/does/not/exist")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"tenure\[embedded\]"):
        find_binary()


def test_it_runs_in_the_process_group_that_it_is_given(directory: pathlib.Path) -> None:
    with processes.python(
        "-c", "import os, time; os.setpgid(0, 0); print('led', flush=True); time.sleep(60)"
    ) as leader:
        leader.wait_for_output("led")
        with EmbeddedServer(directory, process_group=leader.pid) as server:
            assert os.getpgid(pid_of(server)) == leader.pid
            os.killpg(leader.pid, signal.SIGKILL)
            processes.eventually(lambda: not processes.alive(pid_of(server)), what="the server ends with its group")

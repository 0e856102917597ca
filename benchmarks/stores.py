"""Stores of the benchmarks' own: started for one run, in a temporary directory, and gone after it."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tenure.drivers.redis.embedded import find_binary
from tenure.drivers.sql.server.tables import create_tables
from tests.support.databases import mariadb, mariadb_program, postgres, postgres_programs

DATABASES = ("postgresql", "mariadb")


@contextlib.contextmanager
def opened(kind: str, directory: Path, *, binary: str | None = None, durable: bool = False) -> Iterator[str]:
    """Give the URL of a fresh store of this kind for the length of the block."""
    if kind == "sqlite":
        yield f"sqlite:///{directory / 'bench.db'}"
        return
    if kind == "memory":
        yield "memory://"
        return
    if kind in DATABASES:
        yield from _database(kind)
        return
    if kind != "redis":
        raise ValueError(kind)
    # Over TCP, as nearly everybody uses it.
    port = _free_port()
    command = [binary or find_binary(), "--dir", str(directory), "--bind", "127.0.0.1", "--port", str(port)]
    command += ["--save", "", "--appendonly", "yes" if durable else "no", "--appendfsync", "everysec"]
    with (directory / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_for(port, server)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)


def available(kind: str) -> bool:
    """Tell whether the programs of a database server are here; the other stores always are."""
    if kind == "postgresql":
        return postgres_programs() is not None
    return kind != "mariadb" or mariadb_program() is not None


def servers() -> list[str]:
    """Return what the programs of the servers that are here call themselves."""
    postgresql = postgres_programs()
    programs = [find_binary(), postgresql and postgresql / "postgres", mariadb_program()]
    said = [
        subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        for program in programs
        if program
    ]
    return [text.partition(" sha=")[0].partition(" for ")[0] for text in said]


def _database(kind: str) -> Iterator[str]:
    """Run one with every commit on the disk, as it comes from its makers, and with tenure's tables."""
    programs, program = postgres_programs(), mariadb_program()
    with contextlib.ExitStack() as stack:
        if kind == "postgresql" and programs is not None:
            database = stack.enter_context(postgres(programs, durable=True))
        elif kind == "mariadb" and program is not None:
            database = stack.enter_context(mariadb(program, durable=True))
        else:
            raise SystemExit(f"there is no {kind} here: tools/servers.sh installs it")
        create_tables(database.engine())
        yield database.url


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(b"PING\r\n")
            if connection.recv(16).startswith(b"+PONG"):
                return
        time.sleep(0.01)
    raise SystemExit("the benchmark's server did not start")

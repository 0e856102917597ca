"""Measure what no job library here can be faster than: the server, the loop, the client and the disk by themselves.

    python -m benchmarks.limits [--number 200000]

A server does LPUSH and RPOP of 250 bytes and a script that does nothing, by redis-benchmark where that is installed; a
loop runs empty tasks; clients do LPUSH one after the other and a hundred in a pipeline; a disk is told to keep a page.
"""

import argparse
import asyncio
import csv
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
import redis.asyncio

from benchmarks.report import machine, markdown, spread
from benchmarks.stores import opened

BODY = b"x" * 250
PIPELINE = 100
TASKS = 100
"""That are in the loop at a time, as with a worker of this concurrency."""
PAGE = 4096
SYNCED = 300


def server(url: str, number: int) -> Iterator[tuple[str, float]]:
    """By redis-benchmark: one connection with fifty commands in flight, and one with one."""
    program = shutil.which("redis-benchmark") or shutil.which("valkey-benchmark")
    if program is None:
        return
    client = redis.Redis.from_url(url)
    nothing = str(client.script_load("return 1"))
    client.close()
    for flags, told in ((["-c", "1", "-P", "50"], "50 in flight"), (["-c", "1"], "one after the other")):
        many = number if len(flags) > 2 else number // 10
        command = [program, "-p", str(urlsplit(url).port), "-n", str(many), *flags, "--csv"]
        for tests in (["-d", str(len(BODY)), "-t", "lpush,rpop"], ["EVALSHA", nothing, "1", "bench"]):
            done = subprocess.run([*command, *tests], capture_output=True, text=True, check=True)
            for row in list(csv.reader(done.stdout.splitlines())):
                if len(row) > 1 and row[1].replace(".", "").isdigit():
                    name = "an empty script" if tests[0] == "EVALSHA" else row[0]
                    yield f"server: {name}, {told}", float(row[1])


async def loop(number: int) -> float:
    """Empty tasks a second, so many at a time."""

    async def nothing() -> None:
        pass

    begin = time.perf_counter()
    for _ in range(number // TASKS):
        await asyncio.gather(*(asyncio.create_task(nothing()) for _ in range(TASKS)))
    return number / (time.perf_counter() - begin)


def bare_socket(url: str, number: int) -> float:
    parts = urlsplit(url)
    wire = b"*3\r\n$5\r\nLPUSH\r\n$5\r\nbench\r\n$%d\r\n%b\r\n" % (len(BODY), BODY)
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.perf_counter()
        for _ in range(number):
            connection.sendall(wire)
            connection.recv(64)
        return number / (time.perf_counter() - begin)


async def client(url: str, number: int, size: int) -> float:
    connection: Any = redis.asyncio.Redis.from_url(url)

    async def one() -> None:
        await connection.lpush("bench", BODY)

    async def many() -> None:
        pipeline = connection.pipeline(transaction=False)
        for _ in range(size):
            pipeline.lpush("bench", BODY)
        await pipeline.execute()

    call: Callable[[], Awaitable[None]] = one if size == 1 else many
    await connection.ping()
    begin = time.perf_counter()
    for _ in range(number // size):
        await call()
    seconds = time.perf_counter() - begin
    await connection.aclose()
    return number // size * size / seconds


def disk(directory: Path, number: int) -> float:
    with (directory / "page").open("wb", buffering=0) as file:
        begin = time.perf_counter()
        for _ in range(number):
            file.write(b"x" * PAGE)
            os.fdatasync(file.fileno())
        return number / (time.perf_counter() - begin)


def measure(number: int, binary: str | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name, opened("redis", Path(name), binary=binary) as url:
        found = dict(server(url, number))
        found["loop: empty tasks, 100 at a time"] = asyncio.run(loop(number))
        found["client: a bare socket, LPUSH one after the other"] = bare_socket(url, number // 10)
        found["client: redis.asyncio, LPUSH one after the other"] = asyncio.run(client(url, number // 40, 1))
        found[f"client: redis.asyncio, LPUSH {PIPELINE} in a pipeline"] = asyncio.run(
            client(url, number // 4, PIPELINE)
        )
        found["disk: pages written and synced"] = disk(Path(name), min(SYNCED, number))
        return found


def table(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row["values"]))
    lines = [[name, spread([row["values"][name] for row in rows if name in row["values"]])] for name in names]
    return markdown(["", "a second"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--number", type=int, default=200_000, help="of the fastest; the others do a part of it")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--server", help="the server program (default: as for an embedded server)")
    parser.add_argument("--out", help="a file to append the runs to, as JSON lines")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with Path(arguments.out or os.devnull).open("a") as out:
        for run in range(arguments.runs):
            rows.append({"run": run, "values": measure(arguments.number, arguments.server)})
            out.write(json.dumps(rows[-1]) + "\n")
    print(machine())
    print(table(rows))


if __name__ == "__main__":
    main()

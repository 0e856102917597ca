"""Measure what a waiting job costs the server's memory, and its append-only file.

    python -m benchmarks.memory [--jobs 100000] [--envelope 250] [--server PROGRAM]

Pushes jobs whose envelopes have exactly that many bytes, then reads `used_memory` before and after, MEMORY USAGE of
each key, and the size of the append-only file.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis.asyncio

from benchmarks.stores import opened
from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.keys import Keyspace
from tenure.envelope import VERSION, Envelope, encode
from tenure.naming import new_job_id
from tenure.queue import Push

NAMESPACE = "memory"
QUEUE = "default"
KEYS = ("jobs", "running", "ready", "ready:prio", "delayed", "leased", "failed", "failed:at")


def envelope(size: int) -> tuple[str, bytes]:
    """Return a job id and an envelope of that many bytes, whose one argument fills what the rest leaves."""
    job_id = new_job_id()
    empty = Envelope(v=VERSION, id=job_id, name="shop.remind", queue=QUEUE)
    filling = "x" * max(0, size - len(encode(_with_meta(empty, ""))))
    return job_id, encode(_with_meta(empty, filling))


def _with_meta(base: Envelope, filling: str) -> Envelope:
    return Envelope(v=base.v, id=base.id, name=base.name, queue=base.queue, meta={"filling": filling})


async def push(queue: RedisQueue, number: int, size: int, **options: Any) -> None:
    for start in range(0, number, 500):
        jobs = [envelope(size) for _ in range(min(500, number - start))]
        await queue.push([Push(queue=QUEUE, id=job_id, envelope=data, **options) for job_id, data in jobs])


async def used(client: "redis.asyncio.Redis") -> int:
    seen: dict[str, Any] = await client.info("memory")
    return int(seen["used_memory"])


async def measure(url: str, number: int, size: int) -> Sequence[tuple[str, float]]:
    client = redis.asyncio.Redis.from_url(url)
    queue = RedisQueue.from_url(url, namespace=NAMESPACE)
    keys = Keyspace(NAMESPACE).queue(QUEUE)
    rows: list[tuple[str, float]] = []
    try:
        await push(queue, 1, size)
        before = await used(client)
        await push(queue, number, size)
        rows.append(("a ready job, by used_memory", (await used(client) - before) / number))
        for name in KEYS:
            usage = await client.memory_usage(keys.named(name).decode(), samples=0)
            if usage and usage / number > 1:
                rows.append((f"    of it in :{name}, by MEMORY USAGE", usage / number))
        before = await used(client)
        await queue.claim([QUEUE], limit=1000, lease=600, wait=0)
        rows.append(("more while it is leased", (await used(client) - before) / 1000))
        before = await used(client)
        await push(queue, number, size, delay=3600)
        rows.append(("a delayed job", (await used(client) - before) / number))
    finally:
        await queue.aclose()
        await client.aclose()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--envelope", type=int, default=250, help="bytes of each envelope (default 250)")
    parser.add_argument("--server", help="the server program (default: as for an embedded server)")
    parser.add_argument("--out", help="a file to append the figures to, as a line of JSON")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="b-") as directory,
        opened("redis", Path(directory), binary=arguments.server, durable=True) as url,
    ):
        rows = asyncio.run(measure(url, arguments.jobs, arguments.envelope))
        logged = sum(path.stat().st_size for path in Path(directory).rglob("*aof*") if path.is_file())
    found = [*rows, ("written to the append-only file by each push", logged / (2 * arguments.jobs))]
    print(f"{arguments.jobs:,} jobs with envelopes of {arguments.envelope} bytes")
    for what, number in found:
        print(f"{number:8.0f} bytes  {what}")
    with Path(arguments.out or os.devnull).open("a") as out:
        out.write(json.dumps({"envelope": arguments.envelope, "values": dict(found)}) + "\n")


if __name__ == "__main__":
    main()

"""Measure what a job costs the Redis server: pushed, claimed and settled in calls of fifty.

    python -m benchmarks.server [--jobs 50000] [--server PROGRAM]

At the level of the driver, one process. ``in commands`` is what INFO commandstats says of the calls that the driver
makes; ``of a core`` is the server process's time, network and all.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis

from benchmarks.report import machine, markdown, spread
from benchmarks.scaling_child import BATCH, LEASE, QUEUE, push
from benchmarks.stores import opened
from tenure import Tenure
from tenure.queue import Ack, Lease, Queue

CALLED = ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_evalsha_ro", "cmdstat_fcall")
"""Scripts: the time of the commands in them is in theirs."""
STEPS = ("push", "claim", "settle")


class Spent:
    """The server's time between two looks, in microseconds."""

    def __init__(self, client: "redis.Redis") -> None:
        self._client = client
        self._before = self._now()

    def _now(self) -> Mapping[str, float]:
        stats: dict[str, Any] = self._client.info("commandstats")
        cpu: dict[str, Any] = self._client.info("cpu")
        return {
            "in commands": sum(stats[name]["usec"] for name in CALLED if name in stats),
            "of a core": 1e6 * (cpu["used_cpu_user"] + cpu["used_cpu_sys"]),
        }

    def take(self) -> Mapping[str, float]:
        """Return what was spent since the last look."""
        before, self._before = self._before, self._now()
        return {key: value - before[key] for key, value in self._before.items()}


async def cycle(queue: Queue, client: "redis.Redis", jobs: int) -> Mapping[str, float]:
    """Push all, claim all, settle all, and return µs per job of each step."""
    await queue.counts(QUEUE)
    spent = Spent(client)
    leases: list[Lease] = []
    found: dict[str, float] = {}

    def told(step: str) -> None:
        found.update({f"{step}, {key}": value / jobs for key, value in spent.take().items()})

    for _ in range(jobs // BATCH):
        await push(queue, BATCH)
    told("push")
    while claimed := (await queue.claim([QUEUE], limit=BATCH, lease=LEASE * 10, wait=0)).leases:
        leases += claimed
    told("claim")
    for begin in range(0, len(leases), BATCH):
        await queue.settle([Ack(lease) for lease in leases[begin : begin + BATCH]])
    told("settle")
    return found


def measure(line: str, jobs: int, binary: str | None) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name, opened("redis", Path(name), binary=binary) as url:
        client = redis.Redis.from_url(url)
        app = Tenure(url.replace("://", f"+{line}://", 1) if line else url)

        async def body() -> Mapping[str, float]:
            try:
                return await cycle(app.queue(), client, jobs)
            finally:
                await app.aclose()

        try:
            return asyncio.run(body())
        finally:
            client.close()


def table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for name in dict.fromkeys(row["driver"] for row in rows):
        found = [row["values"] for row in rows if row["driver"] == name]
        for key in ("in commands", "of a core"):
            steps = [spread([values[f"{step}, {key}"] for values in found]) for step in STEPS]
            whole = spread([sum(values[f"{step}, {key}"] for step in STEPS) for values in found])
            lines.append([f"{name}, {key}", *steps, whole])
    return markdown(["µs a job", *STEPS, "all"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--server", help="the server program (default: as for an embedded server)")
    parser.add_argument("--out", help="a file to append the runs to, as JSON lines")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with Path(arguments.out or os.devnull).open("a") as out:
        for run in range(arguments.runs):
            for line in ("", "streams"):
                values = measure(line, arguments.jobs, arguments.server)
                rows.append({"run": run, "driver": f"redis{line and '-'}{line}", "values": values})
                out.write(json.dumps(rows[-1]) + "\n")
    print(machine())
    print(table(rows))


if __name__ == "__main__":
    main()

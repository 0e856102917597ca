"""Run a worker at its full rate for long, and fail when anything of it grows.

    python -m benchmarks.soak --minutes 10
    python -m benchmarks.soak --hours 8

Now and then the pushing pauses until everything has ended, and the worker is looked at while it rests: what a job takes
is given back by then. After a warm-up, tasks, threads, open files, the server's connections and its keys must stay as
many as they are; through the memory of the worker and of the server a line is laid, which must not rise.
"""

import argparse
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import redis

from benchmarks.contender import clean_environment
from benchmarks.soaking import BESIDE, MIX, PLANT_KEY, QUEUE, TASKS_KEY, registered
from benchmarks.stores import opened
from tenure import Tenure

BACKLOG, CHUNK = 2_000, 500
"""Jobs that wait at least while it is pushed, and that are pushed at a time."""
WARM_UP = 0.25
"""The share of the samples that say nothing yet: threads are started, caches filled, arenas made."""
STRAYS = 2
"""By how much a number may differ while it rests: a claim may be between two calls."""
ALLOWED = 2 * 2**20
"""Bytes that memory may grow beyond what the noise explains, whatever the length of the run."""
SIGMAS = 3.0
COUNTED = ("tasks", "threads", "files", "connections", "keyspace")
MEASURED = ("memory", "server")


class Sample(NamedTuple):
    """A worker at rest, and its server."""

    at: float
    jobs: int
    memory: float
    server: float
    tasks: float
    threads: float
    files: float
    connections: float
    keyspace: float


class Line(NamedTuple):
    """A line through a series, by least squares."""

    slope: float
    error: float
    """The standard error of the slope."""


def fitted(series: Sequence[tuple[float, float]]) -> Line:
    """Return the line through points; needs three."""
    slope, base = statistics.linear_regression(*zip(*series, strict=True))
    middle = statistics.fmean(x for x, _ in series)
    spread = sum((x - middle) ** 2 for x, _ in series)
    rest = sum((y - base - slope * x) ** 2 for x, y in series)
    return Line(slope, (rest / (len(series) - 2) / spread) ** 0.5)


def judged(samples: Sequence[Sample]) -> Iterator[tuple[str, str, bool]]:
    """Yield for each series its name, what became of it, and whether it grew."""
    for name in MEASURED:
        line = fitted([(sample.jobs, getattr(sample, name)) for sample in samples])
        jobs = samples[-1].jobs - samples[0].jobs
        growth, noise = line.slope * jobs, SIGMAS * line.error * jobs
        found = f"{growth / 2**20:+.2f} MiB in {jobs:,} jobs (noise {noise / 2**20:.2f} MiB)"
        yield name, found, growth - noise > ALLOWED
    for name in COUNTED:
        values = [getattr(sample, name) for sample in samples]
        yield name, f"{min(values):.0f} to {max(values):.0f}", max(values) > values[0] + STRAYS


class Soak:
    """One worker on one server."""

    def __init__(self, url: str, namespace: str, worker: subprocess.Popen[bytes], tasks: Path) -> None:
        self._app = registered(Tenure(url, namespace=namespace))
        self._server = redis.Redis.from_url(url)
        self._worker = worker
        self._tasks = tasks
        self._pushed = 0
        self._began = time.monotonic()

    def start_threads(self, number: int) -> None:
        """Let so many threads run at the same time: they stay."""
        self._app.push_many_sync(self._app.call("threaded", [0]) for _ in range(number))
        self.round(0.5)

    def round(self, seconds: float) -> Sample:
        """Work at the full rate for so long, then rest, and look."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._app.counts_sync(QUEUE).ready < BACKLOG:
                self._push()
            else:
                time.sleep(0.01)
        while any(self._waiting()):
            time.sleep(0.01)
        time.sleep(0.2)  # for the last settlements, and for the count of the tasks
        return self._sample()

    def close(self) -> None:
        self._app.close_sync()
        self._server.close()

    def _push(self) -> None:
        numbers = range(self._pushed + 1, self._pushed + CHUNK + 1)
        self._app.push_many_sync(self._app.call(BESIDE.get(number % MIX, "quick"), [number]) for number in numbers)
        self._pushed += CHUNK

    def _waiting(self) -> tuple[int, int, int]:
        if self._worker.poll() is not None:
            raise SystemExit(f"the worker has ended with {self._worker.returncode}")
        counts = self._app.counts_sync(QUEUE)
        if counts.failed:
            raise SystemExit(f"{counts.failed} jobs have failed")
        return counts.ready, counts.delayed, counts.leased

    def _sample(self) -> Sample:
        process = Path(f"/proc/{self._worker.pid}")
        info: dict[str, Any] = self._server.info()
        return Sample(
            at=time.monotonic() - self._began,
            jobs=self._pushed,
            memory=int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
            server=info["used_memory"],
            tasks=int(self._tasks.read_text()),
            threads=len(list((process / "task").iterdir())),
            files=len(list((process / "fd").iterdir())),
            connections=info["connected_clients"],
            keyspace=self._server.dbsize(),
        )


@contextmanager
def working(concurrency: int, plant: str) -> Iterator[Soak]:
    """Run a worker on a server of its own for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name, opened("redis", Path(name)) as url:
        tasks, namespace = Path(name, "tasks"), f"soak-{secrets.token_hex(6)}"
        environment = {"TENURE_URL": url, "QUEUE_NAMESPACE": namespace, TASKS_KEY: str(tasks), PLANT_KEY: plant}
        command = [sys.executable, "-m", "tenure", "worker", "benchmarks.soaking:app", "-q", QUEUE]
        worker = subprocess.Popen(
            [*command, "--concurrency", str(concurrency), "--log-level", "warning"],
            stdin=subprocess.DEVNULL,
            env={**clean_environment(Path(name)), **environment},
        )
        try:
            with closing(Soak(url, namespace, worker, tasks)) as soak:
                yield soak
        finally:
            worker.terminate()
            if worker.wait(60) != 0:
                raise SystemExit(f"the worker ended with {worker.returncode}")


def main() -> None:
    arguments = _arguments()
    seconds = arguments.seconds + 60 * arguments.minutes + 3600 * arguments.hours or 600.0
    rounds = int(max(8, min(seconds / 5, 500)))
    samples: list[Sample] = []
    print(HEAD)
    with working(arguments.concurrency, arguments.plant or "") as soak:
        soak.start_threads(arguments.concurrency)
        for number in range(rounds):
            samples.append(soak.round(seconds / rounds))
            if number % max(1, rounds // 20) == 0 or number == rounds - 1:
                print(_row(samples), flush=True)
    kept = samples[int(len(samples) * WARM_UP) :]
    grown = []
    for name, found, grew in judged(kept):
        print(f"{name}: {found}{', which is growth' if grew else ''}")
        grown += [name] * grew
    if grown:
        raise SystemExit(f"not flat: {', '.join(grown)}")
    print("flat")


HEAD = f"{'min':>6} {'jobs':>10} {'jobs/s':>7} {'memory':>8} {'server':>8} tasks threads files connections keyspace"


def _row(samples: Sequence[Sample]) -> str:
    now, before = samples[-1], samples[-2] if len(samples) > 1 else None
    rate = 0.0 if before is None else (now.jobs - before.jobs) / (now.at - before.at)
    mib = [f"{value / 2**20:8.2f}" for value in (now.memory, now.server)]
    return (
        f"{now.at / 60:6.1f} {now.jobs:10,} {rate:7,.0f} {' '.join(mib)} {now.tasks:5.0f} {now.threads:7.0f} "
        f"{now.files:5.0f} {now.connections:11.0f} {now.keyspace:8.0f}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=0.0, help="together with the others; default: ten minutes")
    parser.add_argument("--concurrency", type=int, default=100, help="of the worker (default 100)")
    parser.add_argument("--plant", choices=["memory", "tasks", "connections"], help="let the jobs leak this")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Measure how many jobs a second several processes claim and settle, with few and with many that wait.

    python -m benchmarks.scaling
    python -m benchmarks.scaling --stores redis --backlogs 10000000 --delayed 1000000

At the level of the driver: each process claims fifty jobs and settles them, as fast as it can, and nothing runs. One
more process pushes what they take away, so that the backlog stays what it is; the table tells how low it got.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from benchmarks.contender import ROOT, clean_environment
from benchmarks.report import machine, markdown, number, spread
from benchmarks.stores import available, opened

STORES = ("sqlite", "postgresql", "mariadb", "redis", "redis-streams")
JOB_BYTES = 600
"""What a waiting job takes of a server's memory at most, with an envelope of 250 bytes."""
SPARE = 1.5


class Steps:
    """The children of one measurement, which do nothing until they are told to, all at the same time."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._children: list[subprocess.Popen[str]] = []

    def start(self, role: str, amount: float) -> None:
        """Start one; returns when it is ready."""
        command = [sys.executable, "-m", "benchmarks.scaling_child", role, str(amount)]
        child = subprocess.Popen(
            command, cwd=ROOT, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._children.append(child)
        if self._pipe(child.stdout).readline().strip() != "ready":
            raise SystemExit(f"the {role} did not start")

    def go(self) -> Sequence[dict[str, float]]:
        """Let all of them work, and return what each tells at its end."""
        for child in self._children:
            self._pipe(child.stdin).write("go\n")
            self._pipe(child.stdin).flush()
        told = [self._pipe(child.stdout).readline() for child in self._children]
        if not all(told):
            raise SystemExit("a process of the measurement ended before its time")
        return [json.loads(line) for line in told]

    def close(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                self._pipe(pipe).close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        if pipe is None:
            raise SystemExit("a process of the measurement has no pipe")
        return pipe


def main() -> None:
    arguments = _arguments()
    _refuse_too_much(arguments)
    rows: list[dict[str, Any]] = []
    with Path(arguments.out or os.devnull).open("a") as out:
        for store in arguments.stores.split(","):
            if not available(store):
                print(f"there is no {store} here", file=sys.stderr)
                continue
            for row in _measured(store, arguments):
                rows.append(row)
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(json.dumps(row), file=sys.stderr, flush=True)
    print(machine())
    print(table(rows))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a line a store and backlog, a column a number of processes."""
    columns = sorted({row["workers"] for row in rows})
    lines = []
    for store, backlog, delayed in dict.fromkeys((row["store"], row["backlog"], row["delayed"]) for row in rows):
        here = [row for row in rows if (row["store"], row["backlog"], row["delayed"]) == (store, backlog, delayed)]
        told = f"{store}, {backlog:,} wait" + (f", {delayed:,} delayed" if delayed else "")
        cells = [spread([row["jobs/s"] for row in here if row["workers"] == workers]) for workers in columns]
        lines.append([told, *cells, number(min(row["least"] for row in here))])
    return markdown(["jobs/s, claimed and settled", *(f"{workers}" for workers in columns), "least that waited"], lines)


def _measured(store: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    backlogs = sorted(int(text) for text in arguments.backlogs.split(","))
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as name,
        opened(store.removesuffix("-streams"), Path(name), durable=arguments.durable) as url,
    ):
        scheme = "+streams://" if store.endswith("-streams") else "://"
        place = {"TENURE_URL": url.replace("://", scheme, 1), "QUEUE_NAMESPACE": "scaling"}
        environment = {**clean_environment(Path(name)), **place}
        if arguments.delayed:
            _once(environment, "delayed", arguments.delayed)
        for backlog in backlogs:
            filled = _once(environment, "fill", backlog)["seconds"]
            for run in range(arguments.runs):
                for workers in (int(text) for text in arguments.workers.split(",")):
                    found = _run(environment, workers, backlog, arguments.seconds)
                    about = {"store": store, "backlog": backlog, "delayed": arguments.delayed, "filled": filled}
                    yield {**about, "run": run, "workers": workers, **found}


def _run(environment: dict[str, str], workers: int, backlog: int, seconds: float) -> dict[str, float]:
    with contextlib.closing(Steps({**environment, "SCALING_SECONDS": str(seconds)})) as steps:
        steps.start("hold", backlog)
        for _ in range(workers):
            steps.start("work", seconds)
        held, *told = steps.go()
    return {"jobs/s": sum(child["jobs"] / child["seconds"] for child in told), "least": held["least"]}


def _once(environment: dict[str, str], role: str, amount: int) -> dict[str, float]:
    with contextlib.closing(Steps(environment)) as steps:
        steps.start(role, amount)
        [told] = steps.go()
    return dict(told)


def _refuse_too_much(arguments: argparse.Namespace) -> None:
    jobs = max(int(text) for text in arguments.backlogs.split(",")) + arguments.delayed
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if "redis" in arguments.stores and jobs * JOB_BYTES * SPARE > free:
        raise SystemExit(f"{jobs:,} jobs may take {jobs * JOB_BYTES / 2**30:.1f} GiB, and {free / 2**30:.1f} are free")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--workers", default="1,2,4,8", help="how many processes, separated by commas")
    parser.add_argument("--backlogs", default="1000,1000000", help="how many jobs wait, separated by commas")
    parser.add_argument("--delayed", type=int, default=0, help="so many jobs wait for their time besides")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run")
    parser.add_argument("--durable", action="store_true", help="Redis writes an append-only file")
    parser.add_argument("--out", help="a file to append the runs to, as JSON lines")
    return parser.parse_args()


if __name__ == "__main__":
    main()

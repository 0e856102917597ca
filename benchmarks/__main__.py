"""Measure tenure, and other job libraries where they are installed, on stores of this run's own.

    python -m benchmarks                     everything, five runs each, about six minutes
    python -m benchmarks --only drain --contender "tenure redis" --runs 7

One line of JSON a run goes to the file of --out, the table of medians to standard output.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contender import Contender, clean_environment, contenders
from benchmarks.measures import MEASURES, Setting
from benchmarks.report import table
from benchmarks.stores import opened


def main() -> None:
    arguments = _arguments()
    if arguments.child:
        _child(arguments)
        return
    chosen = [contender for contender in contenders() if arguments.contender in {None, contender.name}]
    measures = arguments.only.split(",") if arguments.only else list(MEASURES)
    if not chosen or not set(measures) <= set(MEASURES):
        known = ", ".join(contender.name for contender in contenders())
        raise SystemExit(f"contenders are: {known}; measures are: {', '.join(MEASURES)}")
    rows = []
    with Path(arguments.out or os.devnull).open("a") as out:
        for row in _runs(arguments, chosen, measures):
            rows.append(row)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()} {platform.system()}")
    print(table(rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each measure; the table shows the median")
    parser.add_argument("--only", help=f"measures, separated by commas: {', '.join(MEASURES)}")
    parser.add_argument("--contender", help="one contender, by its name in the table")
    parser.add_argument("--jobs", type=int, help="jobs of a run, instead of each measure's own number")
    parser.add_argument("--concurrency", type=int, default=100, help="of the worker (default 100)")
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="how long an idle worker is watched")
    parser.add_argument("--server", help="the server program for Redis (default: as for an embedded server)")
    parser.add_argument("--durable", action="store_true", help="the server writes an append-only file")
    parser.add_argument("--out", help="a file to append the runs to, as JSON lines")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _runs(
    arguments: argparse.Namespace, chosen: Sequence[Contender], measures: Sequence[str]
) -> Iterator[dict[str, Any]]:
    # Runs of one measure are spread over the whole time, so that a slow minute of the machine does not hit one alone.
    for number in range(arguments.runs):
        for contender in chosen:
            for measure in measures:
                yield {
                    "run": number,
                    "contender": contender.name,
                    "measure": measure,
                    **_run(arguments, contender, measure),
                }


def _run(arguments: argparse.Namespace, contender: Contender, measure: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        with opened(contender.store, directory, binary=arguments.server, durable=arguments.durable) as url:
            jobs = arguments.jobs or MEASURES[measure][1][contender.store]
            command = [sys.executable, "-m", "benchmarks", "--child", f"{contender.name}/{measure}"]
            command += ["--directory", name, "--jobs", str(jobs), "--concurrency", str(arguments.concurrency)]
            command += ["--idle-seconds", str(arguments.idle_seconds)]
            environment = {**clean_environment(directory), **contender.environment(url)}
            begin = time.monotonic()
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{contender.name}, {measure}: {done.stderr}")
    return {"jobs": jobs, "took": round(time.monotonic() - begin, 1), "values": json.loads(done.stdout)}


def _child(arguments: argparse.Namespace) -> None:
    name, _, measure = arguments.child.partition("/")
    [contender] = [contender for contender in contenders() if contender.name == name]
    setting = Setting(
        contender,
        jobs=arguments.jobs,
        concurrency=arguments.concurrency,
        directory=arguments.directory,
        idle=arguments.idle_seconds,
    )
    print(json.dumps(dict(MEASURES[measure][0](setting))))


if __name__ == "__main__":
    main()

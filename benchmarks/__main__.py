"""Measure tenure, and other job libraries where they are installed, on stores of this run's own.

    python -m benchmarks --contender tenure            everything of tenure's
    python -m benchmarks --only drain --concurrency 1,10,100
    python -m benchmarks --only drain --contender "tenure redis" --runs 7

One line of JSON a run goes to the file of --out, the table of medians to standard output. Contenders take turns in each
measure of each run, so that a ratio is of two figures that were taken one after the other.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contender import ROOT, Contender, clean_environment
from benchmarks.field import chosen, known
from benchmarks.measures import MEASURES
from benchmarks.report import machine, table
from benchmarks.setting import Setting
from benchmarks.stores import opened


def main() -> None:
    arguments = _arguments()
    if arguments.child:
        _child(arguments)
        return
    contenders = chosen(arguments.contender)
    measures = [name.strip() for name in arguments.only.split(";")] if arguments.only else list(MEASURES)
    measures = [part for name in measures for part in _split(name)]
    if not contenders or not set(measures) <= set(MEASURES):
        names = ", ".join(contender.name for contender in known())
        raise SystemExit(f"contenders are: {names}; measures are: {'; '.join(MEASURES)}")
    rows = []
    with Path(arguments.out or os.devnull).open("a") as out:
        for row in _runs(arguments, contenders, measures):
            rows.append(row)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(machine())
    print(table(rows))
    failed = [row for row in rows if "error" in row]
    for row in failed:
        print(f"{row['contender']}, {row['measure']}: {row['error']}", file=sys.stderr)
    if failed:
        raise SystemExit(f"{len(failed)} of {len(rows)} runs failed")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each measure; the table shows the median")
    parser.add_argument("--only", help=f"measures, separated by semicolons or commas: {'; '.join(MEASURES)}")
    parser.add_argument("--contender", help="contenders by the names in the table, or by how they begin, and commas")
    parser.add_argument("--jobs", type=int, help="jobs of a run, instead of each measure's own number")
    parser.add_argument("--concurrency", default="100", help="of the worker; 1,10,100 drains at each (default 100)")
    parser.add_argument("--seconds", type=float, default=3.0, help="a drained queue is watched for so long at most")
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="how long an idle worker is watched")
    parser.add_argument("--server", help="the server program for Redis (default: as for an embedded server)")
    parser.add_argument("--durable", action="store_true", help="the server writes an append-only file")
    parser.add_argument("--out", help="a file to append the runs to, as JSON lines")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _split(text: str) -> Sequence[str]:
    """Return the measures of a text in which commas stand between names and within some of them."""
    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if names and f"{names[-1]}, {part}" in MEASURES:
            names[-1] = f"{names[-1]}, {part}"
        else:
            names.append(part)
    return names


def _runs(
    arguments: argparse.Namespace, contenders: Sequence[Contender], measures: Sequence[str]
) -> Iterator[dict[str, Any]]:
    # Runs of one measure are spread over the whole time, so that a slow minute of the machine does not hit one alone.
    slots = [int(number) for number in arguments.concurrency.split(",")]
    for number in range(arguments.runs):
        for measure in measures:
            for concurrency in slots if MEASURES[measure].slots else slots[-1:]:
                for contender in contenders:
                    if measure not in contender.offers or (MEASURES[measure].slots and concurrency > contender.most):
                        continue
                    several = MEASURES[measure].slots and len(slots) > 1
                    yield {
                        "run": number,
                        "contender": contender.name,
                        "rival": contender.rival,
                        "measure": f"{measure} at {concurrency}" if several else measure,
                        **_run(arguments, contender, measure, min(concurrency, contender.most)),
                    }


def _run(arguments: argparse.Namespace, contender: Contender, name: str, concurrency: int) -> dict[str, Any]:
    measure = MEASURES[name]
    jobs = arguments.jobs or (contender.rival and measure.peers) or measure.jobs[contender.store]
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        place = Path(directory)
        with opened(contender.store, place, binary=arguments.server, durable=arguments.durable) as url:
            command = [sys.executable, "-m", "benchmarks", "--child", f"{contender.name}/{name}"]
            command += ["--directory", directory, "--jobs", str(jobs), "--concurrency", str(concurrency)]
            command += ["--seconds", str(arguments.seconds), "--idle-seconds", str(arguments.idle_seconds)]
            environment = {**clean_environment(place), **contender.environment(url)}
            begin = time.monotonic()
            done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    took = round(time.monotonic() - begin, 1)
    if done.returncode != 0:
        return {"jobs": jobs, "took": took, "error": done.stderr[-3000:]}
    return {"jobs": jobs, "took": took, "values": json.loads(done.stdout)}


def _child(arguments: argparse.Namespace) -> None:
    name, _, measure = arguments.child.partition("/")
    [contender] = [contender for contender in known() if contender.name == name]
    setting = Setting(
        contender,
        jobs=arguments.jobs,
        concurrency=int(arguments.concurrency),
        directory=arguments.directory,
        idle=arguments.idle_seconds,
        seconds=arguments.seconds,
    )
    with contextlib.closing(contender):
        contender.prepare()
        print(json.dumps(dict(MEASURES[measure].run(setting))))


if __name__ == "__main__":
    main()

"""Kill the worker of each library half-way, start another one, and see which jobs it lost and ran twice.

    python -m benchmarks.crash
    python -m benchmarks.crash --contender "tenure redis,huey" --parallel 1

Two hundred jobs of 50 ms wait. When half of them have ended, the worker's whole process group gets SIGKILL and a second
worker starts at once. Leases and time-outs are set to five seconds or what comes nearest; each library waits for its
recovery for as long as it may need. Several libraries run at a time, each on a server of its own: jobs that sleep leave
a machine idle.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contender import ROOT, Contender, clean_environment
from benchmarks.field import chosen, known
from benchmarks.jobs import SLOW_SECONDS
from benchmarks.ours import CRASH_LEASE
from benchmarks.report import machine, markdown, number
from benchmarks.setting import Setting, kill
from benchmarks.stores import opened

JOBS = 200
FEWEST = 30.0
"""Seconds that the first worker has for its half."""
REST = 1.0
"""Seconds in which jobs that are running still may end twice."""


def crash(run: Setting, patience: float) -> Mapping[str, float | None]:
    """Return what became of the jobs; times are seconds since the kill."""
    run.contender.push_slow(run.jobs)
    with run.worker() as first:
        _wait(lambda: len(run.records.ends()) >= run.jobs / 2, FEWEST + run.jobs * 0.1)
        # The jobs that ended last ended together: those behind them are half-way now.
        time.sleep(SLOW_SECONDS / 2)
        kill(first)
        killed = time.time()
    ended = {job for job, _ in run.records.ends()}
    interrupted = {job for job, _ in run.records.starts()} - ended
    if len(ended) < run.jobs / 2:
        raise SystemExit(f"the first worker ended {len(ended)} jobs:\n{run.log.read_text(errors='replace')[-2000:]}")
    with run.worker():
        _wait(lambda: len({job for job, _ in run.records.ends()}) == run.jobs, patience)
        time.sleep(REST)
    ends = [job for job, _ in run.records.ends()]
    again = [at - killed for job, at in run.records.starts() if job in interrupted and at > killed]
    return {
        "interrupted": len(interrupted),
        "missing": run.jobs - len(set(ends)),
        "twice": len(ends) - len(set(ends)),
        "recovered": max(again) if again else None,
        "last": max(at for _, at in run.records.ends()) - killed,
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a line a contender: sums of the runs, and the median of their times."""
    lines = []
    for name in dict.fromkeys(row["contender"] for row in rows):
        found = [row["values"] for row in rows if row["contender"] == name and "values" in row]
        if not found:
            lines.append([name, *["failed"] * 6])
            continue
        counts = [number(sum(values[key] for values in found)) for key in ("interrupted", "missing", "twice")]
        back = [values["recovered"] for values in found if values["recovered"] is not None]
        patience = next(row["patience"] for row in rows if row["contender"] == name)
        told = [number(statistics.median(back)) if back else "-", number(patience)]
        whole = [values["last"] for values in found if not values["missing"]]
        lines.append([name, *counts, number(statistics.median(whole)) if whole else "-", *told])
    head = ["", "interrupted", "not run", "ran to the end twice", "all ended after, s", "run again after, s"]
    head += ["waited for, s"]
    return markdown(head, lines)


def main() -> None:
    arguments = _arguments()
    if arguments.child:
        _child(arguments)
        return
    contenders = [contender for contender in chosen(arguments.contender) if "crash" in contender.offers]
    if not contenders:
        raise SystemExit(f"contenders are: {', '.join(one.name for one in known() if 'crash' in one.offers)}")
    rows: list[dict[str, Any]] = []
    with (
        Path(arguments.out or os.devnull).open("a") as out,
        concurrent.futures.ThreadPoolExecutor(arguments.parallel) as pool,
    ):
        runs = [pool.submit(_run, one, arguments, run) for run in range(arguments.runs) for one in contenders]
        for done in concurrent.futures.as_completed(runs):
            rows.append(done.result())
            out.write(json.dumps(rows[-1]) + "\n")
            out.flush()
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    order = [contender.name for contender in contenders]
    print(machine())
    print(table(sorted(rows, key=lambda row: order.index(row["contender"]))))
    if any("error" in row for row in rows):
        raise SystemExit("some runs failed")


def _run(contender: Contender, arguments: argparse.Namespace, run: int) -> dict[str, Any]:
    about = {"run": run, "contender": contender.name, "patience": contender.patience}
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as name,
        opened(contender.store, Path(name), durable=arguments.durable) as url,
    ):
        short = {"PEER_CRASH": "1", "QUEUE_VISIBILITY_TIMEOUT_SECONDS": CRASH_LEASE}
        command = [sys.executable, "-m", "benchmarks.crash", "--child", contender.name, "--directory", name]
        command += ["--jobs", str(arguments.jobs), "--concurrency", str(min(arguments.concurrency, contender.most))]
        environment = {**clean_environment(Path(name)), **contender.environment(url), **short}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {**about, "error": done.stderr[-3000:]}
    return {**about, "values": json.loads(done.stdout)}


def _child(arguments: argparse.Namespace) -> None:
    [contender] = [contender for contender in known() if contender.name == arguments.child]
    setting = Setting(contender, jobs=arguments.jobs, concurrency=arguments.concurrency, directory=arguments.directory)
    with contextlib.closing(contender):
        contender.prepare()
        print(json.dumps(crash(setting, contender.patience)))


def _wait(fact: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not fact() and time.monotonic() < deadline:
        time.sleep(0.02)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--contender", help="contenders by the names in the table, or by how they begin, and commas")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--concurrency", type=int, default=4, help="of the worker (default 4)")
    parser.add_argument("--parallel", type=int, default=3, help="libraries at a time (default 3)")
    parser.add_argument("--durable", action="store_true", help="Redis writes an append-only file")
    parser.add_argument("--out", help="a file to append the runs to, as JSON lines")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""What is measured. Each function is one run, in a process and on a store of its own, and returns values by name."""

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.contender import Job
from benchmarks.setting import Setting

Values = Mapping[str, float]
WARM = 20
PACED_SECONDS = 3.0


def push_many(run: Setting) -> Values:
    return {"jobs/s": run.jobs / run.contender.push_many(run.jobs)}


def push_awaited(run: Setting) -> Values:
    return {"jobs/s": run.jobs / run.contender.push_awaited(run.jobs)}


def push_gathered(run: Setting) -> Values:
    return {"jobs/s": run.jobs / run.contender.push_gathered(run.jobs)}


def push_sync(run: Setting) -> Values:
    return {"jobs/s": run.jobs / run.contender.push_blocking(run.jobs)}


def drain(run: Setting, *, job: Job = "noop", workers: int = 1) -> Values:
    """How fast workers empty a filled queue: from the first job, to the last or to the end of the run's seconds."""
    jobs = min(run.jobs, run.contender.fill)
    if job == "noop":
        run.contender.push_many(jobs)
    else:
        run.contender.push_many(jobs, job)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(run.worker()) for _ in range(workers)]
        run.wait_for(jobs, *processes, within=run.seconds)
        rows = run.records.rows()[:jobs]
    return {"jobs/s": (len(rows) - 1) / (rows[-1][1] - rows[0][1])}


def drain_threads(run: Setting) -> Values:
    return drain(run, job="threaded")


def drain_two(run: Setting) -> Values:
    return drain(run, workers=2)


def latency(run: Setting, interval: float = 0.01) -> Values:
    """From before the push to the handler's start, one job at a time to a worker that is otherwise idle."""
    with run.worker() as process:
        run.contender.push_timed()
        run.wait_for(1, process)
        time.sleep(1.0)
        begin = time.monotonic()
        for step in range(WARM + run.jobs):
            time.sleep(max(0.0, begin + step * interval - time.monotonic()))
            run.contender.push_timed()
        run.wait_for(1 + WARM + run.jobs, process)
    return _percentiles(sorted(run.records.rows())[1 + WARM :])


def latency_at_half(run: Setting) -> Values:
    """The same for a worker that has half of the work it can do: half of the rate at which it empties a queue."""
    jobs = min(run.jobs, run.contender.fill)
    run.contender.push_many(jobs)
    with run.worker() as process:
        run.wait_for(jobs, process)
        rows = run.records.rows()
        rate = (len(rows) - 1) / (rows[-1][1] - rows[0][1]) / 2
        paced = max(1, int(rate * min(PACED_SECONDS, run.seconds)))
        seconds = run.contender.push_paced(paced, rate)
        run.wait_for(jobs + paced, process)
    return {**_percentiles(run.records.rows()[jobs:]), "pushed/s": paced / seconds}


def idle(run: Setting) -> Values:
    """The share of one core that a worker uses while there is nothing to do."""
    with run.worker() as process:
        run.contender.push_timed()
        run.wait_for(1, process)
        time.sleep(1.0)
        before, begin = _cpu(process.pid), time.monotonic()
        time.sleep(run.idle)
        return {"% CPU": 100 * (_cpu(process.pid) - before) / (time.monotonic() - begin)}


def _percentiles(rows: Sequence[tuple[float, float]]) -> Values:
    delays = sorted((ran - sent) * 1000 for sent, ran in rows)
    return {"p50 ms": statistics.median(delays), "p99 ms": delays[min(len(delays) - 1, int(len(delays) * 0.99))]}


def _cpu(pid: int) -> float:
    """Return the seconds of a process and of those that it started: some libraries work in children."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return 0.0
    # Fields 14 and 15 of proc(5), counted behind the program's name, which may hold spaces.
    fields = stat.rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_cpu(int(child)) for child in children)


class Measure(NamedTuple):
    """One measure: how it runs, how many jobs it takes on each kind of store, and whether a worker's slots matter."""

    run: Callable[[Setting], Values]
    jobs: Mapping[str, int]
    slots: bool = False
    peers: int = 0
    """How many jobs it takes with another library; 0: as many as on its store."""


_FILLED = {"redis": 40_000, "sqlite": 20_000, "postgresql": 20_000, "mariadb": 10_000, "memory": 40_000}
_SINGLE = {"redis": 4_000, "sqlite": 2_000, "postgresql": 2_000, "mariadb": 2_000}
_TIMED = {"redis": 400, "sqlite": 400, "postgresql": 400, "mariadb": 200}

MEASURES: Mapping[str, Measure] = {
    "push_many": Measure(
        push_many, {"redis": 40_000, "sqlite": 40_000, "postgresql": 20_000, "mariadb": 20_000}, peers=8_000
    ),
    "push awaited": Measure(push_awaited, _SINGLE, peers=1_500),
    "push at once": Measure(push_gathered, {**_SINGLE, "redis": 10_000}, peers=1_500),
    "push_sync": Measure(push_sync, {**_SINGLE, "redis": 10_000}, peers=1_500),
    "drain": Measure(drain, _FILLED, slots=True),
    "drain, threads": Measure(drain_threads, _FILLED, slots=True),
    "drain, 2 workers": Measure(drain_two, _FILLED, slots=True),
    "latency": Measure(latency, _TIMED, peers=200),
    "latency at half": Measure(latency_at_half, _FILLED),
    "idle": Measure(idle, {"redis": 1, "sqlite": 1, "postgresql": 1, "mariadb": 1}),
}

"""What is measured. Each function is one run, in a process and on a store of its own, and returns values by name."""

import contextlib
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.contender import Contender
from benchmarks.record import PATH_KEY, Records

Values = Mapping[str, float]
PATIENCE = 120.0
WARM = 20


class Setting:
    """One run: who, how much, and where its files are."""

    def __init__(self, contender: Contender, *, jobs: int, concurrency: int, idle: float, directory: Path) -> None:
        self.contender = contender
        self.jobs = jobs
        self.concurrency = concurrency
        self.idle = idle
        self.records = Records(directory / "records")
        self.log = directory / "worker.log"

    @contextlib.contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run one worker process for the length of the block."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                self.contender.worker(self.concurrency),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, PATH_KEY: str(self.records.path)},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def wait_for(self, count: int, process: subprocess.Popen[bytes]) -> None:
        """Return when so many jobs have run."""
        deadline = time.monotonic() + PATIENCE
        while self.records.count < count:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = self.log.read_text(errors="replace")[-2000:]
                raise SystemExit(f"only {self.records.count} of {count} jobs ran; the worker's log ends:\n{tail}")
            time.sleep(0.005)


def push_many(run: Setting) -> Values:
    return {"jobs/s": run.jobs / run.contender.push_many(run.jobs)}


def push_awaited(run: Setting) -> Values:
    return {"jobs/s": run.jobs / run.contender.push_awaited(run.jobs)}


def push_sync(run: Setting) -> Values:
    return {"jobs/s": run.jobs / run.contender.push_blocking(run.jobs)}


def drain(run: Setting) -> Values:
    """How fast one worker process empties a filled queue, from the first job to the last."""
    run.contender.push_many(run.jobs)
    with run.worker() as process:
        run.wait_for(run.jobs, process)
        rows = run.records.rows()[: run.jobs]
    seconds = rows[-1][1] - rows[0][1]
    return {"jobs/s": (len(rows) - 1) / seconds}


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
    delays = sorted((ran - sent) * 1000 for sent, ran in sorted(run.records.rows())[1 + WARM :])
    return {"p50 ms": statistics.median(delays), "p99 ms": delays[min(len(delays) - 1, int(len(delays) * 0.99))]}


def idle(run: Setting) -> Values:
    """The share of one core that a worker uses while there is nothing to do."""
    with run.worker() as process:
        run.contender.push_timed()
        run.wait_for(1, process)
        time.sleep(1.0)
        before, begin = _cpu(process.pid), time.monotonic()
        time.sleep(run.idle)
        return {"% CPU": 100 * (_cpu(process.pid) - before) / (time.monotonic() - begin)}


def _cpu(pid: int) -> float:
    # Fields 14 and 15 of proc(5), counted behind the program's name, which may hold spaces.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


MEASURES: Mapping[str, tuple[Callable[[Setting], Values], Mapping[str, int]]] = {
    "push_many": (push_many, {"redis": 40_000, "sqlite": 40_000, "postgresql": 20_000, "mariadb": 20_000}),
    "push awaited": (push_awaited, {"redis": 4_000, "sqlite": 2_000, "postgresql": 2_000, "mariadb": 2_000}),
    "push_sync": (push_sync, {"redis": 10_000, "sqlite": 2_000, "postgresql": 2_000, "mariadb": 2_000}),
    "drain": (drain, {"redis": 40_000, "sqlite": 20_000, "postgresql": 20_000, "mariadb": 10_000}),
    "latency": (latency, {"redis": 400, "sqlite": 400, "postgresql": 400, "mariadb": 200}),
    "idle": (idle, {"redis": 1, "sqlite": 1, "postgresql": 1, "mariadb": 1}),
}
"""Each measure, and how many jobs a run of it takes on each kind of store."""

"""One run: who, how much, where its files are, and its workers."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.contender import ROOT, Contender
from benchmarks.record import PATH_KEY, Records

PATIENCE: Final = 120.0


class Setting:
    """One run, in a process that has the contender's environment."""

    def __init__(
        self,
        contender: Contender,
        *,
        jobs: int,
        directory: Path,
        concurrency: int = 100,
        idle: float = 10.0,
        seconds: float = 3.0,
    ) -> None:
        """``seconds``: how long a drained queue is watched at most, after its first job."""
        self.contender = contender
        self.jobs = jobs
        self.concurrency = concurrency
        self.idle = idle
        self.seconds = seconds
        self.records = Records(directory / "records")
        self.log = directory / "worker.log"

    @contextlib.contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run one worker process for the length of the block, at whose end it is killed: its store goes as well."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                self.contender.worker(self.concurrency),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, PATH_KEY: str(self.records.path)},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill(process)

    def wait_for(self, count: int, *processes: subprocess.Popen[bytes], within: float = PATIENCE) -> None:
        """Return when so many jobs have run, or two at least and ``within`` seconds have gone since the first."""
        deadline, begun = time.monotonic() + PATIENCE, None
        while (ran := self.records.count) < count:
            now = time.monotonic()
            begun = now if begun is None and ran else begun
            if within < PATIENCE and begun is not None and ran > 1 and now > begun + within:
                return
            if any(process.poll() is not None for process in processes) or now > deadline:
                tail = self.log.read_text(errors="replace")[-2000:]
                raise SystemExit(f"only {ran} of {count} jobs ran; the worker's log ends:\n{tail}")
            time.sleep(0.005)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a worker and what it started, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

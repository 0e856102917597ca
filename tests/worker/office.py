"""A supervisor as its users run it, over a store that a test can look into."""

import asyncio
import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import cast

from tenure.operating import JobLister, JobSummary
from tenure.queue import FailedRecord, JobState
from tests.support import processes
from tests.support.processes import Child, eventually
from tests.worker.bench import Bench
from tests.worker.program import Journal
from tests.worker.supervised import build

ROOT = pathlib.Path(__file__).parents[2]


class Office(Bench):
    """A store, a journal, and a supervisor over it."""

    def __init__(self, url: str, namespace: str, journal: Journal) -> None:
        super().__init__(url, namespace, journal, build=build)

    @contextlib.contextmanager
    def supervisor(self, *options: str, started: int = 1) -> Iterator[Child]:
        command = [
            "-m",
            "tenure",
            "worker",
            "tests.worker.supervised:app",
            "-q",
            "default",
            "--sleep",
            "0.2",
            "--log-format",
            "text",
            *options,
        ]
        environment = {
            "TENURE_TEST_JOURNAL": str(self.journal.path),
            "TENURE_URL": self.url,
            "QUEUE_NAMESPACE": self.namespace,
        }
        with processes.python(*command, env=environment, cwd=ROOT) as child:
            eventually(lambda: started_by(child) >= started, 30, what=f"{started} workers in {child.output}")
            yield child

    def running(self) -> list[JobSummary]:
        async def listed() -> list[JobSummary]:
            app = build(self.url, self.namespace)
            try:
                return list((await cast("JobLister", app.queue()).jobs("default", JobState.RUNNING)).jobs)
            finally:
                await app.aclose()

        return asyncio.run(listed())

    def failed(self) -> dict[str, FailedRecord]:
        return {record.id: record for record in self.app.failed_sync("default")}


def started_by(supervisor: Child) -> int:
    return len(re.findall("worker started", supervisor.output))


def workers_of(supervisor: Child) -> list[int]:
    """The ids of the processes that it has started, in order."""
    return [int(pid) for pid in re.findall(r"worker process (\d+) started", supervisor.output)]


def said_by(pid: int, supervisor: Child, what: str) -> bool:
    return bool(re.search(rf"\[{pid}\] tenure\.worker: {what}", supervisor.output))


def ended_with(supervisor: Child, reason: str, *, code: int = 0, timeout: float = 20) -> None:
    assert supervisor.wait(timeout) == code, supervisor.output
    assert supervisor.output.strip().splitlines()[-1].startswith(f"tenure: stopped: {reason}")
    assert not any(processes.alive(pid) for pid in workers_of(supervisor))

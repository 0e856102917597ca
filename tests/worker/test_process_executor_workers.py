"""Worker processes and the processes of their jobs: cancelled from elsewhere, signalled, killed."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tenure import Tenure
from tenure.worker.processes.loading import load_of
from tenure.worker.processes.process import Process
from tests.support import processes
from tests.support.processes import Child, alive, eventually
from tests.support.servers import Server
from tests.worker import apart
from tests.worker.conftest import forget
from tests.worker.program import Journal


class Bench:
    """A store, a journal, and worker processes of the application whose jobs run apart."""

    def __init__(self, url: str, namespace: str, journal: Journal) -> None:
        self.app: Tenure = apart.build(url, namespace)
        self.journal = journal
        self._environment = {
            "TENURE_TEST_URL": url, "TENURE_TEST_NAMESPACE": namespace, "TENURE_TEST_JOURNAL": str(journal.path)
        }  # fmt: skip

    def push(self, job: str, *args: Any) -> str:
        return self.app.push_sync(self.app.call(job, args)).id

    @contextlib.contextmanager
    def worker(self, **options: Any) -> Iterator[Child]:
        command = ("-m", "tests.worker.apart", json.dumps({"sleep": 0.2, **options}))
        with processes.python(*command, env=self._environment) as child:
            child.wait_for_output("worker started", 30)
            yield child

    def started(self, number: int = 1) -> list[dict[str, Any]]:
        eventually(lambda: len(self.journal.lines("start")) >= number, 20, what=f"{number} started")
        return self.journal.lines("start")

    def counts(self, **expected: int) -> bool:
        counts = self.app.counts_sync("default")
        return all(getattr(counts, name) == number for name, number in expected.items())


@pytest.fixture(params=["sqlite", "valkey"])
def bench(request: pytest.FixtureRequest, namespace: str, tmp_path: pathlib.Path) -> Iterator[Bench]:
    if request.param == "sqlite":
        made = Bench(f"sqlite:///{tmp_path / 'jobs.db'}", namespace, Journal(tmp_path / "journal"))
        yield made
        made.app.close_sync()
        return
    server: Server = request.getfixturevalue("valkey")
    made = Bench(server.url, namespace, Journal(tmp_path / "journal"))
    yield made
    made.app.close_sync()
    asyncio.run(forget(server, namespace))


# OB-17: the request travels through the store, from this process to the worker's, and on to the job's own.
def test_a_cancel_from_another_process_reaches_every_kind_of_handler_within_two_seconds(bench: Bench) -> None:
    jobs = {"sleeps_async_here": ("a", 60), "looks_here": ("b",), "looks": ("c",), "sleeps": ("d", 60)}
    with bench.worker(lease=30.0) as child:
        identities = [bench.push(job, *args) for job, args in jobs.items()]
        bench.started(len(jobs))
        began = time.monotonic()
        for identity in identities:
            bench.app.cancel_sync("default", [identity])
        eventually(lambda: bench.counts(leased=0, ready=0), 5, what="all are cancelled")
        assert time.monotonic() - began < 2.5, "two seconds, and what this test itself takes to see it"
        assert {line["label"] for line in bench.journal.lines("saw it")} == {"b", "c"}
        assert "abandoned" not in child.output
        child.signal(signal.SIGTERM)
        assert child.wait() == 0
        assert child.output.count("was cancelled") == 4


def test_a_worker_that_is_killed_takes_the_processes_of_its_jobs_with_it(bench: Bench) -> None:
    bench.push("sleeps", "long", 60)
    bench.push("sleeps_async", "long", 60)
    with bench.worker(lease=1.0) as child:
        pids = [line["pid"] for line in bench.started(2)]
        assert all(alive(pid) for pid in pids)
        child.kill9()
        eventually(lambda: not any(alive(pid) for pid in pids), 2, what="its processes are gone")


def test_a_signal_to_all_processes_lets_jobs_finish(bench: Bench) -> None:
    bench.push("sleeps", "short", 1.0)
    with bench.worker() as child:
        [start] = bench.started()
        os.kill(start["pid"], signal.SIGTERM)  # as a service manager does, which signals the whole group
        child.signal(signal.SIGTERM)
        assert child.wait() == 0
        assert "exit reason: shutdown" in child.output
    assert len(bench.journal.lines("end")) == 1
    assert bench.counts(ready=0, leased=0, failed=0)


async def test_a_process_whose_worker_cannot_be_heard_ends_at_once_with_what_it_started(
    namespace: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above where the system does not tell of a parent's end: the end of the talk is enough."""
    journal = Journal(tmp_path / "journal")
    monkeypatch.setenv("TENURE_TEST_JOURNAL", str(journal.path))
    app = apart.build("memory://", namespace)
    monkeypatch.setattr(apart, "app", app)
    ended = asyncio.Event()
    process = Process(lambda _: ended.set())
    await process.ready(load_of(app, ()))
    await app.push(app.call("starts_another", ["x"]))
    [lease] = (await app.queue().claim(["default"], limit=1, lease=60, wait=0)).leases
    await process.begin(lease, "starts_another", 1, trace={}, told=lambda _: None)
    await asyncio.to_thread(eventually, lambda: journal.lines("start"))
    process._link.shutdown(socket.SHUT_RDWR)
    async with asyncio.timeout(5):
        await ended.wait()
    [start] = journal.lines("start")
    assert not alive(start["pid"])
    await asyncio.to_thread(eventually, lambda: not alive(start["label"]), what="the grandchild is gone")
    await app.aclose()

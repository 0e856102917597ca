"""`tenure worker --workers N --http`: one port for all children, whatever becomes of each."""

import asyncio
import re
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from tenure.drivers.memory import MemoryQueue
from tenure.ext.prometheus.crew import Sums
from tenure.ext.prometheus.families import decoded, encoded
from tenure.web import probes as paths
from tenure.web.probes import crew_probes
from tenure.web.server import Address, Answer, Listener
from tenure.worker.supervisor import Crew, Launch, Telling, Told, telling
from tenure.worker.supervisor.asking import LENGTH, Asking
from tenure.worker.supervisor.releasing import Releases
from tenure.worker.supervisor.reports import SupervisorReports
from tests.cli.conftest import Program
from tests.support import processes
from tests.support.processes import eventually
from tests.telemetry.asking import Samples, answering, ask, samples, value
from tests.telemetry.test_probes import BLOCKING
from tests.worker.support import until

PUSHED = 3


def total(of: Samples, metric: str, **labels: str) -> float:
    """The sum of what has these labels, of all workers."""
    return sum(number for (name, own), number in of.items() if name == metric and labels.items() <= dict(own).items())


def seats(of: Samples, metric: str) -> set[str]:
    return {dict(labels)["worker"] for name, labels in of if name == metric}


class Scraped:
    """A supervisor that is scraped, and whose counters must not fall."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._before: Samples = {}

    def __call__(self) -> Samples:
        status, text, _ = ask(self.port, "/metrics")
        assert status == 200
        now = samples(text)
        counters = {key: number for key, number in self._before.items() if key[0].endswith(("_total", "_count"))}
        assert {key for key, number in counters.items() if now.get(key, 0) < number} == set()
        self._before = now
        return now

    def until(self, metric: str, number: float, **labels: str) -> Samples:
        """Return the first scrape in which this is the sum."""
        found: Samples = {}

        def probe() -> bool:
            nonlocal found
            found = self()
            return total(found, metric, **labels) == number

        eventually(probe, 20, what=f"{metric} is {number}", every=0.05)
        return found


def is_ready(port: int, within: float) -> bool:
    try:
        return ask(port, "/readyz", timeout=within)[0] == 200
    except TimeoutError:
        return False


def child_in(supervisor: processes.Child) -> int:
    """The first child that was started."""
    return int(re.findall(r"worker process (\d+) started", supervisor.output)[0])


def test_one_port_answers_for_all_whatever_becomes_of_each(tenure: Program) -> None:
    tenure.write("blocking.py", BLOCKING + "\n\n@app.job(name='quick')\ndef quick() -> None: ...\n")

    def push(job: str, arguments: str = "[]") -> None:
        assert tenure("push", job, arguments, "--app", "blocking:app").returncode == 0

    with answering(tenure, "--workers", "2", "--sleep", "0.1", target="blocking:app") as (supervisor, port):
        assert ask(port, "/livez")[:2] == (200, "alive\n")
        scraped = Scraped(port)
        scraped.until("tenure_ready", 2)
        assert ask(port, "/readyz")[:2] == (200, "ready\n")
        for _ in range(PUSHED):
            push("quick")
        found = scraped.until("tenure_jobs_total", PUSHED, name="quick", outcome="succeeded")
        assert seats(found, "tenure_concurrency") == {"0", "1"}
        assert value(found, "tenure_worker_processes") == 2
        assert total(found, "tenure_run_seconds_bucket", le="+Inf", name="quick") == PUSHED

        push("blocks", "[2]")
        supervisor.wait_for_output("blocking", 10)
        found = scraped.until("tenure_jobs_in_flight", 1)
        assert "let go" not in supervisor.output, "who blocks its loop answers all the same"
        silent = value(found, "tenure_worker_processes_silent_total")

        pid = child_in(supervisor)
        processes.pause(pid)
        begun = time.monotonic()
        found = scraped()
        assert time.monotonic() - begun < 3
        assert value(found, "tenure_worker_processes_silent_total") > silent
        assert value(found, "tenure_worker_processes") == 2
        assert total(found, "tenure_jobs_total", name="quick") == PUSHED
        found = scraped.until("tenure_concurrency", 50)
        assert len(seats(found, "tenure_concurrency")) == 1, "who does not answer has no gauges"
        assert ask(port, "/livez")[0] == 200
        eventually(lambda: is_ready(port, 0.9), what="the other one is ready, and nobody waits for this one")
        processes.kill9(pid)
        found = scraped.until("tenure_ready", 2)
        assert value(found, "tenure_worker_processes_ended_total", how="SIGKILL") == 1
        assert total(found, "tenure_worker_processes_started_total") == 3

        for _ in range(PUSHED):
            push("quick")
        eventually(lambda: tenure.app.counts_sync("default").ready == 0, 20, what="all have run")
        assert tenure("restart").returncode == 0
        # What they did since the last scrape is not lost with them.
        found = scraped.until("tenure_worker_processes_ended_total", 2, how="restart")
        assert total(found, "tenure_jobs_total", name="quick") == 2 * PUSHED
        assert seats(found, "tenure_jobs_total") <= {"0", "1"}
        assert supervisor.stop() == 0


def test_without_the_library_a_supervisor_says_what_is_missing(tenure: Program) -> None:
    tenure.write("prometheus_client.py", "raise ImportError")
    tenure.env["PYTHONPATH"] = f"{tenure.directory}:{tenure.env['PYTHONPATH']}"
    tenure.env["TENURE_URL"] = "redis://127.0.0.1:1"
    with answering(tenure, "--workers", "1") as (supervisor, port):
        status, body, _ = ask(port, "/metrics")
        assert (status, "pip install 'tenure[prometheus]'" in body) == (501, True)
        supervisor.wait_for_output("worker started", 20)
        status, body, _ = ask(port, "/readyz")
        assert (status, body.partition(":")[0]) == (503, "no worker process is ready")
        assert supervisor.output.count("/metrics is not answered") == 1


def idle_crew() -> Crew:
    reports = SupervisorReports()
    return Crew(Launch(command=(), assignment=lambda _: b""), 1, Releases(MemoryQueue(), [], 1, reports), reports)


async def test_a_supervisor_whose_loop_stands_still_does_not_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "TURN_SECONDS", 0.2)
    listener = Listener(Address("127.0.0.1", 0))
    port = listener.address.port

    async def metrics() -> Answer:
        return Answer(HTTPStatus.OK, b"")

    with listener.serving(crew_probes(idle_crew(), metrics)):
        assert (await asyncio.to_thread(ask, port, "/livez"))[0] == 200
        status, body, _ = ask(port, "/livez")  # by the loop itself, which does not turn meanwhile
        assert (status, body) == (503, "the supervisor's event loop has not turned for 0.2 s\n")


class Line:
    """Both ends of the questions, with a child that tells what it is given."""

    def __init__(self, theirs: socket.socket, asked: Asking) -> None:
        self.theirs = theirs
        self.asking = asked
        self.told = Told(ready=True)
        self.holds = threading.Event()
        self.holds.set()

    def fares(self) -> Told:
        self.holds.wait(10)
        return self.told


@asynccontextmanager
async def line() -> AsyncIterator[Line]:
    ours, theirs = socket.socketpair()
    made = Line(theirs, await Asking.over(ours))
    listening = asyncio.create_task(made.asking.listen())
    try:
        yield made
    finally:
        made.asking.close()
        theirs.close()
        await listening


async def test_who_does_not_answer_is_asked_once_and_its_late_answer_counts() -> None:
    async with line() as one:
        with Telling(one.theirs, one.fares):
            one.holds.clear()
            assert [await one.asking.ask(0.05), await one.asking.ask(0.05)] == [None, None]
            one.holds.set()
            assert await one.asking.ask(5) == Told(ready=True)
            one.told = Told(ready=False, metrics=b"x" * 1_000_000)
            assert list(await asyncio.gather(one.asking.ask(5), one.asking.ask(5))) == [one.told, one.told]
            one.told = Told(ready=False, metrics=b"the last")
        # Unasked, when it ends.
        await until(lambda: one.asking.last == one.told)


async def test_a_line_that_is_broken_is_closed_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    for nonsense in (b"\xff" * 8, len(b"no").to_bytes(LENGTH, "big") + b"no"):
        async with line() as one:
            one.theirs.sendall(nonsense)
            one.theirs.settimeout(10)
            assert await asyncio.to_thread(one.theirs.recv, 1) == b"", "it hangs up"
            assert await one.asking.ask(5) is None
    async with line() as one:

        def refuses() -> Told:
            raise LookupError("hunter2-canary")

        with Telling(one.theirs, refuses):
            assert await one.asking.ask(0.1) is None
    assert "was not told: LookupError" in caplog.text
    assert "canary" not in caplog.text


async def test_a_supervisor_that_does_not_listen_holds_no_child_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "SECONDS", 1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        begun = time.monotonic()
        with Telling(theirs, lambda: Told(ready=True, metrics=b"x" * 10_000_000)):
            pass
        assert 0.9 < time.monotonic() - begun < 5


def test_of_two_in_one_seat_numbers_are_added_and_the_later_time_counts() -> None:
    sums = Sums()
    for number in (3.0, 5.0):
        registry = CollectorRegistry()
        for name in ("jobs_in_flight", "process_start_time_seconds"):
            Gauge(name, "It says.", registry=registry).set(number)
        sums.add(decoded(encoded(registry.collect())), {"worker": "0"}, gauges=True)
    registry = CollectorRegistry()
    registry.register(sums)
    found = samples(generate_latest(registry).decode())
    assert value(found, "jobs_in_flight", worker="0") == 8
    assert value(found, "process_start_time_seconds", worker="0") == 5

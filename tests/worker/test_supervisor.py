"""The supervisor from inside: its back-off, what it gives back, and children that do not do as they should.

The children are small programs that speak the line; the supervisor runs in the test's own loop.
"""

import asyncio
import logging
import pathlib
import sys
import textwrap
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tenure import Tenure
from tenure.drivers.memory import MemoryQueue
from tenure.errors import ConnectionFailed, InvalidOption
from tenure.operating import HeldPage
from tenure.queue import Capabilities
from tenure.testing.contract.steps import claim, eventually, job, push, where
from tenure.worker import Ended, ExitReason, WorkerOptions
from tenure.worker.supervisor import Child, ChildState, Crew, Launch, Supervisor, crew, run
from tenure.worker.supervisor.backoff import HEALTHY, Backoff
from tenure.worker.supervisor.releasing import Releases
from tenure.worker.supervisor.reports import SupervisorReports
from tests.worker.support import until

SPEAKS = """
import os, pathlib, socket, sys, time
line = socket.socket(fileno=int(sys.argv[-1]))
told = line.recv(65536).decode().strip()

def say(text):
    line.sendall(text.encode() + b"\\n")

def started():
    say('{"type":"started","queues":["q"]}')
"""
WORKS = "started(); line.recv(1)"
DIES = "started(); os._exit(7)"


def program(text: str) -> Launch:
    """A child that is told its holder, and does that."""
    command = (sys.executable, "-S", "-c", SPEAKS + textwrap.dedent(text))
    return Launch(command=command, assignment=lambda holder: f"{holder}\n".encode())


class Shaky:
    """A queue whose calls to find what is held go wrong as told."""

    def __init__(self) -> None:
        self.inner = MemoryQueue()
        self.looks = 0
        self.failing = 0
        self.late: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def held_by(self, queue: str, holder: str, **options: Any) -> HeldPage:
        self.looks += 1
        if self.failing:
            self.failing -= 1
            raise ConnectionFailed("away")
        page = await self.inner.held_by(queue, holder, **options)
        if self.late == holder:
            # The dead process' last command, which was still on its way.
            self.late = None
            await self.inner.claim([queue], limit=1, lease=300, wait=0, holder=holder)
        return page


class Forgetful:
    """A queue that cannot tell who holds what."""

    capabilities = Capabilities(driver="forgetful", shared=True)


def crew_of(launch: Launch, size: int = 1, *, queue: Any = None, lease: float = 300.0) -> Crew:
    reports = SupervisorReports()
    releases = Releases(MemoryQueue() if queue is None else queue, ["q"], lease, reports)
    return Crew(launch, size, releases, reports)


@asynccontextmanager
async def at_work(made: Crew) -> AsyncIterator[Crew]:
    """Run a crew, and end it whatever happened."""
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        made.close()
        made.kill()
        await task


async def one_of(made: Crew, *, but: Sequence[Child] = ()) -> Child:
    """The first child that works and is none of these."""

    def found() -> Child | None:
        return next((one for one in made.children if one.state is ChildState.WORKING and one not in but), None)

    child: Child = await until(found, 15, what="a child at work")
    return child


def test_the_first_death_is_followed_at_once_and_the_next_ones_later_and_later() -> None:
    backoff = Backoff(uniform=lambda _, most: most)
    assert [backoff.after(1.0) for _ in range(9)] == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]
    assert [backoff.after(HEALTHY), backoff.after(1.0)] == [0, 0.5]
    jittered = Backoff(uniform=lambda least, _: least)
    assert [jittered.after(1.0) for _ in range(3)] == [0, 0.25, 0.5]


async def test_a_store_that_is_away_is_asked_until_it_has_taken_the_leases_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shaky = Shaky()
    await push(shaky.inner, job("x", queue="q"))
    async with at_work(crew_of(program(WORKS), queue=shaky)) as made:
        child = await one_of(made)
        await claim(shaky.inner, queues=["q"], holder=child.holder)
        shaky.failing = 3
        child.kill()
        await until(lambda: "gave back 1 jobs" in caplog.text, what="the lease goes back")
        assert await where(shaky.inner, "q") == {"ready": 1}
        assert "SIGKILL" in caplog.text
        await until(lambda: "works again after" in caplog.text, what="one line for the outage's end")


async def test_what_a_dead_process_still_had_under_way_is_given_back_as_well() -> None:
    shaky = Shaky()
    await push(shaky.inner, job("x", queue="q"))
    async with at_work(crew_of(program(WORKS), queue=shaky)) as made:
        child = await one_of(made)
        shaky.late = child.holder
        child.kill()

        async def given_back() -> bool:
            return shaky.looks >= 2 and await where(shaky.inner, "q") == {"ready": 1}

        await eventually(given_back, what="a second look finds it")


async def test_a_store_that_stays_away_is_left_when_all_leases_have_lapsed(caplog: pytest.LogCaptureFixture) -> None:
    shaky = Shaky()
    shaky.failing = 10**6
    async with at_work(crew_of(program(DIES), queue=shaky, lease=0.5)):
        await until(lambda: "could not be given back (ConnectionFailed)" in caplog.text, what="it gives up")


async def test_a_driver_that_cannot_tell_who_holds_what_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async with at_work(crew_of(program(DIES), queue=Forgetful())):
        await until(lambda: "driver forgetful cannot tell" in caplog.text)


async def test_a_crew_whose_first_child_cannot_begin_ends() -> None:
    made = crew_of(program("sys.exit(3)"), 2)
    await asyncio.wait_for(made.run(), 20)
    assert made.failed


async def test_a_tired_child_goes_on_when_its_replacement_cannot_begin(
    caplog: pytest.LogCaptureFixture, tmp_path: pathlib.Path
) -> None:
    text = f"""
        once = pathlib.Path({str(tmp_path / "once")!r})
        if once.exists():
            once.with_name("again").touch()
            sys.exit(3)
        once.touch()
        started()
        say('{{"type":"relief","reason":"memory"}}')
        line.recv(1)
    """
    async with at_work(crew_of(program(text))) as made:
        child = await one_of(made)
        await until(lambda: caplog.text.count("died after") >= 2, 15, what="two that cannot begin")
        assert child.state is ChildState.WORKING
        assert child in made.children
        assert child.relief is ExitReason.MEMORY


async def test_a_child_that_dies_while_its_replacement_begins_leaves_it_the_seat() -> None:
    text = """
        started()
        say('{"type":"relief","reason":"max_jobs"}')
        os._exit(9)
    """
    async with at_work(crew_of(program(text))) as made:
        first = await until(lambda: made.children and made.children[0], 15)
        await until(lambda: len(made.children) == 1 and made.children[0] is not first, 15, what="one successor")


async def test_a_process_that_cannot_be_started_is_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "RETRY", 0.05)
    nowhere = Launch(command=("/nonexistent/program",), assignment=lambda _: b"\n")
    async with at_work(crew_of(nowhere)):
        await until(lambda: caplog.text.count("cannot be started") >= 2, what="two tries")


async def test_a_child_that_does_not_end_is_killed_after_its_time_and_what_it_held_goes_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(run, "MARGIN", 0.3)
    app = Tenure(f"sqlite:///{tmp_path / 'jobs.db'}")
    deaf = program("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); started(); time.sleep(60)")
    supervisor = Supervisor(app, deaf, WorkerOptions(queues=("q",), drain_timeout=0.1), 1)
    task = asyncio.create_task(supervisor.run())
    child = await one_of(supervisor.crew)
    await push(app.queue(), job("x", queue="q"))
    await claim(app.queue(), queues=["q"], holder=child.holder)
    supervisor.stop()
    assert await asyncio.wait_for(task, 10) == Ended(ExitReason.SHUTDOWN, forced=True)
    assert "did not end in time and is killed" in caplog.text
    assert await where(app.queue(), "q") == {"ready": 1}
    await app.aclose()


async def test_a_child_that_has_not_begun_yet_is_stopped_with_the_others(
    caplog: pytest.LogCaptureFixture, tmp_path: pathlib.Path
) -> None:
    caplog.set_level(logging.INFO)
    app = Tenure(f"sqlite:///{tmp_path / 'jobs.db'}")
    supervisor = Supervisor(app, program("time.sleep(60)"), WorkerOptions(), 2)
    task = asyncio.create_task(supervisor.run())
    await until(lambda: len(supervisor.crew.children) == 2)
    supervisor.stop()
    assert await asyncio.wait_for(task, 10) == Ended(ExitReason.SHUTDOWN)
    assert caplog.text.count("ended before it claimed: SIGTERM") == 2
    assert "died" not in caplog.text
    await app.aclose()


async def test_quiet_children_that_die_are_not_replaced(tmp_path: pathlib.Path) -> None:
    app = Tenure(f"sqlite:///{tmp_path / 'jobs.db'}")
    supervisor = Supervisor(app, program(WORKS), WorkerOptions(), 1)
    task = asyncio.create_task(supervisor.run())
    child = await one_of(supervisor.crew)
    supervisor.quiet()
    child.kill()
    assert await asyncio.wait_for(task, 10) == Ended(ExitReason.SHUTDOWN)
    await app.aclose()


async def test_a_store_of_one_process_is_refused() -> None:
    with pytest.raises(InvalidOption, match="cannot share the store 'memory'"):
        Supervisor(Tenure("memory://"), program(WORKS), WorkerOptions(), 2)

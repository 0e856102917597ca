"""The demo's parts where they go wrong."""

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tenure.cli.demo.children import Children
from tenure.cli.demo.journal import Entry, Journal
from tenure.cli.demo.play import Play
from tenure.cli.demo.screen import Plain
from tenure.cli.demo.stage import Stage, built
from tenure.cli.errors import CommandFailed
from tests.cli.conftest import Program
from tests.support import processes


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with built("sqlite") as made:
        yield made


def test_a_child_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.cli.demo.children.ENDING", 0.2)
    with Children() as children:
        directory, log = children.directory, children.directory / "log"
        stubborn = children.start(["/bin/sh", "-c", "trap '' TERM; echo deaf; sleep 60"], log=log, env=os.environ)
        processes.eventually(lambda: "deaf" in log.read_text())
    assert stubborn.returncode == -signal.SIGKILL
    assert not directory.exists()


def test_a_childs_child_goes_too() -> None:
    with Children() as children:
        log = children.directory / "log"
        children.start(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], log=log, env=os.environ)
        processes.eventually(lambda: log.read_text().strip())
        grandchild = int(log.read_text())
    processes.eventually(lambda: not processes.alive(grandchild))


def test_a_worker_that_ends_by_itself_ends_the_demo_with_its_log(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no way')"]
    start = stage.start_worker

    def broken() -> subprocess.Popen[bytes]:
        monkeypatch.setattr(sys, "executable", "/bin/false")
        return start()

    monkeypatch.setattr(stage, "start_worker", broken)
    assert command
    with pytest.raises(CommandFailed, match="a worker ended by itself, with 1"):
        Play(stage, Plain(), [pathlib.Path(__file__)]).run()


def test_a_demo_that_does_not_come_to_its_end_gives_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.cli.demo.play.LIMIT", 0.0)
    with pytest.raises(CommandFailed, match="not done in 0 s"):
        Play(stage, Plain(), [pathlib.Path(__file__)]).run()


def test_a_worker_that_is_between_two_jobs_is_not_killed_then(stage: Stage) -> None:
    play = Play(stage, Plain(), [])
    with processes.python("-c", "import time; time.sleep(60)") as idle:
        play.workers.append(idle.popen)
        asyncio.run(play.kill_one())
        assert processes.alive(idle.pid)
        assert processes.state(idle.pid) != "T"
        Journal(stage.journal).write(Entry(kind="started", id="job", pid=idle.pid))
        asyncio.run(play.kill_one())
        assert not processes.alive(idle.pid)
        assert len(play.workers) == 1
        play.workers[0].kill()


def test_a_python_without_its_library_is_said(tenure: Program) -> None:
    code = """
import sys, pathlib
from tenure.cli.demo import files
files.library = lambda: pathlib.Path("/does/not/exist")
from tenure.cli.main import main
sys.argv = ["tenure", "demo"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tenure.directory, env=tenure.env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (1, 1)
    assert "no source files" in done.stderr

"""The demo's parts where they go wrong."""

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tenure.cli.demo.children import Children
from tenure.cli.demo.crew import Crew, Killed
from tenure.cli.demo.journal import Entry, Journal, Progress
from tenure.cli.demo.play import Play
from tenure.cli.demo.screen import Plain
from tenure.cli.demo.stage import Stage, built
from tenure.cli.errors import CommandFailed
from tests.cli.conftest import Program
from tests.support import processes


@pytest.fixture
def stage() -> Iterator[Stage]:
    with built("sqlite") as made:
        yield made


def test_a_child_that_ignores_sigterm_is_killed() -> None:
    with Children(ending=0.2) as children:
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
    stage.log.write_text("its last words")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CommandFailed, match=r"a worker ended by itself, with 1; .* its last words"):
        Play(stage, Plain(), [pathlib.Path(__file__)]).run()


def test_a_demo_that_does_not_come_to_its_end_gives_up(stage: Stage) -> None:
    with pytest.raises(CommandFailed, match="not done in 0 s"):
        Play(stage, Plain(), [pathlib.Path(__file__)], limit=0).run()


def test_jobs_that_are_over_too_soon_are_said_to_be_too_few(stage: Stage) -> None:
    # With nothing to do, no worker is ever in the middle of a job.
    with pytest.raises(CommandFailed, match="take more files"):
        Play(stage, Plain(), []).run()


def test_a_worker_is_killed_in_the_middle_of_a_job_and_not_between_two(stage: Stage) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[-1]

    crew, progress = Crew(start, 1), Progress(stage.journal)
    assert crew.kill_one(progress) is None
    [idle] = started
    processes.eventually(lambda: processes.state(idle.pid) != "T")
    assert crew.ended is None
    Journal(stage.journal).write(Entry(kind="started", id="job", pid=idle.pid))
    assert crew.kill_one(progress) == Killed(idle.pid, 1)
    assert idle.returncode == -signal.SIGKILL
    successor = started[1]
    assert crew.ended is None
    successor.kill()
    processes.eventually(lambda: not processes.alive(successor.pid))
    assert crew.kill_one(progress) is None
    assert crew.ended == -signal.SIGKILL


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

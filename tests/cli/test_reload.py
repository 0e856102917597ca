"""``--reload``: the worker follows its sources, through code that cannot be imported, too."""

import pathlib
import signal
import sys

import pytest

from tenure.cli.reload import sources
from tenure.cli.target import Target
from tenure.portal import loop_is_running
from tests.cli.conftest import Program
from tests.support.ports import free_port
from tests.support.processes import alive, eventually
from tests.telemetry.asking import ask
from tests.worker.office import workers_of

APP = """
from tenure import Tenure

app = Tenure()


@app.job(name="greet")
def greet() -> None:
    with open("ran", "a") as file:
        file.write("{}\\n")
"""
BROKEN = "def first():\n    return 1 / 0\n\n\nfirst()\n"


def runs(tenure: Program, text: str) -> None:
    """Wait until a job that is pushed now is run by the code that notes this."""
    assert tenure("push", "greet", "--app", "hello:app").returncode == 0
    eventually(lambda: text in tenure.ran, 20, what=f"{text} runs")


def test_the_worker_follows_its_sources(tenure: Program) -> None:
    tenure.write("hello.py", APP.format("one"))
    with tenure.begin("worker", "hello:app", "--sleep", "0.1", "--reload") as worker:
        runs(tenure, "one")
        # As long as the first, and perhaps within the same second.
        tenure.write("hello.py", APP.format("two"))
        worker.wait_for_output("hello.py changed: the worker starts anew", 20)
        runs(tenure, "two")
        tenure.write("hello.py", BROKEN)
        worker.wait_for_output("the worker ended with 3, and starts again when a file changes", 20)
        assert "ZeroDivisionError" in worker.output
        tenure.write("hello.py", APP.format("six"))
        runs(tenure, "six")
        assert worker.output.count("worker starts: ") == 3
        worker.signal(signal.SIGTERM)
        assert worker.wait(15) == 0
        assert worker.output.strip().splitlines()[-1] == "tenure: stopped: shutdown"


def test_several_processes_start_anew_and_answer_on_the_same_port(tenure: Program) -> None:
    tenure.write("hello.py", APP.format("one"))
    port = free_port()
    options = ["--workers", "2", "--http", str(port), "--sleep", "0.1", "--reload"]
    with tenure.begin("worker", "hello:app", *options) as worker:
        runs(tenure, "one")
        eventually(lambda: ask(port, "/readyz")[0] == 200, 20, what="it is ready")
        before = workers_of(worker)
        tenure.write("hello.py", APP.format("two"))
        worker.wait_for_output("hello.py changed: the worker starts anew", 20)
        runs(tenure, "two")
        eventually(lambda: ask(port, "/readyz")[0] == 200, 20, what="it is ready")
        assert not any(alive(pid) for pid in before)
        worker.signal(signal.SIGTERM)
        assert worker.wait(15) == 0
        assert not any(alive(pid) for pid in workers_of(worker))
        assert worker.output.count("answering on http://") == 2


def test_it_ends_when_its_worker_has_enough(tenure: Program) -> None:
    with tenure.begin("worker", "shop:app", "--reload", "--stop-when-empty", "--log-format", "json") as worker:
        assert worker.wait(20) == 0
        assert '"message": "stopped: empty"' in worker.output


def test_without_its_extra_it_says_what_to_install(tenure: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not loop_is_running()
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    done = tenure("worker", "shop:app", "--reload")
    assert done.returncode == 2
    assert done.stderr == "tenure: tenure[reload]: --reload needs it; install it with: pip install 'tenure[reload]'\n"


def test_the_application_is_watched_wherever_it_is_imported_from(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, away = tmp_path / "root", tmp_path / "away"
    for path in (root / "here.py", away / "there" / "__init__.py", away / "alone.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.syspath_prepend(str(away))

    def watched(module: str) -> list[pathlib.Path]:
        return sources(Target(module, "app", "APP", root))

    assert watched("here") == watched("nowhere") == watched("pytest") == [root]
    assert watched("there.tasks") == [root, away / "there"]
    assert watched("alone") == [root, away]

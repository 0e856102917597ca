"""The one background loop of a process: started at first use, safe after a fork, quiet at the end."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tenure import WrongContext
from tenure.portal import Portal, blocking, portal, refuse_loop, require_loop
from tests.support import servers

ROOT = Path(__file__).parents[2]


async def where() -> tuple[int, str]:
    return threading.get_ident(), threading.current_thread().name


def test_every_call_of_a_process_runs_on_one_loop_in_one_thread() -> None:
    places = {blocking("where", where) for _ in range(3)}
    with_threads: list[tuple[int, str]] = []
    threads = [threading.Thread(target=lambda: with_threads.append(blocking("where", where))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(places | set(with_threads)) == 1
    assert portal() is portal()


def test_what_the_coroutine_raises_reaches_the_caller() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        blocking("fail", fail)


def test_the_callers_context_is_seen_and_not_changed() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="default")

    async def look() -> str:
        seen = variable.get()
        variable.set("changed")
        return seen

    variable.set("mine")
    assert blocking("look", look) == "mine"
    assert variable.get() == "mine"


async def test_a_blocking_call_inside_a_loop_is_refused_before_anything_is_made() -> None:
    with pytest.raises(WrongContext, match="'await look\\(\\)'"):
        blocking("look", lambda: pytest.fail("made"))
    require_loop("push")
    with pytest.raises(WrongContext):
        refuse_loop("push")


def test_an_asynchronous_call_without_a_loop_is_refused() -> None:
    with pytest.raises(WrongContext, match=r"call push_sync\(\) in blocking code"):
        require_loop("push")
    refuse_loop("push")


class Resource:
    """Something that is open on the loop."""

    def __init__(self, error: Exception | None = None) -> None:
        self.closed_on: asyncio.AbstractEventLoop | None = None
        self.error = error

    async def aclose(self) -> None:
        self.closed_on = asyncio.get_running_loop()
        if self.error is not None:
            raise self.error


def test_closing_closes_what_is_open_and_ends_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    own = Portal()
    broken, whole, gone = Resource(OSError("secret")), Resource(), Resource()
    for resource in (broken, whole, gone):
        own.at_close(resource.aclose)
    del gone
    loop = own.run(running)
    begun = threading.Event()
    waiting = own.start(lambda: forever(begun))
    assert begun.wait(5)
    own.close()
    own.close()
    assert whole.closed_on is loop
    assert loop.is_closed()
    assert waiting.cancelled()
    assert "OSError" in caplog.text
    assert "secret" not in caplog.text
    assert own.run(running) is not loop
    own.close()


def test_closing_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.portal.EXIT_SECONDS", 0.05)
    own = Portal()
    release = threading.Event()

    class Stuck:
        async def aclose(self) -> None:
            await asyncio.to_thread(release.wait)

    stuck = Stuck()
    own.at_close(stuck.aclose)
    own.run(running)
    own.close()
    assert "did not close in 0.05 s" in caplog.text
    release.set()


async def running() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def forever(begun: threading.Event) -> None:
    begun.set()
    await asyncio.Event().wait()


# ------------------------------------------------------------------------------------------------------ whole processes


def script(text: str, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    return subprocess.run(
        [sys.executable, *options, "-c", text],
        env={**os.environ, **paths, **environ},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


FORKING = """
import os, sys, threading
from tests.unit import jobs
first = jobs.add.push_sync(1)
first.status_sync()
print("parent", first.status_sync().value, threading.active_count(), flush=True)
child = os.fork()
if child == 0:
    handle = jobs.add.push_sync(2)
    print("child", handle.status_sync().value, flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent", first.status_sync().value, flush=True)
"""

SPAWNING = """
import multiprocessing
from tests.unit import jobs

def child(answers):
    answers.put(jobs.add.push_sync(2).status_sync().value)

if __name__ == "__main__":
    jobs.add.push_sync(1).status_sync()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=child, args=(answers,))
    process.start()
    print(answers.get(timeout=10))
    process.join()
    print(process.exitcode)
"""


def test_a_forked_child_has_a_loop_of_its_own_and_the_parent_keeps_its() -> None:
    done = script(FORKING, "-X", "dev", "-W", "error::ResourceWarning")
    assert done.returncode == 0, done.stderr
    lines = [line.split()[:2] for line in done.stdout.splitlines()]
    assert lines == [["parent", "ready"], ["child", "ready"], ["parent", "ready"]]
    assert "Traceback" not in done.stderr
    assert "ResourceWarning" not in done.stderr


def test_a_child_of_multiprocessing_pushes_too() -> None:
    done = script(SPAWNING)
    assert (done.stdout.split(), done.returncode) == (["ready", "0"], 0), done.stderr


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
def test_a_program_that_closes_nothing_ends_without_a_warning(url: str, tmp_path: Path) -> None:
    text = """
import asyncio, os
from tests.unit import jobs
from tenure import Tenure
from tenure.config import Settings
app = Tenure(os.environ["URL"], namespace="tests", settings=Settings())
job = app.job(jobs.ordinary)
async def main():
    await job.push(1)
handle = job.push_sync(1)
handle.status_sync()
asyncio.run(main())
print(app.counts_sync("default").ready)
"""
    url = f"sqlite:///{tmp_path}/jobs.db" if url == "sqlite" else url
    done = script(text, "-X", "dev", "-W", "error::ResourceWarning", URL=url)
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


def test_a_program_on_redis_that_closes_nothing_ends_without_a_warning(valkey: servers.Server, namespace: str) -> None:
    text = """
import os
from tests.unit import jobs
from tenure import Tenure
from tenure.config import Settings
app = Tenure(os.environ["URL"], namespace=os.environ["NS"], settings=Settings())
job = app.job(jobs.ordinary)
print(job.push_sync(1).status_sync().value)
"""
    done = script(text, "-X", "dev", "-W", "error::ResourceWarning", URL=valkey.url, NS=namespace)
    assert (done.stdout, done.stderr, done.returncode) == ("ready\n", "", 0)


def test_the_end_of_a_forked_child_does_not_disturb_its_parents_connections(
    valkey: servers.Server, namespace: str
) -> None:
    text = """
import os, time
from tests.unit import jobs
from tenure import Tenure
from tenure.config import Settings
app = Tenure(os.environ["URL"], namespace=os.environ["NS"], settings=Settings())
job = app.job(jobs.ordinary)
handle = job.push_sync(1)
print(handle.status_sync().value, app.counts_sync("default").ready)
child = os.fork()
if child == 0:
    print(job.push_sync(1).status_sync().value, flush=True)
else:
    assert os.waitpid(child, 0)[1] == 0
    began = time.monotonic()
    handle.status_sync()
    print("at once" if time.monotonic() - began < 2 else "stalled")
"""
    # Python 3.12 and later warn of a fork beside any thread, ours included.
    done = script(text, "-W", "ignore::DeprecationWarning", URL=valkey.url, NS=namespace)
    assert (done.stdout.splitlines()[-1], done.stderr, done.returncode) == ("at once", "", 0)

"""An application whose jobs run in processes of their own. A child process imports this module, as any other would.

Run as `python -m tests.worker.apart [options as JSON]`, it is a worker of that application, on the store that the
environment names.
"""

import asyncio
import contextlib
import ctypes
import json
import logging
import multiprocessing
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from tenure import Discard, GiveUp, Injected, Retry, Snooze, Tenure, correlation_id, current
from tenure.worker import WorkerOptions, run_worker
from tests.worker.program import journal
from tests.worker.toxic import ERRORS

if os.environ.get("TENURE_TEST_UNLOADABLE"):
    raise RuntimeError("as the test wants it")


class Opened:
    """A service that tells when it is opened and closed."""

    def __init__(self) -> None:
        journal().write("opened", os.getpid())

    def close(self) -> None:
        journal().write("closed", os.getpid())


class Database:
    """A service that only the lifespan makes."""


def tells(label: str) -> None:
    attempt = current()
    journal().write("ran", [label, attempt.meta.get("who"), attempt.max_attempts, attempt.name, attempt.cancelled])


def knows() -> None:
    journal().write("knew", [correlation_id(), current().connection])


async def tells_async(label: str) -> None:
    await asyncio.sleep(0)
    journal().write("ran", [label, asyncio.get_running_loop().is_running()])


@dataclass(frozen=True)
class Told:
    day: date

    def handle(self, opened: Opened, database: Database) -> date:
        journal().write("ran", [type(opened).__name__, type(database).__name__])
        return self.day + timedelta(days=1)


async def asks(*, opened: Opened = Injected) -> int:
    journal().write("ran", type(opened).__name__)
    return os.getpid()


def runs_a_loop_of_its_own() -> str:
    return asyncio.run(asyncio.sleep(0, "as it likes"))


def returns(kind: str) -> Any:
    return {"nothing": None, "an object": object(), "far too much": "x" * 10_000_000, "a list": [1, "two"]}[kind]


def decides(kind: str) -> None:
    journal().write("ran", kind)
    if kind == "once":
        raise {1: Retry("later", after=0), 2: Snooze(0), 3: Discard()}[current().deliveries]
    raise GiveUp("hopeless")


def raises(kind: str) -> None:
    raise ERRORS[kind]()


async def raises_async(kind: str) -> None:
    raise ERRORS[kind]()


def sleeps(label: str, seconds: float) -> None:
    journal().write("start", label)
    time.sleep(seconds)  # handler
    journal().write("end", label)


def meets(others: int) -> None:
    """Return once so many of these run at the same time."""
    journal().write("start", "meets")
    deadline = time.monotonic() + 20
    while len(journal().lines("start")) < others:
        assert time.monotonic() < deadline
        time.sleep(0.02)  # handler


def doubles(number: int) -> int:
    journal().write("ran", [number, current().composition != ""])
    return number * 2


async def adds() -> None:
    await current().batch.add()


def steps(until: str) -> date:
    """Tell of progress more often than anybody wants to hear, and wait for a file."""
    for done in range(50_000):
        current().progress(done / 50_000)
    current().progress(0.5, "half way")
    deadline = time.monotonic() + 20
    while not os.path.exists(until) and time.monotonic() < deadline:  # noqa: PTH110 - as a handler may
        time.sleep(0.02)  # handler
    current().progress(1)
    return date(2030, 1, 1)


async def sleeps_async(label: str, seconds: float) -> None:
    journal().write("start", label)
    await asyncio.sleep(seconds)  # handler
    journal().write("end", label)


def looks(label: str) -> None:
    journal().write("start", label)
    deadline = time.monotonic() + 20
    while not current().cancelled and time.monotonic() < deadline:
        time.sleep(0.01)  # handler
    journal().write("saw it", label)


def starts_another(label: str) -> None:
    """Leave a grandchild in the middle of its work."""
    other = subprocess.Popen(["sleep", "60"])
    journal().write("start", other.pid)
    other.wait()


# ---------------------------------------------------------------------------------------------------- hostile handlers


def exits() -> None:
    os._exit(3)


def dereferences_null() -> None:
    ctypes.string_at(0)


def kills_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _link() -> int:
    """The descriptor that the handler's process talks over: the lowest one that is a socket."""
    for number in range(256):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                return number
    raise AssertionError("there is none")


def talks_nonsense() -> None:
    os.write(_link(), b"\0\0\0\3abc" * 100)
    time.sleep(20)  # handler


def talks_without_end() -> None:
    with contextlib.suppress(OSError):
        while True:
            os.write(_link(), b"\xff" * 65536)
    time.sleep(20)  # handler


def hangs_up() -> None:
    with socket.socket(fileno=_link()) as link:
        link.shutdown(socket.SHUT_RDWR)
        time.sleep(20)  # handler


def closes_everything() -> None:
    os.closerange(0, 256)


def closes_and_opens_another() -> None:
    link = _link()
    os.close(link)
    other = os.open(os.environ["TENURE_TEST_JOURNAL"] + ".other", os.O_WRONLY | os.O_CREAT)
    os.dup2(other, link)


def forks_and_both_return() -> None:
    if os.fork():
        time.sleep(0.2)  # handler


def forks_and_leaves() -> None:
    if os.fork() == 0:
        time.sleep(20)  # handler
        os._exit(0)


def forks_a_pool() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        journal().write("sum", sum(pool.map(abs, [-1, -2, -3])))
    sleeper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    sleeper.start()
    sleeper.terminate()
    sleeper.join()
    journal().write("terminated", sleeper.exitcode)


def prints_to_everything() -> None:
    for stream in (1, 2):
        os.write(stream, b"\0\1\2 noise \xff\n" * 1000)
    print("a line", flush=True)  # noqa: T201 - as handlers do
    sys.stderr = None


def leaves_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(20,)).start()


JOBS: tuple[Callable[..., Any], ...] = (
    tells, knows, tells_async, Told, asks, runs_a_loop_of_its_own, returns, decides, raises, raises_async, sleeps,
    meets, steps, doubles, adds, sleeps_async, looks, starts_another, exits, dereferences_null, kills_itself,
    talks_nonsense,
    hangs_up, talks_without_end, closes_everything, closes_and_opens_another, forks_and_both_return,
    forks_and_leaves, forks_a_pool, prints_to_everything, leaves_a_thread,
)  # fmt: skip


def build(url: str, namespace: str) -> Tenure:
    """Return the application, with every job in a process and, under another name, on the loop or in a thread."""
    made = Tenure(url, namespace=namespace)
    for job in JOBS:
        made.job(name=job.__name__, executor="process")(job)
    made.job(name="picky", executor="process", give_up_on=[LookupError])(raises)
    for function in (sleeps, sleeps_async, looks):
        made.job(name=f"{function.__name__}_here")(function)

    def opened() -> Iterator[Opened]:
        service = Opened()
        yield service
        service.close()

    made.services.register_factory(Opened, contextlib.contextmanager(opened))

    @made.lifespan
    async def life() -> AsyncIterator[None]:
        made.services.register_value(Database, Database())
        yield
        if path := os.environ.get("TENURE_TEST_LIVES"):
            with open(path, "a") as out:  # noqa: ASYNC230, PTH123 - of a test's own
                out.write(f"{os.getpid()}\n")

    return made


app = build(os.environ.get("TENURE_TEST_URL", "memory://"), os.environ.get("TENURE_TEST_NAMESPACE", "apart"))


def main() -> None:
    from tests.worker.apart import app as importable  # noqa: PLC0415 - __main__ is another module

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    ended = run_worker(importable, WorkerOptions(queues=("default",), **json.loads(sys.argv[1])))
    sys.stdout.write(f"exit reason: {ended.reason.value}{', forced' if ended.forced else ''}\n")


if __name__ == "__main__":
    main()

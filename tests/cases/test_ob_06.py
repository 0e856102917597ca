"""A store in trouble while a worker waits for a delayed job: OB-06."""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing

import pytest

from tests.cases.conftest import Benches
from tests.cases.scenarios import together
from tests.support import faults
from tests.support.proxy import Proxy
from tests.support.servers import Server, redis_like
from tests.worker.bench import Bench

Trouble = Callable[[], AbstractContextManager[object]]
DELAY, BELL = 4.0, 1.3
"""Seconds until the job is due, and until another one falls into the trouble, which is felt for certain then."""
BEGINS, HOLD, LATE = 1.0, 0.5, 2.0


def due_in_spite_of(bench: Bench, trouble: Trouble, *, times: int, url: str | None = None) -> str:
    """The job starts at its time, though the store fails so many times before; return what the worker said."""
    with bench.worker(url=url) as child:
        pushed = time.monotonic()
        bench.push("works", "bell", 0, delay=BELL)
        bench.push("works", "job", 0, delay=DELAY)
        wait_until(pushed + BEGINS)
        for _ in range(times):
            with trouble():
                wait_until(time.monotonic() + HOLD)
        assert time.monotonic() < pushed + DELAY, "the trouble was over before the job was due"
        bell, job = bench.journaled(2, "start")
        assert [(line["label"], line["attempt"]) for line in (bell, job)] == [("bell", 1), ("job", 1)]
        assert bell["at"] - pushed < DELAY, "it works again before anything else is due"
        assert DELAY <= job["at"] - pushed < DELAY + LATE
        assert child.exit_code is None
        bench.counts(ready=0, delayed=0, leased=0, failed=0)
        return child.output


def wait_until(moment: float) -> None:
    threading.Event().wait(max(0.0, moment - time.monotonic()))


@contextlib.contextmanager
def cut(proxy: Proxy) -> Iterator[None]:
    assert proxy.kill_connections() > 0
    yield


def redis_in_trouble(benches: Benches, server: Server, times: int) -> None:
    def busy() -> None:
        with redis_like(server.binary) as own:
            bench = Bench(own.url, "busy", benches("a").journal)
            said = due_in_spite_of(bench, lambda: faults.busy(own), times=times)
            assert "claiming jobs failed" in said
            bench.app.close_sync()

    def dropped() -> None:
        with Proxy(server.socket) as proxy:
            due_in_spite_of(benches("b"), lambda: cut(proxy), times=times, url=proxy.url)

    def silent() -> None:
        with Proxy(server.socket) as proxy:
            due_in_spite_of(benches("c"), lambda: faults.half_open(proxy), times=times, url=proxy.url)

    together(busy, dropped, silent)


@contextlib.contextmanager
def locked(bench: Bench) -> Iterator[None]:
    """Another program holds the lock of the file."""
    with closing(sqlite3.connect(path_of(bench), isolation_level=None, timeout=5)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextlib.contextmanager
def refusing(bench: Bench) -> Iterator[None]:
    """Every call fails, because another program has renamed a table."""
    with closing(sqlite3.connect(path_of(bench), isolation_level=None, timeout=5)) as other:
        other.execute("ALTER TABLE tenure_queues RENAME TO renamed")
        yield
        other.execute("ALTER TABLE renamed RENAME TO tenure_queues")


def path_of(bench: Bench) -> str:
    return bench.url.removeprefix("sqlite:///")


def file_in_trouble(benches: Benches, times: int) -> None:
    def busy() -> None:
        bench = benches("a")
        due_in_spite_of(bench, lambda: locked(bench), times=times)

    def failing() -> None:
        bench = benches("b")
        assert "claiming jobs failed" in due_in_spite_of(bench, lambda: refusing(bench), times=times)

    together(busy, failing)


@pytest.mark.parametrize("times", [1, 3])
def test_ob_06_a_delayed_job_starts_at_its_time_after_a_store_in_trouble(
    benches: Benches, server: Server | None, times: int
) -> None:
    """Redis is busy, cuts its connections or says nothing; the file is locked or fails every call."""
    if server is None:
        file_in_trouble(benches, times)
    else:
        redis_in_trouble(benches, server, times)

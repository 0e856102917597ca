"""Worker processes and the signals they get, on a real server."""

import asyncio
import pathlib
import re
import signal
import time
from collections.abc import Iterator

import pytest

from tests.support.servers import Server
from tests.worker.bench import Bench, ended_with
from tests.worker.conftest import forget
from tests.worker.program import Journal


@pytest.fixture
def bench(valkey: Server, namespace: str, tmp_path: pathlib.Path) -> Iterator[Bench]:
    made = Bench(valkey.url, namespace, Journal(tmp_path / "journal"))
    yield made
    made.app.close_sync()
    asyncio.run(forget(valkey, namespace))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_ends_at_a_signal(bench: Bench, number: signal.Signals) -> None:
    with bench.worker(sleep=30) as child:
        began = time.monotonic()
        child.signal(number)
        ended_with(child, "shutdown")
        assert time.monotonic() - began < 3


def test_what_outlives_the_drain_time_is_given_back_uncharged(bench: Bench) -> None:
    bench.push("works", "too long", 60)
    bench.push("blocks_a_thread", "too long in a thread", 60)
    with bench.worker(drain_timeout=0.3) as child:
        bench.journaled(2, "start")
        child.signal(signal.SIGTERM)
        ended_with(child, "shutdown")
    bench.counts(ready=2, leased=0)
    assert len(bench.journal.lines("cancelled")) == 1
    with bench.worker(drain_timeout=0):
        starts = bench.journaled(4, "start")
    assert [line["attempt"] for line in starts] == [1, 1, 1, 1]


def test_a_second_signal_gives_back_at_once(bench: Bench) -> None:
    bench.push("works", "long", 60)
    with bench.worker(lease=300) as child:
        bench.journaled(1, "start")
        child.signal(signal.SIGTERM)
        child.wait_for_output("draining")
        began = time.monotonic()
        child.signal(signal.SIGTERM)
        ended_with(child, "shutdown, forced")
        assert time.monotonic() - began < 3
    bench.counts(ready=1, leased=0)


def test_a_quiet_worker_claims_no_more_until_it_ends(bench: Bench) -> None:
    bench.push("works", "first", 0.5)
    with bench.worker() as child:
        bench.journaled(1, "start")
        child.signal(signal.SIGTSTP)
        child.wait_for_output("quiet")
        bench.push("works", "second", 0)
        bench.journaled(1, "end")
        bench.counts(ready=1, leased=0)
        child.signal(signal.SIGTERM)
        ended_with(child, "shutdown")
    assert len(bench.journal.lines("start")) == 1


@pytest.mark.parametrize(("job", "place"), [("works", "in works"), ("blocks", "blocks (")])
def test_the_stacks_of_running_jobs_can_be_seen_also_when_the_loop_is_blocked(
    bench: Bench, job: str, place: str
) -> None:
    identity = bench.push(job, "secret-label", 3.0)
    with bench.worker() as child:
        bench.journaled(1, "start")
        began = time.monotonic()
        child.signal(signal.SIGTTIN)
        child.wait_for_output("thread MainThread is at")
        assert time.monotonic() - began < 2
        assert re.search(rf"job {identity} \({job}\) has run for \d", child.output)
        assert f"{job} (" in child.output
        assert "secret-label" not in child.output
        bench.journaled(1, "end")


def test_system_exit_in_what_a_handler_left_behind_does_not_end_the_worker(bench: Bench) -> None:
    bench.push("leaves_system_exit_behind")
    bench.push("works", "neighbour", 0.3)
    with bench.worker() as child:
        bench.journaled(2, "end")
        child.wait_for_output("SystemExit was raised outside of any attempt")
        bench.push("works", "after", 0)
        bench.journaled(3, "end")
        child.signal(signal.SIGTERM)
        assert child.wait() == 0
        assert "exit reason: shutdown" in child.output
    bench.counts(ready=0, leased=0, failed=0)


def test_a_handler_that_never_ends_does_not_hold_up_the_end_of_the_process(bench: Bench) -> None:
    bench.push("ignores", "deaf", 60)
    with bench.worker(drain_timeout=0.2) as child:
        bench.journaled(1, "start")
        child.signal(signal.SIGTERM)
        ended_with(child, "shutdown", 15)
        assert "was abandoned" in child.output
    bench.counts(ready=1, leased=0)


def test_a_blocked_loop_is_named_in_the_log(bench: Bench) -> None:
    job = bench.push("blocks", "busy", 6.0)
    with bench.worker(lease=1.5) as child:
        child.wait_for_output(f"job {job} (blocks) has blocked the event loop", 15)
        assert "blocks (" in child.output
        bench.journaled(1, "end")
        bench.counts(leased=0)
    assert len(bench.journal.lines("start")) == 1

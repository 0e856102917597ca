"""What becomes of the jobs of a worker that is killed or stands still, and of that worker."""

import contextlib
import signal
import time
from collections.abc import Iterator

from tests.cases.conftest import Benches
from tests.cases.scenarios import together
from tests.support.processes import Child, eventually
from tests.worker.bench import Bench, ended_with

LEASE = 1.0


def pass_by(since: float, seconds: float) -> None:
    eventually(lambda: time.monotonic() > since + seconds, seconds + 5, what=f"{seconds} s have passed")


def test_the_jobs_of_a_killed_worker_run_again_within_its_lease_and_a_second(bench: Bench) -> None:
    jobs = 5
    for number in range(jobs):
        bench.push("hangs_at_first", str(number))
    with bench.worker(lease=LEASE) as first:
        start = bench.journaled(jobs, "start")[-1]
        with bench.worker(lease=LEASE, sleep=1.0) as second:
            pass_by(start["at"], 2 * LEASE)  # its leases were renewed by now
            first.kill9()
            killed = time.monotonic()
            again = bench.journaled(2 * jobs, "start")[jobs:]
            assert max(line["at"] for line in again) - killed < LEASE + 1.0
            assert [(line["attempt"], line["pid"]) for line in again] == [(2, second.pid)] * jobs
            bench.journaled(jobs, "settled")
    bench.counts(ready=0, leased=0, failed=0)


@contextlib.contextmanager
def frozen(child: Child) -> Iterator[None]:
    """Let a worker stand still for three leases, and for as long as the block lasts."""
    since = time.monotonic()
    child.pause()
    try:
        yield
        pass_by(since, 3 * LEASE)
    finally:
        child.cont()


def goes_on_and_ends(bench: Bench, child: Child) -> None:
    bench.push("plain", "after")
    assert bench.journaled(1, "plain")[0]["pid"] == child.pid
    bench.counts(ready=0, leased=0, failed=0)
    child.signal(signal.SIGTERM)
    ended_with(child, "shutdown")


def test_a_worker_that_stood_still_for_three_leases_changes_nothing_and_goes_on(benches: Benches) -> None:
    """No settlement of a lease that it lost is accepted, and the handler is stopped, whoever has the job by then."""

    def another_one_runs_its_job() -> None:
        bench = benches("a")
        bench.push("works", "contested", 4 * LEASE)
        with bench.worker(lease=LEASE) as first:
            [start] = bench.journaled(1, "start")
            with contextlib.ExitStack() as stack:
                with frozen(first):
                    second = stack.enter_context(bench.worker(lease=LEASE))
                    bench.journaled(2, "start")
                [cancelled] = bench.journaled(1, "cancelled")
                assert (cancelled["pid"], cancelled["fence"]) == (first.pid, start["fence"])
                first.wait_for_output("its lease")
                [settled] = bench.journaled(1, "settled")
            again = bench.journal.lines("start")[1]
            assert (settled["pid"], settled["fence"], again["attempt"]) == (second.pid, again["fence"], 2)
            goes_on_and_ends(bench, first)

    def another_one_has_ended_its_job() -> None:
        bench = benches("b")
        bench.push("hangs_at_first", "contested")
        with bench.worker(lease=LEASE) as first:
            [start] = bench.journaled(1, "start")
            with frozen(first), bench.worker(lease=LEASE) as second:
                bench.journaled(1, "settled")
            first.wait_for_output("its lease")
            goes_on_and_ends(bench, first)
        [settled] = [line for line in bench.journal.lines("settled") if line["label"] == "hangs_at_first"]
        assert (settled["pid"], settled["attempt"]) == (second.pid, 2)
        assert settled["fence"] > start["fence"]

    def nobody_else_is_there() -> None:
        bench = benches("c")
        bench.push("works", "alone", 2 * LEASE)
        with bench.worker(lease=LEASE) as only:
            bench.journaled(1, "start")
            with frozen(only):
                bench.counts(lapsed=1)
            settled = bench.journaled(1, "settled")
            goes_on_and_ends(bench, only)
        # It may have its lease again before anybody else, or take the job anew: the last of its leases ends it, once.
        assert settled[0]["fence"] == bench.journal.lines("start")[-1]["fence"]
        assert len([line for line in bench.journal.lines("settled") if line["label"] == "works"]) == 1
        assert len(bench.journal.lines("end")) == 1

    together(another_one_runs_its_job, another_one_has_ended_its_job, nobody_else_is_there)

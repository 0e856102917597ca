"""Jobs of dead workers, and jobs that take longer than a lease: OB-01 and OB-03."""

import asyncio
import time

import redis

from tests.cases.conftest import Benches
from tests.cases.scenarios import together, watched
from tests.support import processes
from tests.support.processes import eventually
from tests.support.servers import Server
from tests.worker.bench import Bench
from tests.worker.conftest import forget

LEASE = 1.0


def forget_the_client(bench: Bench, server: Server | None) -> None:
    """Remove what the store keeps of its clients, which is all that it knows of a worker besides its leases."""
    if server is not None:
        asyncio.run(forget(server, f"{bench.namespace}:client:"))
        with redis.Redis(unix_socket_path=server.socket) as client:
            assert not list(client.scan_iter(match=f"*{bench.namespace}:client:*", count=1000))


def ran_again_once(bench: Bench, jobs: int = 1) -> None:
    """Each job ran twice, the second time as its second attempt, and ended once."""
    bench.journaled(jobs, "end", 3 * LEASE)
    bench.counts(ready=0, delayed=0, leased=0, failed=0)
    starts = bench.journal.lines("start")
    for identity in {line["id"] for line in starts}:
        assert [line["attempt"] for line in starts if line["id"] == identity] == [1, 2]
    assert len({line["id"] for line in bench.journal.lines("end")}) == len(bench.journal.lines("end")) == jobs


def test_ob_01_a_job_comes_back_though_nothing_is_known_of_its_worker(benches: Benches, server: Server | None) -> None:
    """Liveness is read from the job's own lease: no record of a worker can be deleted, or reused by another one."""

    def its_traces_are_removed() -> None:
        bench = benches("a")
        bench.push("hangs_at_first", "a")
        with bench.worker(lease=LEASE) as first:
            bench.journaled(1, "start")
            with bench.worker(lease=LEASE):
                first.kill9()
                forget_the_client(bench, server)
                ran_again_once(bench)

    def it_is_born_again() -> None:
        bench = benches("b")
        bench.push("hangs_at_first", "b")
        with bench.worker(lease=LEASE) as first:
            bench.journaled(1, "start")
            first.kill9()
        # The same program, options and host, and whatever else may name it; it is the one healthy worker, too.
        with bench.worker(lease=LEASE):
            ran_again_once(bench)

    def its_sweeper_dies_halfway() -> None:
        bench = benches("c")
        jobs = 150
        bench.app.push_many_sync(bench.app.call("hangs_at_first", [str(number)]) for number in range(jobs))
        with bench.worker(lease=LEASE, concurrency=jobs) as first:
            bench.journaled(jobs, "start")
            first.kill9()
        bench.app.operate.pause_sync("default")  # a paused queue is swept, and nothing of it is handed out
        bench.counts(lapsed=jobs)
        with processes.python("-m", "tests.cases.sweeper", bench.url, bench.namespace) as sweeper:
            sweeper.wait_for_output("swept")
            sweeper.kill9()
        counts = bench.app.counts_sync("default")
        assert (counts.lapsed, counts.ready) == (jobs - 100, 100), "a hundred of them were swept"
        bench.app.operate.resume_sync("default")
        with bench.worker(lease=LEASE):
            ran_again_once(bench, jobs)

    together(its_traces_are_removed, it_is_born_again, its_sweeper_dies_halfway)


def test_ob_03_a_long_delay_and_a_long_run_outlive_many_leases(bench: Bench) -> None:
    """Waiting is not charged against a lease, and a healthy worker renews what it holds."""
    delay = run = 4.5 * LEASE
    with bench.worker(lease=LEASE), bench.worker(lease=LEASE), bench.worker(lease=LEASE), watched(bench) as seen:
        pushed = time.monotonic()
        bench.push("works", "long", run)
        bench.push("works", "delayed", 0, delay=delay)
        eventually(lambda: time.monotonic() > pushed + delay + 2 * LEASE, 20, what="the time to watch is over")
    starts, ends = bench.journal.lines("start"), bench.journal.lines("end")
    assert [(line["label"], line["attempt"]) for line in starts] == [("long", 1), ("delayed", 1)]
    assert sorted(line["label"] for line in ends) == ["delayed", "long"]
    assert delay <= starts[1]["at"] - pushed < delay + 0.5
    live = [counts.ready + counts.delayed + counts.leased for counts in seen]
    assert max(live) == 2
    after_both = live.index(2)
    assert live[after_both:] == sorted(live[after_both:], reverse=True), "no copy ever came back"
    assert live[-1] == 0
    assert not any(counts.lapsed for counts in seen)

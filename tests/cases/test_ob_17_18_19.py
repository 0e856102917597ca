"""Draining, time limits that code would ignore, and workers that are full or blocked: OB-17, OB-18 and OB-19."""

import signal
import time
from typing import Any

from tests.cases.conftest import Benches
from tests.cases.scenarios import together, watched
from tests.support.processes import eventually
from tests.worker.bench import Bench, ended_with


# K17
def test_ob_17_a_draining_worker_keeps_its_lease_finishes_and_takes_nothing_new(bench: Bench) -> None:
    with bench.worker(lease=1.0) as one, bench.worker(lease=1.0) as other:
        bench.push("works", "long", 4.0)
        [start] = bench.journaled(1, "start")
        first, second = (one, other) if start["pid"] == one.pid else (other, one)
        with watched(bench) as seen:
            first.signal(signal.SIGTERM)
            first.wait_for_output("draining: 1 jobs run")
            bench.push("works", "later", 0)
            ended_with(first, "shutdown")
            over = time.monotonic()
            [end] = [line for line in bench.journaled(2, "end") if line["pid"] == first.pid]
            assert end["at"] - start["at"] >= 3.99
            assert over - end["at"] < 3.0, "soon after it ended"
            second.signal(signal.SIGTERM)
            ended_with(second, "shutdown")
    starts = bench.journal.lines("start")
    assert [(line["label"], line["attempt"]) for line in starts] == [("long", 1), ("later", 1)]
    assert starts[0]["pid"] != starts[1]["pid"]
    assert not any(counts.lapsed for counts in seen), "it renewed to the end"
    bench.counts(ready=0, leased=0, failed=0)


LIMIT, GRACE, LOOPS = 0.5, 0.5, 3.0
CLINGING = (
    "catches_ordinary_exceptions", "catches_everything", "cleans_up_slowly", "in_a_thread", "in_a_process",
    "blocks_and_catches",
)  # fmt: skip


def test_ob_18_code_that_swallows_its_time_limit_has_timed_out_all_the_same(benches: Benches) -> None:
    """The record says so by limit and grace and stays so, and the slots are usable again."""
    bench = benches("a", processes=True)

    def records() -> dict[str, str]:
        names = {record.id: record.failure.reason for record in bench.app.failed_sync("default")}
        return {job: names[identity] for job, identity in pushed.items() if identity in names}

    # The one that blocks the loop is pushed when the others are judged: it would hold up their judges as well.
    blocking = CLINGING[-1]
    pushed: dict[str, str] = {}
    with bench.worker(lease=1.0, tries=1, cancel_grace=GRACE, concurrency=len(CLINGING)):
        for job in CLINGING[:-1]:
            pushed[job] = bench.push(job, LOOPS, timeout=LIMIT)
        bench.journaled(len(pushed), "start")
        begun = time.monotonic()
        eventually(lambda: records() == dict.fromkeys(pushed, "timeout"), what="they have timed out")
        assert time.monotonic() - begun < LIMIT + GRACE + 1.0
        assert not bench.journal.lines("late"), "they are still at it"
        bench.counts(leased=0)
        # Every slot is free: so many jobs are at work at the same time.
        for _ in CLINGING:
            bench.push("at_the_same_time", 0.5)
        bench.journaled(len(CLINGING), "begin", 3)
        assert not bench.journal.lines("over") or bench.journal.lines("late")

        pushed[blocking] = bench.push(blocking, LOOPS / 2, timeout=LIMIT)
        # Each comes to its end and returns a value, but for those that could be ended.
        late = {line["label"] for line in bench.journaled(len(CLINGING) - 2, "late")}
        assert late == {*CLINGING} - {"catches_ordinary_exceptions", "in_a_process"}, "cancelled, and killed"
        eventually(lambda: blocking in records(), what="the blocking one has timed out")
        bench.counts(ready=0, leased=0, failed=len(CLINGING))
        assert records() == dict.fromkeys(CLINGING, "timeout")


def test_ob_19_a_full_or_blocked_worker_still_hears_and_renews(benches: Benches) -> None:
    """With one slot: a cancel reaches a job within two seconds, and no lease lapses, whatever blocks."""
    lease = 1.0

    def observed(name: str, job: str, seconds: float) -> tuple[Bench, dict[str, Any], float]:
        """Run a job on a full worker, with another one idle; return its start and how long it held its lease."""
        bench = benches(name)
        identity = bench.push(job, job, seconds)
        with bench.worker(concurrency=1, lease=lease, cancel_grace=0.5):
            [start] = bench.journaled(1, "start")
            with bench.worker(concurrency=1, lease=lease), watched(bench) as seen:
                eventually(lambda: time.monotonic() > start["at"] + 1.0, what="it has run for a second")
                bench.app.cancel_sync("default", [identity])
                asked = time.monotonic()
                bench.counts(ready=0, delayed=0, leased=0)
                held = time.monotonic() - asked
                assert not any(counts.lapsed for counts in seen)
                # Both workers go on.
                for _ in range(4):
                    bench.push("plain", "after")
                bench.journaled(4, "plain")
        assert [line["id"] for line in bench.journal.lines("start")] == [identity], "one execution"
        bench.counts(ready=0, delayed=0, leased=0, failed=0)
        return bench, start, held

    def awaits() -> None:
        bench, _, held = observed("a", "works", 30.0)
        assert held < 2.0
        assert len(bench.journal.lines("cancelled")) == 1
        assert not bench.journal.lines("end")

    def blocks_a_thread() -> None:
        _, _, held = observed("b", "blocks_a_thread", 30.0)
        assert held < 2.0, "abandoned after its grace"

    def blocks_the_loop() -> None:
        bench, start, _ = observed("c", "blocks", 4.0)
        [end] = bench.journal.lines("end")
        assert end["fence"] == start["fence"]

    together(awaits, blocks_a_thread, blocks_the_loop)

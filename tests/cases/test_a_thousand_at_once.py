"""A thousand handlers in one process, each of which lasts longer than its lease."""

from tests.cases.scenarios import watched
from tests.worker.bench import Bench

JOBS, SECONDS, LEASE = 1_000, 3.0, 2.0


def test_a_thousand_handlers_at_once_hold_their_leases(bench: Bench) -> None:
    bench.app.push_many_sync(bench.app.call("works", [str(number), SECONDS]) for number in range(JOBS))
    with bench.worker(concurrency=JOBS, lease=LEASE) as child, watched(bench) as seen:
        settled = bench.journaled(JOBS, "settled", 30)
        bench.counts(ready=0, delayed=0, leased=0, failed=0)
        assert "lease" not in child.output.partition("worker started")[2].partition("\n")[2]
    starts, ends = bench.journal.lines("start"), bench.journal.lines("end")
    assert len({line["id"] for line in starts}) == len(starts) == len(ends) == len(settled) == JOBS
    assert {line["attempt"] for line in starts} == {1}
    assert max(line["at"] for line in starts) < min(line["at"] for line in ends), "all at the same time"
    assert not any(counts.lapsed for counts in seen)
    assert not bench.journal.lines("stale")

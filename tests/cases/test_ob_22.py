"""An old worker and a job that only the new code knows: OB-22."""

from operator import ge

from tests.support.processes import eventually
from tests.worker.bench import Bench

OLD = "tests.worker.program"
LEASE = 1.0
SINGLES, SERIES = 50, 4


def test_ob_22_an_old_worker_gives_back_what_only_the_new_code_knows(bench: Bench) -> None:
    """After a pause, uncharged, until a worker knows it; a series that is kept alive by its own runs goes on."""

    def rounds() -> list[int]:
        """How often each series has come round."""
        lines = bench.journal.lines("recurs")
        return [sum(line["label"] == series for line in lines) for series in range(SERIES)]

    def ended(label: str) -> bool:
        return label in {line["label"] for line in bench.journal.lines("end")}

    with bench.worker(program=OLD, lease=LEASE, concurrency=1) as old:
        # The old one is alone at first, and has the first of each series and half of the singles in its hands.
        for series in range(SERIES):
            bench.push("recurs", series)
        for number in range(SINGLES // 2):
            bench.push("single", number)
        bench.counts(ready=0, leased=0, delayed=SINGLES // 2 + SERIES)
        with bench.worker(lease=LEASE, concurrency=5) as doomed:
            old.pause()
            bench.push("hangs_at_first", "interrupted")
            [start] = bench.journaled(1, "start")
            assert start["pid"] == doomed.pid
            doomed.kill9()
            old.cont()
        # The old one sweeps what the dead one held, too.
        bench.counts(ready=0, leased=0, delayed=SINGLES // 2 + SERIES + 1)
        with bench.worker(lease=LEASE):
            for number in range(SINGLES // 2, SINGLES):
                bench.push("single", number)
            eventually(lambda: any(rounds()), 30, what="a series goes on beside the old one")
            bench.push("works", "known to both", 0)
            old.stop()
            assert old.exit_code == 0
            so_far = rounds()
            eventually(lambda: all(map(ge, rounds(), (n + 2 for n in so_far))), 30, what="all go on after the old one")
            eventually(lambda: len(bench.journal.lines("single")) == SINGLES, 30, what="all singles have run")
            eventually(lambda: ended("interrupted") and ended("known to both"), 30, what="all others have")
    assert {line["label"] for line in bench.journal.lines("single")} == set(range(SINGLES))
    assert {line["attempt"] for line in bench.journal.lines("single") + bench.journal.lines("recurs")} == {1}
    assert bench.app.counts_sync("default").failed == 0

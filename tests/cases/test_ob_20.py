"""Exceptions that cannot be stored as they are: OB-20."""

import itertools
import pathlib
from collections import Counter

from tests.cli.here import run_here
from tests.worker.bench import Bench
from tests.worker.toxic import ERRORS


def test_ob_20_an_exception_that_cannot_be_stored_as_it_is_is_filed_and_counted(
    bench: Bench, tmp_path: pathlib.Path
) -> None:
    """With attempts left, with none, from a request to retry and from a middleware; a plain job runs after each."""
    filed: dict[str, int] = {}
    plain = itertools.count(1)
    with bench.worker(concurrency=1, backoff=0) as child:
        for kind in ERRORS:
            for job, attempts in (("raises", 2), ("raises", 1), ("raises_while_asking_for_a_retry", 2)):
                filed[bench.push(job, kind, max_attempts=attempts)] = attempts
            bench.push("plain", next(plain))
        filed[bench.push("fails_around", "around", max_attempts=2)] = 2
        bench.push("plain", next(plain))
        bench.counts(20, ready=0, delayed=0, leased=0, failed=len(filed))
        assert len(bench.journal.lines("plain")) == len(ERRORS) + 1
        assert child.exit_code is None
    raised = Counter(line["id"] for line in bench.journal.lines("raise"))
    assert raised == filed

    records = {record.id: record for record in bench.app.failed_sync("default", limit=200)}
    assert records.keys() == filed.keys()
    for identity, record in records.items():
        assert record.attempts == filed[identity]
        assert record.failure.reason == "exception"
        assert record.failure.type
        assert len(record.failure.message) <= 1_000
        assert 0 < len(record.failure.traceback) <= 20_000
    env = {"TENURE_URL": bench.url, "QUEUE_NAMESPACE": bench.namespace}
    for identity in records:
        shown = run_here(["failed", "show", identity, "--reveal", "--yes"], tmp_path, env)
        assert shown.returncode == 0, shown.stderr
        assert identity in shown.stdout

"""Retrying for ever: OB-10. The delays of attempts 1 to 5,000 are looked at in tests/unit/test_retry.py."""

from tenure.queue import MAX_DELIVERIES
from tests.cases.program import FOR_EVER
from tests.worker.bench import Bench


def test_ob_10_a_job_without_a_limit_is_tried_until_the_last_delivery(bench: Bench) -> None:
    """The 1,000 deliveries that no job survives are the bound, not the arithmetic of any backoff."""
    for name in FOR_EVER:
        bench.push(name)
    with bench.worker(tries=0):
        bench.counts(40, failed=len(FOR_EVER), ready=0, delayed=0, leased=0)
    lines = bench.journal.lines()
    for name in FOR_EVER:
        attempts = [line["attempt"] for line in lines if line["what"] == name]
        assert attempts == list(range(1, MAX_DELIVERIES + 1))
    for record in bench.app.failed_sync("default"):
        assert (record.failure.reason, record.attempts) == ("deliveries", MAX_DELIVERIES + 1)

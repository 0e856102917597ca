"""A worker's vitals as metrics, read when they are asked for."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from tenure.worker.vitals import Vitals


class VitalsCollector(Collector):
    """Collects one worker's vitals."""

    def __init__(self, vitals: Vitals) -> None:
        self._vitals = vitals

    def collect(self) -> Iterator[Metric]:
        """Yield what they are now."""
        vitals = self._vitals
        for name, says, value in (
            ("live", "Whether the worker counts as living.", not vitals.illness),
            ("ready", "Whether the last claim that was due succeeded.", vitals.ready),
            ("concurrency", "Jobs that may run at the same time.", vitals.concurrency),
            ("jobs_in_flight", "Jobs that run.", vitals.running),
            ("leases_held", "Leases that the worker holds, of jobs that run, wait for a slot or are being settled.",
             vitals.held),
            ("loop_lag_seconds", "By how much the event loop was late the last time, or is late now.", vitals.lag),
        ):  # fmt: skip
            yield GaugeMetricFamily(f"tenure_{name}", says, value=float(value))
        yield CounterMetricFamily(
            "tenure_loop_late_seconds", "By how much the event loop was late, all together.", value=vitals.late
        )
        yield CounterMetricFamily("tenure_claims", "Claims, failed ones included.", value=vitals.claims)
        failed = CounterMetricFamily("tenure_store_calls_failed", "Store calls that failed, by kind.", labels=["call"])
        outages = CounterMetricFamily(
            "tenure_store_outages", "How often store calls of a kind began to fail.", labels=["call"]
        )
        for call, trouble in vitals.troubles.items():
            failed.add_metric([call], trouble.failed)
            outages.add_metric([call], trouble.outages)
        yield from (failed, outages)

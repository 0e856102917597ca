"""The store's own view of its queues: how many jobs are where, whoever works on them."""

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tenure.app import Tenure
from tenure.config import DEFAULT
from tenure.errors import StoreError, StoreRefused
from tenure.operations import QueueOverview, overview
from tenure.outgoing import OutboxLag

logger: Final = logging.getLogger("tenure")

MOST_QUEUES: Final = 1000
"""Queues that are told of one by one; ``tenure_queues`` counts all of them."""
STATES: Final = ("ready", "delayed", "leased", "lapsed", "failed", "unreadable")


class StoreMetrics(Collector):
    """What one look at the store brought. A new look makes a new one: ``await StoreMetrics.of(app)``."""

    def __init__(
        self, queues: Sequence[QueueOverview], *, known: int | None = None, outbox: Sequence[OutboxLag] | None = None
    ) -> None:
        self._queues = queues
        self._outbox = outbox
        self._known = len(queues) if known is None else known

    @classmethod
    async def of(cls, app: Tenure, *, queues: Sequence[str] | None = None, connection: str = DEFAULT) -> "StoreMetrics":
        """Look at these queues, or at all that the store knows, at most a thousand.

        Raises ``ConnectionFailed``, ``OutcomeUnknown`` and ``StoreRefused``.
        """
        outbox = None if app.settings.outbox() is None else await _outbox(app)
        names = await app.operate.queues(connection=connection) if queues is None else queues
        counted = await overview(app.operate, names[:MOST_QUEUES], connection=connection)
        return cls(counted, known=len(names), outbox=outbox)

    def text(self) -> bytes:
        """Return them in Prometheus' text form."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Yield what the look brought."""
        yield GaugeMetricFamily("tenure_queues", "Queues that the store knows.", value=self._known)
        jobs = GaugeMetricFamily(
            "tenure_queue_jobs", "Jobs of a queue, by state; lapsed ones are leased as well.", labels=["queue", "state"]
        )
        oldest = GaugeMetricFamily(
            "tenure_queue_oldest_age_seconds", "How long the oldest ready job has been ready.", labels=["queue"]
        )
        paused = GaugeMetricFamily("tenure_queue_paused", "Whether the queue is paused.", labels=["queue"])
        for queue in self._queues:
            for state in STATES:
                jobs.add_metric([queue.name, state], getattr(queue.counts, state))
            oldest.add_metric([queue.name], queue.counts.oldest_age or 0.0)
            if queue.paused is not None:
                paused.add_metric([queue.name], float(queue.paused))
        yield from (jobs, oldest, paused)
        if self._outbox is None:
            return
        waiting = GaugeMetricFamily(
            "tenure_outbox_jobs", "Jobs that wait in the outbox for a relay.", labels=["connection", "queue"]
        )
        age = GaugeMetricFamily(
            "tenure_outbox_oldest_age_seconds",
            "How long the oldest job has waited in the outbox.",
            labels=["connection", "queue"],
        )
        for one in self._outbox:
            waiting.add_metric([one.connection, one.queue], one.jobs)
            age.add_metric([one.connection, one.queue], one.oldest_age)
        yield from (waiting, age)


async def _outbox(app: Tenure) -> list[OutboxLag] | None:
    try:
        return (await app.outbox_lag())[:MOST_QUEUES]
    except StoreError as error:
        # DATABASE_URL may name a database that has nothing to do with tenure.
        if not isinstance(error, StoreRefused) or error.code != "NOTABLES":
            logger.warning("what waits in the outbox is not known: %s", error)
        return None

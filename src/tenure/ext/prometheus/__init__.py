"""Metrics in Prometheus' text form: those of a worker or of a crew, and the store's own view of its queues.

``tenure worker --http`` and ``tenure metrics`` serve them; a program that serves its own can use what is here.
"""

from tenure.errors import MissingExtra

try:
    import prometheus_client as prometheus_client
except ImportError:
    raise MissingExtra("prometheus", "tenure.ext.prometheus") from None

from tenure.ext.prometheus.crew import CrewMetrics
from tenure.ext.prometheus.store import StoreMetrics
from tenure.ext.prometheus.worker import WorkerMetrics

__all__ = ["CrewMetrics", "StoreMetrics", "WorkerMetrics"]

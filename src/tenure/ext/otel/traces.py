"""What an application is given to be traced."""

from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import cast

from opentelemetry.trace import TracerProvider, get_tracer

from tenure.ext.otel.pushing import sending
from tenure.ext.otel.running import Running
from tenure.ext.otel.store import ObservedQueue
from tenure.queue import Queue
from tenure.tracing import Departure


class Traces:
    """One application's tracer; it is ``tenure.tracing.Tracing``."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._tracer = get_tracer("tenure", version("tenure"), provider)

    def departing(self) -> AbstractContextManager[Departure]:
        """Stand around one push."""
        return sending(self._tracer)

    def around(self, queue: Queue) -> Queue:
        """Observe a worker's claims and settlements."""
        # All other methods are the driver's, which a type checker cannot see.
        return cast("Queue", ObservedQueue(queue, self._tracer))

    def runs(self, *, one_trace: bool) -> Running:
        """Return the middleware that stands around attempts."""
        return Running(self._tracer, one_trace=one_trace)

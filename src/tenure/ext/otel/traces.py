"""What an application is given to be traced."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from typing import cast

from opentelemetry.context import attach, detach
from opentelemetry.trace import TracerProvider, get_current_span, get_tracer

from tenure.ext.otel.context import arrived, travelling
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

    def carried(self) -> Mapping[str, str]:
        """Return the current span's context."""
        return travelling(get_current_span())

    @contextmanager
    def resumed(self, carried: Mapping[str, str]) -> Iterator[None]:
        """Let the span of another process be the current one: what is traced here is below it."""
        token = attach(arrived(carried))
        try:
            yield
        finally:
            detach(token)

    def runs(self, *, one_trace: bool) -> Running:
        """Return the middleware that stands around attempts."""
        return Running(self._tracer, one_trace=one_trace)

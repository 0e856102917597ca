"""The span of an attempt: a middleware, so that whatever the handler does is done inside it."""

from typing import Any

from opentelemetry.trace import SpanKind, Tracer

from tenure.context import Current
from tenure.ext.otel import conventions as names
from tenure.ext.otel.context import arrived, links
from tenure.ext.otel.outcome import failed
from tenure.surroundings import CallNext

OPERATION = "run"


class Running:
    """Stands around every attempt."""

    def __init__(self, tracer: Tracer, *, one_trace: bool) -> None:
        self._tracer = tracer
        self._one_trace = one_trace

    async def __call__(self, current: Current, call_next: CallNext) -> Any:
        """Run the attempt in a span that links to the push, and belongs to its trace if that is wanted."""
        pushed = arrived(current.meta)
        with self._tracer.start_as_current_span(
            f"{OPERATION} {current.queue}",
            # Without a parent of the push's, what is current here stays: inside a push that runs its job at once.
            context=pushed if self._one_trace and pushed else None,
            kind=SpanKind.CONSUMER,
            links=links([pushed]),
            attributes={
                names.SYSTEM: names.TENURE,
                names.OPERATION_NAME: OPERATION,
                names.OPERATION_TYPE: names.PROCESS,
                names.DESTINATION_NAME: current.queue,
                names.MESSAGE_ID: current.id,
                names.JOB_NAME: current.name,
                names.ATTEMPT: current.attempt,
                names.DELIVERIES: current.deliveries,
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return await call_next()
            except BaseException as error:
                failed(span, error)
                raise

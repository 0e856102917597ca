"""The span of a push, whose context travels with its jobs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.trace import Span, SpanKind, Tracer

from tenure.ext.otel import conventions as names
from tenure.ext.otel.context import travelling
from tenure.ext.otel.outcome import failed
from tenure.queue import Push

OPERATION = "push"


class Sending:
    """One push, of one job or of many."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._meta = travelling(span)
        self._queues: set[str] = set()
        self._count = 0
        self._first: tuple[str, str] | None = None

    @property
    def meta(self) -> Mapping[str, str]:
        """The context, for the jobs to carry."""
        return self._meta

    def carries(self, push: Push, name: str) -> None:
        """Count a job."""
        self._count += 1
        self._queues.add(push.queue)
        self._first = self._first or (push.id, name)

    def describe(self) -> None:
        """Say on the span what was sent."""
        if not self._span.is_recording():
            return
        if len(self._queues) == 1:
            [queue] = self._queues
            self._span.update_name(f"{OPERATION} {queue}")
            self._span.set_attribute(names.DESTINATION_NAME, queue)
        if self._count == 1 and self._first is not None:
            self._span.set_attribute(names.MESSAGE_ID, self._first[0])
            self._span.set_attribute(names.JOB_NAME, self._first[1])
        else:
            self._span.set_attribute(names.MESSAGE_COUNT, self._count)


@contextmanager
def sending(tracer: Tracer) -> Iterator[Sending]:
    """Stand around one push; what is current here is its parent."""
    attributes = {names.SYSTEM: names.TENURE, names.OPERATION_NAME: OPERATION, names.OPERATION_TYPE: names.SEND}
    with tracer.start_as_current_span(
        OPERATION,
        kind=SpanKind.PRODUCER,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        push = Sending(span)
        try:
            yield push
        except BaseException as error:
            failed(span, error)
            raise
        finally:
            push.describe()

"""How a span says that what it stands for failed: by the class's name, and nothing that could hold a secret (P12)."""

from opentelemetry.trace import Span, Status, StatusCode

from tenure.ext.otel import conventions as names
from tenure.outcomes import Discard, Snooze
from tenure.worker.failures import type_name


def failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed, unless the error is a handler's word for an end that is none."""
    if not isinstance(error, Discard | Snooze):
        name = type_name(error)
        span.set_attribute(names.ERROR_TYPE, name)
        span.set_status(Status(StatusCode.ERROR, name))

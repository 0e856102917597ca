"""From a span's context to a job's ``meta`` and back: W3C Trace Context, whatever propagator the program uses."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tenure.queue import Lease
from tenure.tracing import TRACEPARENT, TRACESTATE

LINKS: Final = 128
"""As many links as a span has by default; the jobs behind them are counted and not named."""
LONGEST_STATE: Final = 512
"""Bytes of ``tracestate`` that travel; the standard lets a longer one be left out."""

_propagator = TraceContextTextMapPropagator()
_NOWHERE = Context()


class _Meta(msgspec.Struct, gc=False):
    meta: dict[str, Any] = {}


_decoder = msgspec.json.Decoder(_Meta)


def travelling(span: Span) -> dict[str, str]:
    """Return the fields that carry the span's context; none when it is not valid."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, set_span_in_context(span, _NOWHERE))
    if len(carrier.get(TRACESTATE, "")) > LONGEST_STATE:
        del carrier[TRACESTATE]
    return carrier


def arrived(meta: Mapping[str, Any]) -> Context:
    """Return the context that travelled with a job, an empty one when none did or it cannot be read."""
    carrier = {key: meta[key] for key in (TRACEPARENT, TRACESTATE) if isinstance(meta.get(key), str)}
    return _propagator.extract(carrier, _NOWHERE) if carrier else _NOWHERE


def links(contexts: Sequence[Context]) -> list[Link]:
    """Return a link to each of the spans that these contexts name."""
    found = (get_current_span(context).get_span_context() for context in contexts)
    return [Link(context) for context in found if context.is_valid]


def creation(leases: Sequence[Lease]) -> list[Link]:
    """Return links to the pushes of leased jobs, as many as a span takes."""
    return links([arrived(_meta(lease.envelope)) for lease in leases[:LINKS]])


def _meta(envelope: bytes) -> Mapping[str, Any]:
    try:
        return _decoder.decode(envelope).meta
    except (ValueError, RecursionError):
        return {}  # it cannot be read, and the worker will say so

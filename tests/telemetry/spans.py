"""Spans as tests look at them, and applications whose spans stay in memory."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer


class Recorded:
    """A provider of its own, and what its spans were."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def tracer(self) -> Tracer:
        return self.provider.get_tracer("tests")

    def all(self) -> list[dict[str, Any]]:
        return [told(span) for span in self._exporter.get_finished_spans()]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [span for span in self.all() if span["name"] == name]

    def one(self, name: str) -> dict[str, Any]:
        [span] = self.named(name)
        return span


def told(span: ReadableSpan) -> dict[str, Any]:
    """What a span says, as plain JSON."""
    assert span.context is not None
    attributes: Mapping[str, Any] = span.attributes or {}
    return {
        "name": span.name,
        "kind": span.kind.name,
        "trace": f"{span.context.trace_id:032x}",
        "span": f"{span.context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else None,
        "links": [f"{link.context.span_id:016x}" for link in span.links],
        "status": span.status.status_code.name,
        "description": span.status.description,
        "attributes": dict(attributes),
        "events": len(span.events),
        "seconds": ((span.end_time or 0) - (span.start_time or 0)) / 1e9,
    }


def dumped(spans: Sequence[Mapping[str, Any]]) -> str:
    """All that spans say, to look for what must not be there."""
    return json.dumps(spans)

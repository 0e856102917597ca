"""The spans of a worker's claims and settlements: of a batch each, linked to the pushes of its jobs."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Tracer

from tenure.errors import StoreError
from tenure.ext.otel import conventions as names
from tenure.ext.otel.context import creation
from tenure.ext.otel.outcome import failed
from tenure.queue import Claimed, Queue, Settled, Settlement

CLAIM = "claim"
SETTLE = "settle"


class ObservedQueue:
    """A driver whose claims and settlements are spans; all else is the driver's own."""

    def __init__(self, queue: Queue, tracer: Tracer) -> None:
        self._queue = queue
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def claim(self, queues: Sequence[str], **terms: Any) -> Claimed:
        """Claim. One that brings nothing makes no span: an idle worker makes one a second."""
        begun = time.time_ns()
        try:
            claimed = await self._queue.claim(queues, **terms)
        except StoreError as error:
            span = self._started(CLAIM, names.RECEIVE, queues, 0, begun, [])
            failed(span, error)
            span.end()
            raise
        leases = claimed.leases
        if leases:
            named = [lease.queue for lease in leases]
            self._started(CLAIM, names.RECEIVE, named, len(leases), begun, creation(leases)).end()
        return claimed

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        """Settle."""
        leases = [settlement.lease for settlement in settlements]
        named = [lease.queue for lease in leases]
        span = self._started(SETTLE, names.SETTLE, named, len(leases), time.time_ns(), creation(leases))
        try:
            return await self._queue.settle(settlements)
        except StoreError as error:
            failed(span, error)
            raise
        finally:
            span.end()

    def _started(
        self, operation: str, kind: str, queues: Iterable[str], count: int, begun: int, links: list[Link]
    ) -> Span:
        attributes: dict[str, str | int] = {
            names.SYSTEM: names.TENURE,
            names.OPERATION_NAME: operation,
            names.OPERATION_TYPE: kind,
            names.MESSAGE_COUNT: count,
        }
        name = operation
        if len(of := set(queues)) == 1:
            attributes[names.DESTINATION_NAME] = queue = of.pop()
            name = f"{operation} {queue}"
        # A root of its own: what a worker happens to have been started in is no parent of all it ever does.
        return self._tracer.start_span(
            name, context=Context(), kind=SpanKind.CLIENT, attributes=attributes, links=links, start_time=begun
        )

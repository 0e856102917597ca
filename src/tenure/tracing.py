"""What stands around an application's calls to its stores, so that a job's story can be told as one trace.

A context travels with a job in its ``meta``, in the two fields of W3C Trace Context. What reads and writes them is an
upper layer's part (``tenure.ext.otel``), set as ``app.tracing``; nothing here knows a tracing library. Without one, a
``traceparent`` that a push gives as ``meta`` travels all the same.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, Final, Protocol

from tenure.queue import Push, Queue

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"


class Departure(Protocol):
    """One push that is being made, of one job or of many."""

    @property
    def meta(self) -> Mapping[str, str]:
        """What travels in the ``meta`` of its jobs, besides what the caller gave."""
        ...

    def carries(self, push: Push, name: str) -> None:
        """Take note of a job of it, before it is sent."""
        ...


class Tracing(Protocol):
    """An observer of calls. It changes no outcome, and none of its methods raises."""

    def departing(self) -> AbstractContextManager[Departure]:
        """Stand around one push, from before its jobs are encoded to the store's answer or the error."""
        ...

    def around(self, queue: Queue) -> Queue:
        """Return a driver that does what this one does, and is observed while a worker claims and settles."""
        ...

    def carried(self) -> Mapping[str, str]:
        """Return the context that is current here, for the handler of this attempt in a process of its own."""
        ...

    def resumed(self, carried: Mapping[str, str]) -> AbstractContextManager[object]:
        """Let a context that was carried into this process be current within the block."""
        ...


class _Untold:
    """A push that nobody observes."""

    meta: Mapping[str, str] = MappingProxyType({})

    def carries(self, push: Push, name: str) -> None:
        """Do nothing."""


_UNTOLD: Final = nullcontext[Departure](_Untold())


def departing(tracing: Tracing | None) -> AbstractContextManager[Departure]:
    """Return what stands around a push."""
    return _UNTOLD if tracing is None else tracing.departing()


def carried(tracing: Tracing | None) -> dict[str, str]:
    """Return the context that is current here, for another process."""
    return {} if tracing is None else dict(tracing.carried())


def resumed(tracing: Tracing | None, context: Mapping[str, str]) -> AbstractContextManager[object]:
    """Return what lets a context of another process be current."""
    return nullcontext() if tracing is None else tracing.resumed(context)


def travelling(given: Mapping[str, Any] | None, departure: Departure) -> dict[str, Any]:
    """Return what travels as a job's ``meta``. A context that the caller gave is left as it is."""
    meta = dict(given or {})
    return meta if TRACEPARENT in meta or not departure.meta else {**meta, **departure.meta}

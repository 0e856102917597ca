"""From a lease to the call it stands for, or to the outcome that it has without running (P4, P11)."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from tenure import envelope as envelopes
from tenure.envelope import Envelope
from tenure.errors import NewerEnvelope, Undecodable
from tenure.queue import Fail, Failure, Lease, Release, SetAside, Settlement
from tenure.registry import Registry
from tenure.retry import Backoff, fixed
from tenure.worker import failures
from tenure.worker.reports import safe_name
from tenure.worker.work import Route, Work

FIRST_DELAY: Final = 5.0
LONGEST_DELAY: Final = 60.0
_DOUBLINGS: Final = 4
"""5, 10, 20 and 40 seconds come before the longest delay."""


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a job that does not run."""

    settlement: Settlement
    failure: Failure | None


class Opening:
    """Opens leases: decodes the envelope, finds the job, builds its arguments."""

    def __init__(
        self, registry: Registry, *, tries: int, timeout: float | None, backoff: Backoff, unknown_limit: float
    ) -> None:
        self._registry = registry
        self._tries = tries
        self._timeout = timeout
        self._backoff = backoff
        self._unknown_limit = unknown_limit
        self._routes: dict[str, Route] = {}

    def open(self, lease: Lease) -> tuple[str, Work | Refusal]:
        """Return the job's name, as far as it can be read, and its call or what becomes of it unrun. Never raises."""
        try:
            envelope = envelopes.decode(lease.envelope)
        except NewerEnvelope:
            return "", self._unknown(lease, "the envelope is newer than this worker")
        except Undecodable as error:
            return "", Refusal(SetAside(lease, str(error)), None)
        if lease.doomed is not None:
            return safe_name(envelope.name), _failed(lease, Failure(reason=lease.doomed.value))
        route = self._routes.get(envelope.name) or self._route(envelope.name)
        if route is None:
            return safe_name(envelope.name), self._unknown(lease, "no such job is registered in this worker")
        try:
            call = route.definition.load(envelope)
        except Exception as error:  # noqa: BLE001 - a class job's constructor validates, and raises what it likes
            return envelope.name, _failed(lease, failures.describe(error, "arguments"))
        return envelope.name, self._work(route, envelope, call.function, call.args, call.kwargs)

    def _work(
        self,
        route: Route,
        envelope: Envelope,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Work:
        return Work(
            route,
            function,
            args,
            kwargs,
            # Out of range is unset: the record may be forged, and 0 would mean without limit here.
            route.max_attempts if (envelope.max_attempts or 0) < 1 else envelope.max_attempts,
            route.timeout if not 0.0 < (envelope.timeout or 0.0) < math.inf else envelope.timeout,
            route.backoff if envelope.backoff is None else _fixed(envelope.backoff, route.backoff),
            envelope.meta,
        )

    def _route(self, name: str) -> Route | None:
        definition = self._registry.get(name)
        if definition is None:
            return None
        options = definition.options
        route = Route(
            definition=definition,
            threaded=definition.executor != "async",
            injected=definition.injected,
            max_attempts=self._tries if options.max_attempts is None else options.max_attempts,
            timeout=self._timeout if options.timeout is None else options.timeout,
            backoff=self._backoff if options.backoff is None else options.backoff,
        )
        self._routes[name] = route
        return route

    def _unknown(self, lease: Lease, why: str) -> Refusal:
        if waited(lease.free) >= self._unknown_limit:
            return _failed(lease, Failure(reason="unknown-job", message=why))
        return Refusal(Release(lease, delay=unknown_delay(lease.free), free=True), None)


def unknown_delay(free: int) -> float:
    """Return the delay of an unknown job that was given back so often already: 5 s, doubling to 60."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(free, 10))


def waited(free: int) -> float:
    """Return the seconds of delay that so many free returns add up to; other free returns only shorten the wait."""
    doubled = min(free, _DOUBLINGS)
    return FIRST_DELAY * (2.0**doubled - 1) + LONGEST_DELAY * (free - doubled)


def _failed(lease: Lease, failure: Failure) -> Refusal:
    return Refusal(Fail(lease, failure), failure)


def _fixed(seconds: float, otherwise: Backoff) -> Backoff:
    try:
        return fixed(seconds)
    except ValueError:
        return otherwise  # a forged number; the job is good all the same


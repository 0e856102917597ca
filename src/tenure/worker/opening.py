"""From a lease to the call it stands for, or to the outcome that it has without running (P4, P11)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from tenure import envelope as envelopes
from tenure.envelope import Envelope
from tenure.errors import NewerEnvelope, Undecodable
from tenure.queue import Doom, Fail, Failure, Lease, Release, SetAside, Settlement
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
            return "", self._unrun(lease, "the envelope is newer than this worker")
        except Undecodable as error:
            return "", Refusal(SetAside(lease, str(error)), None)
        if not _is_of(lease.id, envelope.id) or envelope.queue != lease.queue:
            # Whatever put it here, it was not a push: running it would settle one job with the work of another.
            return "", Refusal(SetAside(lease, "the envelope is that of another job"), None)
        return safe_name(envelope.name), self._resolve(lease, envelope)

    def _resolve(self, lease: Lease, envelope: Envelope) -> Work | Refusal:
        try:
            route = self._routes.get(envelope.name) or self._route(envelope.name)
            if route is None or lease.doomed is not None:
                return self._unrun(lease, "no such job is registered in this worker")
            call = route.definition.load(envelope, lease.input)
        except Exception as error:  # noqa: BLE001 - arguments are built by the user's own types
            return _failed(lease, failures.describe(error, "arguments"))
        return self._work(route, envelope, call.function, call.args, call.kwargs)

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
            envelope.max_attempts or route.max_attempts,
            envelope.timeout or route.timeout,
            route.backoff if envelope.backoff is None else fixed(envelope.backoff),
            envelope.meta,
        )

    def _route(self, name: str) -> Route | None:
        definition = self._registry.get(name)
        if definition is None:
            return None
        options = definition.options
        route = Route(
            definition=definition,
            plain=definition.executor == "async" and not definition.injected,
            injected=definition.injected,
            max_attempts=self._tries if options.max_attempts is None else options.max_attempts,
            timeout=self._timeout if options.timeout is None else options.timeout,
            backoff=self._backoff if options.backoff is None else options.backoff,
        )
        self._routes[name] = route
        return route

    def _unrun(self, lease: Lease, why: str) -> Refusal:
        if lease.doomed is not None:
            return _doomed(lease, lease.doomed)
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


def _is_of(job_id: str, named: str) -> bool:
    """Tell whether an envelope that names this id is the job's: its own, or that of a composition that it joined.

    What joins a composition that runs gets its number, and so its id, from the store, which reads no envelope.
    """
    return named == job_id or (job_id.startswith(f"{named}.") and job_id[len(named) + 1 :].isdecimal())


def _doomed(lease: Lease, doom: Doom) -> Refusal:
    if doom is Doom.CANCELLED:
        return Refusal(Release(lease), None)  # finds the request, and removes the job
    message = {
        Doom.CRASHED: f"its worker died, or lost it, {lease.crashes} times while it ran",
        Doom.EXPIRED: "it was not started before it expired",
        Doom.DELIVERIES: f"it was delivered {lease.deliveries} times",
    }[doom]
    return _failed(lease, Failure(reason=doom.value, message=message))


def _failed(lease: Lease, failure: Failure) -> Refusal:
    return Refusal(Fail(lease, failure), failure)

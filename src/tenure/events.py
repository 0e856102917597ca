"""Events: what happened, told to observers that cannot change it.

An observer never decides or changes an outcome. One that fails is reported to the log and contained.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from tenure.queue import Failure, Lease

logger: logging.Logger = logging.getLogger("tenure.events")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The root of all events."""


class JobPushed(Event, frozen=True, kw_only=True):
    """A push was answered; ``held`` when a job with this id existed, for a unique job the one that has its place."""

    queue: str
    id: str
    name: str
    held: bool


class PushFailed(Event, frozen=True, kw_only=True):
    """A job that was to follow a commit (``after_commit=``) is not known to be stored; the transaction stands."""

    queue: str
    id: str
    name: str
    error: str
    """The kind of the error; the log says more."""


class AttemptEvent(Event, frozen=True, kw_only=True):
    """Something about one attempt of one job."""

    lease: Lease
    name: str
    """The job's name; empty when its record could not be read."""


class AttemptStarted(AttemptEvent, frozen=True, kw_only=True):
    """A handler is about to run."""


class AttemptEnded(AttemptEvent, frozen=True, kw_only=True):
    """The store has taken the outcome of an attempt: one of the kinds below."""

    seconds: float = 0.0
    """How long its handler ran; 0 when it did not."""


class JobSucceeded(AttemptEnded, frozen=True, kw_only=True):
    """The store has taken the acknowledgement."""


class JobReleased(AttemptEnded, frozen=True, kw_only=True):
    """The store has taken the job back for another attempt."""

    delay: float
    free: bool
    failure: Failure | None


class JobFailed(AttemptEnded, frozen=True, kw_only=True):
    """The job is in the failed store."""

    failure: Failure


class JobDiscarded(AttemptEnded, frozen=True, kw_only=True):
    """The handler discarded the job."""


class JobCancelled(AttemptEnded, frozen=True, kw_only=True):
    """A release found a cancel request: the job is gone."""


class JobSetAside(AttemptEnded, frozen=True, kw_only=True):
    """The record cannot be read; it is in the unreadable store, byte for byte."""

    reason: str


class LeaseLost(AttemptEvent, frozen=True, kw_only=True):
    """Another worker may have the job: its handler here was told to stop, and its outcome will be refused."""


class SettlementLost(AttemptEvent, frozen=True, kw_only=True):
    """The outcome was not taken: the lease was stale. The job runs, or has run, elsewhere."""

    settlement: str
    """The kind of settlement: ``Ack``, ``Release``, ``Fail``, ``Drop`` or ``SetAside``."""


class WorkerStarted(Event, frozen=True, kw_only=True):
    """A worker begins to claim."""

    queues: tuple[str, ...]
    concurrency: int


class WorkerStopped(Event, frozen=True, kw_only=True):
    """A worker has stopped."""

    reason: str


class RenewalFailed(Event, frozen=True, kw_only=True):
    """A renewal could not be made; it is tried again."""

    error: str
    leases: int


E = TypeVar("E", bound=Event)


class Events:
    """The observers of one application."""

    def __init__(self) -> None:
        self._observers: dict[type[Event], list[Callable[..., object]]] = {}

    def on(self, kind: type[E], observer: Callable[[E], object]) -> Callable[[], None]:
        """Call ``observer`` with each event of this kind or a kind derived from it; return what takes it off again.

        Observers run in the worker's own thread, one after another: keep them short.
        """
        entry = self._observers.setdefault(kind, [])
        entry.append(observer)

        def off() -> None:
            if observer in entry:
                entry.remove(observer)

        return off

    def wants(self, kind: type[Event]) -> bool:
        """Tell whether anybody observes this kind, so that nobody builds an event for nothing."""
        return any(self._observers.get(base) for base in kind.__mro__)

    def emit(self, event: Event) -> None:
        """Tell all observers. Never raises."""
        for kind in type(event).__mro__:
            for observer in tuple(self._observers.get(kind, ())):
                try:
                    observer(event)
                except Exception as error:  # noqa: BLE001 - contained: observers never change an outcome
                    logger.warning("an observer of %s failed: %s", type(event).__name__, type(error).__name__)

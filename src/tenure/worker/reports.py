"""What a worker tells the world: one log line and one event for each thing that happened, in one place.

A line names the job and its id, never an argument and never an exception's text (P12): that is in the failed store.
"""

import logging
from collections.abc import Sequence

from tenure.events import (
    AttemptStarted,
    Event,
    Events,
    JobCancelled,
    JobDiscarded,
    JobFailed,
    JobReleased,
    JobSetAside,
    JobSucceeded,
    LeaseLost,
    RenewalFailed,
    SettlementLost,
    WorkerStarted,
    WorkerStopped,
)
from tenure.naming import shown
from tenure.queue import Ack, Aside, Drop, Fail, Failure, Release, SetAside, Settled, Settlement
from tenure.worker.held import Held, Stop

logger: logging.Logger = logging.getLogger("tenure.worker")

_WHY = {
    Stop.TIMEOUT: "its time is over",
    Stop.CANCELLED: "its cancellation was requested",
    Stop.SHUTDOWN: "the worker is stopping",
    Stop.LAPSED: "its lease could not be renewed in time",
    Stop.LOST: "its lease is lost",
}


class Reports:
    """Log lines and events of one worker. Everything here runs in the worker's own thread."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def quiet(self, *kinds: type[Event]) -> bool:
        """Tell whether nobody wants to hear of these kinds, nor of single jobs at all."""
        return not logger.isEnabledFor(logging.DEBUG) and not any(self._events.wants(kind) for kind in kinds)

    # ------------------------------------------------------------------------------------------------------ the worker

    def worker_started(self, queues: Sequence[str], concurrency: int, lease: float) -> None:
        """It begins to claim."""
        logger.info("worker started: queues %s, concurrency %d, lease %g s", ", ".join(queues), concurrency, lease)
        self._emit(WorkerStarted(queues=tuple(queues), concurrency=concurrency))

    def worker_stopped(self, reason: str, jobs: int) -> None:
        """It has stopped."""
        logger.info("worker stopped: %s, %d jobs", reason, jobs)
        self._emit(WorkerStopped(reason=reason))

    def renewal_failed(self, error: str, leases: int) -> None:
        """A renewal could not be made; said once an outage."""
        self._emit(RenewalFailed(error=error, leases=leases))

    def unreadable(self, asides: Sequence[Aside]) -> None:
        """A claim found records that the store itself cannot read, and set them aside."""
        for aside in asides:
            logger.warning("job %s of queue %s cannot be read and was set aside", safe_name(aside.id), aside.queue)

    # ------------------------------------------------------------------------------------------------------ an attempt

    def started(self, held: Held) -> None:
        """Its handler is about to run."""
        lease = held.lease
        logger.debug("job %s (%s) started, attempt %d", lease.id, held.name, lease.attempt)
        if self._events.wants(AttemptStarted):
            self._emit(AttemptStarted(lease=lease, name=held.name))

    def stopping(self, held: Held, why: Stop) -> None:
        """Its handler was told to stop."""
        logger.warning("job %s (%s) was told to stop: %s", held.lease.id, held.name, _WHY[why])
        if why in {Stop.LOST, Stop.LAPSED}:
            self._emit(LeaseLost(lease=held.lease, name=held.name))

    def abandoned(self, held: Held, grace: float) -> None:
        """Its handler did not stop: its slot is free, what it does from now on is ignored."""
        logger.error(
            "job %s (%s) did not stop within %g s and was abandoned; its late outcome will be ignored",
            held.lease.id, held.name, grace,
        )  # fmt: skip

    def late(self, held: Held) -> None:
        """An abandoned handler has ended after all."""
        logger.warning("abandoned job %s (%s) has ended: its outcome is ignored", held.lease.id, held.name)

    def unsettled(self, count: int) -> None:
        """The worker ends with outcomes that the store has not taken."""
        logger.error("%d outcomes could not be stored: their jobs will be redelivered when the leases lapse", count)

    # ------------------------------------------------------------------------------------------------------- an answer

    def settled(self, held: Held, settlement: Settlement, answer: Settled, failure: Failure | None) -> None:
        """The store has answered for its outcome."""
        if answer is Settled.STALE:
            kind = type(settlement).__name__
            logger.warning(
                "the outcome (%s) of job %s (%s) was not taken: its lease was stale, it runs or has run elsewhere",
                kind, held.lease.id, held.name,
            )  # fmt: skip
            self._emit(SettlementLost(lease=held.lease, name=held.name, settlement=kind))
        elif answer is Settled.CANCELLED:
            logger.info("job %s (%s) was cancelled", held.lease.id, held.name)
            self._emit(JobCancelled(lease=held.lease, name=held.name))
        else:
            self._done(held, settlement, failure)

    def outcome_unknown(self, held: Held) -> None:
        """The answer to its settlement was lost, and its lease is stale now: it was taken then, or not at all."""
        logger.warning(
            "the answer for job %s (%s) was lost: it is settled, or runs or has run elsewhere", held.lease.id, held.name
        )

    def _done(self, held: Held, settlement: Settlement, failure: Failure | None) -> None:
        lease, name = held.lease, held.name
        match settlement:
            case Ack():
                logger.debug("job %s (%s) done in %.3f s", lease.id, name, held.seconds)
                self._emit(JobSucceeded(lease=lease, name=name, seconds=held.seconds))
            case Release(delay=delay, free=free):
                if failure is None:
                    logger.debug("job %s (%s) given back for %.1f s, free: %s", lease.id, name, delay, free)
                else:
                    logger.info(
                        "job %s (%s) failed on attempt %d (%s), again in %.1f s",
                        lease.id, name, lease.attempt, _cause(failure), delay,
                    )  # fmt: skip
                self._emit(JobReleased(lease=lease, name=name, delay=delay, free=free, failure=failure))
            case Fail(failure=final):
                logger.warning(
                    "job %s (%s) failed for good on attempt %d (%s)", lease.id, name, lease.attempt, _cause(final)
                )
                self._emit(JobFailed(lease=lease, name=name, failure=final))
            case Drop():
                logger.info("job %s (%s) discarded by its handler", lease.id, name)
                self._emit(JobDiscarded(lease=lease, name=name))
            case SetAside(reason=reason):
                logger.warning("job %s of queue %s cannot be read and was set aside: %s", lease.id, lease.queue, reason)
                self._emit(JobSetAside(lease=lease, name=name, reason=reason))

    def _emit(self, event: Event) -> None:
        if self._events.wants(type(event)):
            self._events.emit(event)


def safe_name(name: str) -> str:
    """Return a job's name that came out of a store, fit for a log line."""
    return name if name.isascii() and name.isprintable() and len(name) <= 255 else shown(name)


def _cause(failure: Failure) -> str:
    return f"{failure.reason}: {failure.type}" if failure.type else failure.reason

"""What a worker tells the world: one log line and one event for each thing that happened, in one place.

A line names the job and its id, never an argument and never an exception's text (P12): that is in the failed store.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from tenure.correlation import META
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

NAMED: Final = 5
"""How many jobs a line names that is about many."""


class Reports:
    """Log lines and events of one worker. Everything here runs in the worker's own thread, in its loop."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._stopping: dict[Stop, list[Held]] = {}

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
        logger.debug("job %s (%s) started, attempt %d", lease.id, held.name, lease.attempt, extra=_about(held))
        if self._events.wants(AttemptStarted):
            self._emit(AttemptStarted(lease=lease, name=held.name))

    def stopping(self, held: Held, why: Stop) -> None:
        """Its handler was told to stop."""
        if why not in {Stop.LOST, Stop.LAPSED}:
            logger.warning("job %s (%s) was told to stop: %s", held.lease.id, held.name, _WHY[why], extra=_about(held))
            return
        # An outage takes many leases in one moment: one line tells of all.
        if not self._stopping.setdefault(why, []):
            asyncio.get_running_loop().call_soon(self._say_stopping, why)
        self._stopping[why].append(held)
        self._emit(LeaseLost(lease=held.lease, name=held.name))

    def _say_stopping(self, why: Stop) -> None:
        stopped = self._stopping.pop(why)
        if len(stopped) == 1:
            [held] = stopped
            logger.warning("job %s (%s) was told to stop: %s", held.lease.id, held.name, _WHY[why], extra=_about(held))
        else:
            logger.warning("%d jobs were told to stop: %s; %s", len(stopped), _WHY[why], _ids(stopped))

    def abandoned(self, held: Held, grace: float, number: int) -> None:
        """Its handler did not stop: its slot is free, what it does from now on is ignored."""
        logger.error(
            "job %s (%s) did not stop within %g s and was abandoned; its late outcome will be ignored; "
            "abandoned handlers that still run: %d",
            held.lease.id, held.name, grace, number, extra=_about(held),
        )  # fmt: skip

    def unkept(self, held: Held, problem: str) -> None:
        """Its handler has done its work, and what it returned cannot be kept."""
        logger.warning(
            "job %s (%s) is done, but its result is not kept: %s", held.lease.id, held.name, problem, extra=_about(held)
        )

    def after_commit(self, held: Held, error: BaseException) -> None:
        """Its handler has raised behind a block that acknowledged the job: it is done all the same."""
        logger.error(
            "job %s (%s) is done: its transaction is committed, and it is not retried because of %s, raised afterwards",
            held.lease.id, held.name, type(error).__name__, extra=_about(held),
        )  # fmt: skip

    def late(self, held: Held) -> None:
        """An abandoned handler has ended after all."""
        logger.warning(
            "abandoned job %s (%s) has ended: its outcome is ignored", held.lease.id, held.name, extra=_about(held)
        )

    def unsettled(self, count: int) -> None:
        """The worker ends with outcomes that the store has not taken."""
        logger.error("%d outcomes could not be stored: their jobs will be redelivered when the leases lapse", count)

    # ------------------------------------------------------------------------------------------------------- an answer

    def settled(self, held: Held, settlement: Settlement, answer: Settled, failure: Failure | None) -> None:
        """The store has answered for its outcome."""
        if answer is Settled.CANCELLED:
            logger.info("job %s (%s) was cancelled", held.lease.id, held.name, extra=_about(held))
            self._emit(JobCancelled(lease=held.lease, name=held.name, seconds=held.seconds))
        else:
            self._done(held, settlement, failure)

    def stale(self, lost: Sequence[tuple[Held, Settlement]]) -> None:
        """The store has refused outcomes, all in one answer: their leases were stale."""
        if len(lost) == 1:
            [(held, settlement)] = lost
            logger.warning(
                "the outcome (%s) of job %s (%s) was not taken: its lease was stale, it runs or has run elsewhere",
                type(settlement).__name__, held.lease.id, held.name, extra=_about(held),
            )  # fmt: skip
        elif lost:
            logger.warning(
                "the outcomes of %d jobs were not taken: their leases were stale, they run or have run elsewhere; %s",
                len(lost), _ids([held for held, _ in lost]),
            )  # fmt: skip
        for held, settlement in lost:
            self._emit(SettlementLost(lease=held.lease, name=held.name, settlement=type(settlement).__name__))

    def outcomes_unknown(self, helds: Sequence[Held]) -> None:
        """The answer to settlements was lost, and their leases are stale now: they were taken then, or not at all."""
        if len(helds) == 1:
            logger.warning(
                "the answer for job %s (%s) was lost: it is settled, or runs or has run elsewhere",
                helds[0].lease.id, helds[0].name, extra=_about(helds[0]),
            )  # fmt: skip
        elif helds:
            logger.warning(
                "the answer for %d jobs was lost: they are settled, or run or have run elsewhere; %s",
                len(helds), _ids(helds),
            )  # fmt: skip

    def _done(self, held: Held, settlement: Settlement, failure: Failure | None) -> None:
        lease, name, seconds, about = held.lease, held.name, held.seconds, _about(held)
        match settlement:
            case Ack():
                logger.debug("job %s (%s) done in %.3f s", lease.id, name, seconds, extra=about)
                self._emit(JobSucceeded(lease=lease, name=name, seconds=seconds))
            case Release(delay=delay, free=free):
                if failure is None:
                    logger.debug(
                        "job %s (%s) given back for %.1f s, free: %s", lease.id, name, delay, free, extra=about
                    )
                elif settlement.crashed:
                    logger.warning(
                        "job %s (%s) %s on attempt %d", lease.id, name, _cause(failure), lease.attempt, extra=about
                    )
                else:
                    logger.info(
                        "job %s (%s) failed on attempt %d (%s), again in %.1f s",
                        lease.id, name, lease.attempt, _cause(failure), delay, extra=about,
                    )  # fmt: skip
                self._emit(
                    JobReleased(lease=lease, name=name, seconds=seconds, delay=delay, free=free, failure=failure)
                )
            case Fail(failure=final):
                logger.warning(
                    "job %s (%s) failed for good on attempt %d (%s)",
                    lease.id, name, lease.attempt, _cause(final), extra=about,
                )  # fmt: skip
                self._emit(JobFailed(lease=lease, name=name, seconds=seconds, failure=final))
            case Drop():
                logger.info("job %s (%s) discarded by its handler", lease.id, name, extra=about)
                self._emit(JobDiscarded(lease=lease, name=name, seconds=seconds))
            case SetAside(reason=reason):
                logger.warning("job %s of queue %s cannot be read and was set aside: %s", lease.id, lease.queue, reason)
                self._emit(JobSetAside(lease=lease, name=name, reason=reason))

    def _emit(self, event: Event) -> None:
        if self._events.wants(type(event)):
            self._events.emit(event)


def safe_name(name: str) -> str:
    """Return a job's name that came out of a store, fit for a log line."""
    return name if name.isascii() and name.isprintable() and len(name) <= 255 else shown(name)


def _about(held: Held) -> dict[str, str] | None:
    """Return what a line about one job says besides, as fields of the record."""
    return None if held.correlation is None else {META: held.correlation}


def _ids(helds: Sequence[Held]) -> str:
    named = ", ".join(held.lease.id for held in helds[:NAMED])
    return f"{named} and others" if len(helds) > NAMED else named


def _cause(failure: Failure) -> str:
    if failure.reason == "crashed":
        return f"crashed: {failure.message}"  # which is our own: a signal, or a number
    return f"{failure.reason}: {failure.type}" if failure.type else failure.reason

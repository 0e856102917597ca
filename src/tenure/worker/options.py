"""What a worker is told when it starts, checked before it opens anything."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from tenure.errors import InvalidOption
from tenure.naming import check_holder, check_queue

CANCEL_GRACE: Final = 5.0
"""Seconds that a handler has to end after it was told to, before it is abandoned."""
DRAIN_GRACE: Final = 1.5
"""The same at the end of a drain: what still runs then was already given the whole drain time."""
STALL_TIMEOUT: Final = 120.0
UNKNOWN_LIMIT: Final = 12 * 3600.0
"""Seconds for which an unknown job is handed back, before it fails as ``unknown-job`` (P11)."""

MOST_WEIGHT: Final = 1000


class ExitReason(StrEnum):
    """Why a worker stopped."""

    COMPLETED = "completed"
    """``once``: the one job is settled."""
    EMPTY = "empty"
    """``stop_when_empty``, or ``once`` on an empty queue: nothing was ready."""
    MAX_JOBS = "max_jobs"
    MAX_TIME = "max_time"
    MEMORY = "memory"
    """It has more memory in use than it may."""
    RESTART = "restart"
    """Somebody asked all workers to (``tenure restart``), for their supervisor to replace them."""
    SHUTDOWN = "shutdown"
    """It was asked to: a signal, or ``Worker.stop()``."""
    ERROR = "error"
    """A defect ended it; the log has the traceback."""


class Ended(NamedTuple):
    """How a worker process ended."""

    reason: ExitReason
    forced: bool = False
    """It was told to stop a second time: what still ran was given back at once."""


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one worker process. Times are seconds."""

    queues: tuple[str, ...] | None = None
    """Strict order: a queue is looked at when those before it are empty. None: every registered job's queue, and
    the application's default queue."""
    weights: Mapping[str, int] | None = None
    """Shares instead of strict order: a whole number from 1 to 1,000 for each of ``queues``."""
    concurrency: int = 50
    """Jobs that run at the same time, of all executors together."""
    connection: str = "default"
    holder: str | None = None
    """The name under which it claims, for whoever gives its leases back when it has died; None: a random one."""
    tries: int = 3
    """Attempts of a job that has no ``max_attempts`` of its own; 0 is no limit but that of deliveries (1,000)."""
    backoff: float | None = None
    """Fixed delay between attempts of a job that has no backoff of its own; None: exponential with full jitter."""
    timeout: float | None = None
    """Limit of an attempt of a job that has none of its own; None: no limit."""
    lease: float | None = None
    """Length of a lease; None: the connection's ``QUEUE_VISIBILITY_TIMEOUT_SECONDS``."""
    sleep: float | None = None
    """The longest that one idle claim waits; None: the connection's ``QUEUE_POLL_TIMEOUT``, else 1 second."""
    once: bool = False
    stop_when_empty: bool = False
    max_jobs: int | None = None
    max_time: float | None = None
    memory: int | None = None
    """Bytes of resident memory; looked at each second."""
    restarts: bool = True
    """Whether a request to restart (``tenure restart``) ends it."""
    drain_timeout: float = 25.0
    """How long running jobs may go on after a signal."""
    cancel_grace: float = CANCEL_GRACE
    stall_timeout: float = STALL_TIMEOUT
    """How long claims, settlements or renewals that are due may stand still before the worker ends with an error."""
    unknown_limit: float = UNKNOWN_LIMIT
    prepare: tuple[str, ...] = ()
    """What a child process of ``executor="process"`` calls before it imports the application: a function, as
    ``module:function``, and its arguments. For what a program does before it calls ``run_worker``: its logging, say."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, naming the option."""
        for queue in self.queues or ():
            check_queue(queue)
        if self.queues is not None and len(set(self.queues)) != len(self.queues):
            raise InvalidOption("queues names a queue twice")
        if self.queues == ():
            raise InvalidOption("queues names no queue")
        if self.holder is not None:
            check_holder(self.holder)
        _shares(self.queues, self.weights)
        _whole("concurrency", self.concurrency, least=1)
        _whole("tries", self.tries, least=0)
        _whole("max_jobs", self.max_jobs, least=1)
        _whole("memory", self.memory, least=1)
        for name, zero in (
            ("backoff", True), ("timeout", False), ("lease", False), ("sleep", False), ("max_time", False),
            ("drain_timeout", True), ("cancel_grace", True), ("stall_timeout", False), ("unknown_limit", True),
        ):  # fmt: skip
            _seconds(name, getattr(self, name), zero=zero)


def _shares(queues: tuple[str, ...] | None, weights: Mapping[str, int] | None) -> None:
    if weights is None:
        return
    if set(weights) != set(queues or ()):
        raise InvalidOption("weights must have one for each of queues, and no other")
    for queue, weight in weights.items():
        _whole(f"the weight of queue {queue}", weight, least=1)
        if weight > MOST_WEIGHT:
            raise InvalidOption(f"the weight of queue {queue} must be at most {MOST_WEIGHT}")


def _whole(name: str, value: object, *, least: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidOption(f"{name} must be a whole number of at least {least}")


def _seconds(name: str, value: object, *, zero: bool) -> None:
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # Written so that NaN, which is neither above nor below anything, is refused as well.
    if not (number and math.isfinite(value) and (value > 0 or (zero and value == 0))):  # type: ignore[arg-type,operator]
        raise InvalidOption(f"{name} must be a finite number of seconds, {'at least' if zero else 'above'} 0")

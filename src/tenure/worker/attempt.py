"""One attempt: a lease goes in, an outcome comes out, and something else stores it.

Whatever a handler does ends here as a settlement: it returns, raises (``SystemExit`` and ``KeyboardInterrupt``
included), cancels itself, or does not stop when told to. Our own cancellations are noted before they are made, so that
a handler's ``TimeoutError`` or ``CancelledError`` is never mistaken for them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from functools import partial
from typing import Any

import msgspec

from tenure.context import Adds, Current
from tenure.correlation import carried_id
from tenure.definition import Executor
from tenure.effects import Effects
from tenure.errors import OutcomeUnknown
from tenure.events import AttemptStarted
from tenure.queue import Ack, Failure, Lease, Release, Settlement
from tenure.results import Progress
from tenure.surroundings import CallNext, Middleware
from tenure.worker import decide
from tenure.worker.executors import Threads
from tenure.worker.held import Held, HeldLeases, Stage, Stop
from tenure.worker.opening import Opening, Refusal
from tenure.worker.processes.pool import Processes
from tenure.worker.processes.talk import value_of
from tenure.worker.reports import Reports
from tenure.worker.returned import acknowledged
from tenure.worker.scope import Scopes
from tenure.worker.work import Work

LEASE_MARGIN = 10.0
"""Seconds past an attempt's timeout and grace for which its lease is still renewed, to settle it in."""

NOTICE = 0.5
"""Seconds between telling a handler in a process that its job was cancelled, and killing the process."""
MOST_ABANDONED = 100
"""Abandoned handlers that a worker lives with. Each holds a thread or a task, and nothing ends them but its own end."""


class TooManyAbandoned(Exception):
    """Handlers that ignore their end have piled up."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What attempts of one worker run in and report to."""

    opening: Opening
    scopes: Scopes
    threads: Threads
    processes: Processes
    middleware: Sequence[Middleware]
    leases: HeldLeases
    reports: Reports
    settle: Callable[[Held, Settlement, Failure | None, float], None]
    freed: Callable[[], None]
    """A slot is free again."""
    broke: Callable[[BaseException], None]
    """A defect of this worker."""
    grace: float
    progress: Callable[[Lease, Progress], None]
    """Takes what handlers tell of their progress, from any thread."""
    max_result_bytes: int
    queue: object
    """The driver, as handlers' transactions take it."""
    connection: str
    """Its name."""
    batches: Callable[[Lease], Adds]
    """Adds to the batch of a running job."""


class Attempts:
    """Runs leases as jobs, each to its outcome."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._in = surroundings
        self._loop = asyncio.get_running_loop()
        self._grace = surroundings.grace
        self._abandoned: set[asyncio.Task[None]] = set()
        """Held here, because the event loop holds its tasks only weakly."""
        self._observed = True
        self._calls: dict[Executor, Callable[[Held, Work], Awaitable[Any]]] = {
            "async": self._on_the_loop,
            "thread": self._in_a_thread,
            "process": self._in_a_process,
        }

    def look_for_observers(self) -> None:
        """Find out, once a batch, whether anybody wants to hear of each start."""
        self._observed = not self._in.reports.quiet(AttemptStarted)

    def start(self, held: Held) -> bool:
        """Run the lease's job; False when its outcome is known without running it, so that it takes no slot."""
        held.name, work = self._in.opening.open(held.lease)
        now = time.monotonic()
        if isinstance(work, Refusal):
            self._in.settle(held, work.settlement, work.failure, now)
            return False
        held.work = work
        current = Current(
            held.lease,
            name=held.name,
            max_attempts=work.max_attempts,
            meta=work.meta,
            stop=held.flag,
            report=self._in.progress,
            attempt=held,
            queue=self._in.queue,
            connection=self._in.connection,
            batches=self._in.batches,
        )
        held.correlation = carried_id(work.meta)
        held.enter(Stage.RUNNING, now)
        if self._observed:
            self._in.reports.started(held)
        if work.route.plain and not self._in.middleware:
            body = self._plain(held, work, current)
        else:
            body = self._surrounded(held, work, current)
        # An empty context: nothing of the worker's, of its start or of another job is seen by this one.
        held.task = self._loop.create_task(body, context=Context())
        if work.route.definition.executor != "process":
            self._limit(held, work, now)
        return True

    def _limit(self, held: Held, work: Work, now: float) -> None:
        """Let the time of an attempt begin."""
        if work.timeout is not None and held.stop is None:
            held.renew_until = now + work.timeout + self._grace + LEASE_MARGIN
            held.timer = self._loop.call_later(work.timeout, self.stop, held, Stop.TIMEOUT)

    def _overdue(self, held: Held) -> bool:
        until = held.renew_until
        return until is not None and time.monotonic() > until - self._grace - LEASE_MARGIN

    def stop(self, held: Held, why: Stop, grace: float | None = None) -> None:
        """Tell a running handler to stop, and abandon it when it does not within the grace.

        The first reason counts, but a lost lease is lost whatever else was wrong.
        """
        if held.stage is not Stage.RUNNING or held.stop in {why, Stop.LOST}:
            return
        first = held.stop is None
        if not first and why is not Stop.LOST and why is not Stop.SHUTDOWN:
            return
        if first or why is Stop.LOST:
            held.stop = why
            self._in.reports.stopping(held, why)
        held.tell()
        if held.timer is not None:
            held.timer.cancel()
        seconds = self._grace if grace is None else grace
        held.timer = self._loop.call_later(seconds, self.abandon, held, seconds)
        if first and held.task is not None:
            # A task that is cancelled before its first step never runs a line: then the callback ends the attempt.
            held.task.add_done_callback(partial(self._gone, held))
            held.task.cancel()

    def abandon(self, held: Held, grace: float) -> None:
        """Take the outcome of a handler that does not stop, and its slot, without it."""
        if held.stage is not Stage.RUNNING:
            return
        held.abandoned = True
        if held.task is not None:
            self._abandoned.add(held.task)
            held.task.add_done_callback(self._abandoned.discard)
        self._in.reports.abandoned(held, grace, len(self._abandoned))
        self._finished(held, None)
        if len(self._abandoned) > MOST_ABANDONED:
            self._in.broke(TooManyAbandoned(f"more than {MOST_ABANDONED} abandoned handlers still run in this worker"))

    # ---------------------------------------------------------------------------------------------- inside the task

    async def _plain(self, held: Held, work: Work, current: Current) -> None:
        error: BaseException | None = None
        value: Any = None
        try:
            with current.enter():
                value = await work.function(*work.args, **work.kwargs)
        except BaseException as raised:  # noqa: BLE001 - asyncio would let SystemExit end the worker
            error = raised
        self._ended(held, error, value)

    async def _surrounded(self, held: Held, work: Work, current: Current) -> None:
        error: BaseException | None = None
        value: Any = None
        try:
            call: CallNext = partial(self._calls[work.route.definition.executor], held, work)
            for layer in reversed(self._in.middleware):
                call = partial(layer, current, call)
            with current.enter():
                value = await call()
        except BaseException as raised:  # noqa: BLE001 - as above
            error = raised
        self._ended(held, error, value)

    async def _on_the_loop(self, _: Held, work: Work) -> Any:
        if not work.route.injected:
            return await work.function(*work.args, **work.kwargs)
        async with self._in.scopes.on_the_loop(work.route.injected) as services:
            return await work.function(*work.args, **work.kwargs, **services)

    async def _in_a_thread(self, _: Held, work: Work) -> Any:
        if not work.route.injected:
            return await self._in.threads.run(partial(work.function, *work.args, **work.kwargs))
        return await self._in.threads.run(partial(_with_services, self._in.scopes, work))

    async def _in_a_process(self, held: Held, work: Work) -> Any:
        definition = work.route.definition
        answer = await self._in.processes.run(
            held.lease,
            definition.name,
            work.max_attempts,
            # Not before: waiting for a process is no part of the handler's time.
            began=lambda: self._limit(held, work, time.monotonic()),
            notice=lambda: min(NOTICE, self._grace / 2) if held.stop is Stop.CANCELLED else 0.0,
            told=partial(self._in.progress, held.lease),
        )
        if answer.seen:
            held.flag.look()
        return value_of(answer, definition.restore)

    # -------------------------------------------------------------------------------------------------- its outcome

    def _ended(self, held: Held, error: BaseException | None, value: Any = None) -> None:
        try:
            if held.abandoned:
                self._in.reports.late(held)
                return
            if held.stop is None and self._overdue(held):
                held.stop = Stop.TIMEOUT  # it kept the loop from telling it, and what it came to is late all the same
            if error is None and held.stop is None and not held.flag.seen and held.effects is Effects.NONE:
                self._returned(held, value)
            else:
                self._finished(held, error, value)
        except BaseException as defect:  # noqa: BLE001 - nobody awaits this task: unheard, the slot would be lost
            self._in.broke(defect)

    def _gone(self, held: Held, _: asyncio.Task[None]) -> None:
        if held.stage is Stage.RUNNING:
            self._ended(held, asyncio.CancelledError())

    def _returned(self, held: Held, value: Any) -> None:
        limit = self._in.max_result_bytes
        self._outcome(held, *acknowledged(held, value, max_bytes=limit, reports=self._in.reports))

    def _finished(self, held: Held, error: BaseException | None, value: Any = None) -> None:
        """Judge an attempt that raised, was told to stop or was abandoned, and hand in its outcome."""
        stop = held.stop
        if held.effects is Effects.DONE:
            if error is not None:
                self._in.reports.after_commit(held, error)
            self._outcome(held, Ack(held.lease), None)
            return
        if held.effects is Effects.UNKNOWN and (error is None or decide.is_decision(error)):
            error = OutcomeUnknown("the COMMIT of its transaction failed; where it was not done, the attempt failed")
        if stop is Stop.LOST:
            held.enter(Stage.ENDED, time.monotonic())
            self._in.leases.remove(held)
            self._release_slot(held)
        elif stop is Stop.TIMEOUT:
            # Whatever it returned or raised after its time was over: too late.
            self._outcome(held, *self._timed_out(held))
        elif error is None and not held.abandoned and not held.flag.seen:
            self._returned(held, value)
        elif error is not None and (stop is None or decide.is_decision(error)):
            self._outcome(held, *self._failed(held, error))
        elif stop is Stop.CANCELLED:
            self._outcome(held, Release(held.lease), None)  # finds the request, and removes the job
        else:
            self._outcome(held, Release(held.lease, free=True), None)

    def _failed(self, held: Held, error: BaseException) -> tuple[Settlement, Failure | None]:
        work = held.work
        assert work is not None
        policies = work.route.definition.policies
        return decide.after_error(
            held.lease, error, max_attempts=work.max_attempts, backoff=work.backoff, policies=policies
        )

    def _timed_out(self, held: Held) -> tuple[Settlement, Failure]:
        assert held.work is not None
        failure = Failure(reason="timeout", message=f"it ran longer than its timeout of {held.work.timeout:g} s")
        return decide.after_failure(held.lease, failure, max_attempts=held.work.max_attempts, backoff=held.work.backoff)

    def _outcome(self, held: Held, settlement: Settlement, failure: Failure | None) -> None:
        now = time.monotonic()
        held.seconds = now - held.since
        self._in.settle(held, settlement, failure, now)
        self._release_slot(held)

    def _release_slot(self, held: Held) -> None:
        if held.timer is not None:
            held.timer.cancel()
            held.timer = None
        # What an observer keeps of a lease must not keep the handler's arguments alive.
        held.task = held.work = None
        self._in.freed()


def _with_services(scopes: Scopes, work: Work) -> Any:
    with scopes.in_a_thread(work.route.injected) as services:
        return work.function(*work.args, **work.kwargs, **services)

"""Pushing: from a call to what a driver takes, and from what it answers to a handle."""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from tenure.call import Call
from tenure.clock import Clock
from tenure.config import DEFAULT
from tenure.connections import Connection, Connections
from tenure.correlation import with_id
from tenure.drivers.sync import Ran
from tenure.envelope import VERSION, Envelope, encode
from tenure.errors import (
    DurabilityNotReached,
    InvalidOption,
    NotRegistered,
    NotSupported,
    OutcomeUnknown,
    PushIncomplete,
    Refused,
    StoreError,
)
from tenure.events import Events, JobPushed
from tenure.handle import JobHandle, Kept
from tenure.lookout import Lookout
from tenure.naming import new_job_id
from tenure.options import JobDefaults, Options
from tenure.queue import Push, Pushed, PushOutcome
from tenure.registry import DEFAULT_QUEUE, Registry
from tenure.routes import Prepared, Promised, Route, Routes
from tenure.tracing import Departure, Tracing, departing, travelling
from tenure.uniqueness import unique_text

R = TypeVar("R")

CHUNK: Final = 500
"""Jobs of a bulk push that are prepared and sent together: as many as one call to a store carries."""


class Dispatcher:
    """Pushes the calls of one application."""

    def __init__(
        self,
        registry: Registry,
        connections: Connections,
        events: Events,
        lookout: Lookout,
        clock: Clock,
        tracing: Callable[[], Tracing | None],
    ) -> None:
        self._registry = registry
        self._connections = connections
        self._events = events
        self._lookout = lookout
        self._clock = clock
        self._tracing = tracing
        self._routes = Routes(events, self._tell)

    async def push(self, call: Call[R], /) -> JobHandle[R]:
        """Store a call: see ``Tenure.push``."""
        with departing(self._tracing()) as departure:
            prepared = self._prepare(call, departure)
            [outcome] = await prepared.route.push([prepared])
            return self._stored(prepared, outcome)

    def push_sync(self, call: Call[R], /) -> JobHandle[R]:
        """Store a call over a blocking connection."""
        with departing(self._tracing()) as departure:
            prepared = self._prepare(call, departure)
            [outcome] = prepared.route.push_sync([prepared])
            return self._stored(prepared, outcome)

    async def push_many(self, calls: Iterable[Call[R]]) -> list[JobHandle[R]]:
        """Store many calls: see ``Tenure.push_many``."""
        bulk = _Bulk()
        with departing(self._tracing()) as departure:
            for chunk in self._chunks(calls, bulk, departure):
                for route, part in _runs(chunk):
                    try:
                        bulk.took(part, await route.push(part))
                    except (StoreError, NotSupported) as error:
                        bulk.failed(part, error)
                    bulk.check(chunk)
                await asyncio.sleep(0)  # preparing holds the loop: others get their turn between two chunks
        return [self._handle(prepared, outcome) for prepared, outcome in bulk.done]

    def push_many_sync(self, calls: Iterable[Call[R]]) -> list[JobHandle[R]]:
        """Store many calls over a blocking connection."""
        bulk = _Bulk()
        with departing(self._tracing()) as departure:
            for chunk in self._chunks(calls, bulk, departure):
                for route, part in _runs(chunk):
                    try:
                        bulk.took(part, route.push_sync(part))
                    except (StoreError, NotSupported) as error:
                        bulk.failed(part, error)
                    bulk.check(chunk)
        return [self._handle(prepared, outcome) for prepared, outcome in bulk.done]

    # ------------------------------------------------------------------------------------------------------- preparing

    def _prepare(self, call: Call[Any], departure: Departure) -> Prepared:
        definition = call.definition
        if self._registry.get(definition.name) is not definition:
            raise NotRegistered(f"the job {definition.name!r} belongs to another application; nothing was sent")
        options, below = call.overrides, definition.options
        connection = self._connections.get(options.connection or below.connection or DEFAULT)
        tuning = connection.settings
        priority = options.priority if options.priority is not None else below.priority or 0
        max_attempts = options.max_attempts or below.max_attempts or tuning.max_attempts
        delay, expires_in = self._times(options, below)
        _require(connection, call, priority)
        queue = options.queue or below.queue or DEFAULT_QUEUE
        job_id = options.id or new_job_id()
        envelope = Envelope(
            v=VERSION,
            id=job_id,
            name=definition.name,
            queue=queue,
            args=call.args,
            kwargs=call.kwargs,
            max_attempts=max_attempts,
            priority=priority,
            timeout=options.timeout or below.timeout,
            backoff=options.backoff,
            meta=with_id(travelling(options.meta, departure)),
        )
        push = Push(
            queue=queue,
            id=job_id,
            envelope=encode(envelope, max_bytes=tuning.max_payload_bytes),
            delay=delay,
            priority=priority,
            crash_limit=max_attempts,
            expires_in=expires_in,
            durability=options.durability or below.durability or 1,
            keep=options.result_ttl or below.result_ttl or 0.0,
            unique=unique_text(call),
        )
        departure.carries(push, definition.name)
        return Prepared(connection, push, definition, self._routes.of(connection, options))

    def _times(self, options: Options, below: JobDefaults) -> tuple[float, float | None]:
        delay = options.delay or 0.0
        if options.at is not None:
            delay = max(0.0, options.at - self._clock.time())
        expires_in = options.expires_in or below.expires_in
        if expires_in is not None and expires_in <= delay:
            raise InvalidOption(
                f"the job would expire after {expires_in:g} s, within its delay of {delay:g} s; nothing was sent"
            )
        return delay, expires_in

    def _chunks(self, calls: Iterable[Call[Any]], bulk: "_Bulk", departure: Departure) -> Iterator[list[Prepared]]:
        source = iter(calls)
        while True:
            chunk: list[Prepared] = []
            try:
                for call in itertools.islice(source, CHUNK):
                    chunk.append(self._prepare(call, departure))  # noqa: PERF401 - what was prepared before a refusal is counted
            except Refused as error:
                bulk.refused(len(chunk), error)
            if not chunk:
                return
            yield chunk

    def _stored(self, prepared: Prepared, outcome: Pushed) -> JobHandle[Any]:
        handle = self._handle(prepared, _accepted(outcome))
        if isinstance(outcome.error, DurabilityNotReached):
            raise outcome.error  # the job is there all the same, and was told of
        return handle

    def _handle(self, prepared: Prepared, outcome: Pushed) -> JobHandle[Any]:
        push = prepared.push
        if not isinstance(outcome, Promised):
            self._tell(prepared, outcome)
        return JobHandle(
            self._lookout,
            outcome.id,
            queue=push.queue,
            connection=prepared.connection.name,
            held=outcome.outcome == "held",
            restore=prepared.definition.restore,
            kept=Kept(outcome.value) if isinstance(outcome, Ran) else None,
        )

    def _tell(self, prepared: Prepared, outcome: Pushed) -> None:
        if self._events.wants(JobPushed):
            push, held = prepared.push, outcome.outcome == "held"
            self._events.emit(JobPushed(queue=push.queue, id=outcome.id, name=prepared.definition.name, held=held))


class _Bulk:
    """What became of the jobs of a bulk push so far."""

    def __init__(self) -> None:
        self.done: list[tuple[Prepared, Pushed]] = []
        self._error: Exception | None = None

    def took(self, part: Sequence[Prepared], outcomes: Sequence[Pushed]) -> None:
        """Note a store's answers."""
        self.done.extend(zip(part, outcomes, strict=True))
        short = [outcome for outcome in outcomes if _fell_short(outcome)]
        if short:
            self._error = short[0].error or StoreError("a job was not stored")

    def failed(self, part: Sequence[Prepared], error: StoreError | NotSupported) -> None:
        """Note that a store could not be used: nothing of the part was stored."""
        if not self.done:
            raise error
        unsure: PushOutcome = "unknown" if isinstance(error, OutcomeUnknown) else "refused"
        self.done.extend((prepared, Pushed(prepared.push.id, unsure, error)) for prepared in part)
        self._error = error

    def refused(self, prepared: int, error: Refused) -> None:
        """Note a call that is refused: alone, as long as nothing was sent, so that it is seen as what it is."""
        if not self.done:
            raise error
        number = len(self.done) + prepared + 1
        raise PushIncomplete(
            f"call {number} was refused ({error}); the {len(self.done)} calls of earlier parts are stored, and none "
            "from this part on",
            [outcome for _, outcome in self.done],
        ) from error

    def check(self, chunk: Sequence[Prepared]) -> None:
        """Raise ``PushIncomplete`` when a job of a part is not known to be stored; the rest was not sent."""
        if self._error is None:
            return
        known = {id(prepared) for prepared, _ in self.done}
        error = self._error
        if isinstance(error, DurabilityNotReached):
            error = StoreError("not sent: the jobs before it were not confirmed")
        rest = [Pushed(one.push.id, "refused", error) for one in chunk if id(one) not in known]
        outcomes = [outcome for _, outcome in self.done] + rest
        stored = sum(outcome.outcome in {"stored", "held"} for outcome in outcomes)
        raise PushIncomplete(
            f"{stored} jobs are stored, {len(outcomes) - stored} are not known to be, and the calls behind them were "
            f"not sent: {self._error}",
            outcomes,
        ) from self._error


def _runs(chunk: Sequence[Prepared]) -> list[tuple[Route, list[Prepared]]]:
    """Return the chunk in parts that go the same way, in order."""
    found: list[tuple[Route, list[Prepared]]] = []
    for prepared in chunk:
        if found and found[-1][0] == prepared.route:
            found[-1][1].append(prepared)
        else:
            found.append((prepared.route, [prepared]))
    return found


def _fell_short(outcome: Pushed) -> bool:
    return outcome.outcome in {"refused", "unknown"} or isinstance(outcome.error, DurabilityNotReached)


def _accepted(outcome: Pushed) -> Pushed:
    if outcome.outcome == "unknown":
        raise outcome.error or OutcomeUnknown("no answer came: the job may or may not be stored")
    if outcome.outcome == "refused":
        raise outcome.error or StoreError("the job was not stored")
    return outcome


def _require(connection: Connection, call: Call[Any], priority: int) -> None:
    """Raise ``NotSupported`` for what the driver cannot do."""
    can, options, below = connection.capabilities, call.overrides, call.definition.options
    if call.steps:
        raise NotSupported(can.driver, "compositions")
    if priority and not can.priorities:
        raise NotSupported(can.driver, "priorities")
    if (options.unique or (options.unique is None and below.unique)) and not can.unique:
        raise NotSupported(can.driver, "unique jobs")
    if (options.result_ttl or below.result_ttl) and not can.results:
        raise NotSupported(can.driver, "results")
    durability = options.durability or below.durability
    if durability is not None and durability not in can.durability:
        raise NotSupported(can.driver, f"durability {durability}")
    if options.transaction is not None and (durability or 1) > 1:
        raise NotSupported(
            can.driver, f"durability {durability} inside a transaction", "how durable its commit is, is the caller's"
        )

"""Pushing: from a call to what a driver takes, and from what it answers to a handle."""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from tenure.call import Call
from tenure.composing import Composer
from tenure.drivers.sync import Ran
from tenure.errors import (
    DurabilityNotReached,
    NotSupported,
    OutcomeUnknown,
    PushIncomplete,
    Refused,
    StoreError,
)
from tenure.events import Events, JobPushed
from tenure.handle import JobHandle, Kept
from tenure.lookout import Lookout
from tenure.preparing import Preparing
from tenure.queue import Pushed, PushOutcome
from tenure.routes import Outbox, Prepared, Promised, Route, Routes
from tenure.tracing import Departure, Tracing, departing

R = TypeVar("R")

CHUNK: Final = 500
"""Jobs of a bulk push that are prepared and sent together: as many as one call to a store carries."""


class Dispatcher:
    """Pushes the calls of one application."""

    def __init__(
        self,
        preparing: Preparing,
        composer: Composer,
        events: Events,
        lookout: Lookout,
        tracing: Callable[[], Tracing | None],
        outbox: Callable[[], Outbox | None],
    ) -> None:
        self._preparing = preparing
        self._composer = composer
        self._events = events
        self._lookout = lookout
        self._tracing = tracing
        self._routes = Routes(events, self._tell, outbox)

    async def push(self, call: Call[R], /) -> JobHandle[R]:
        """Store a call: see ``Tenure.push``."""
        if call.steps:
            return await self._composer.push_chain(call)
        with departing(self._tracing()) as departure:
            prepared = self._prepare(call, departure)
            [outcome] = await prepared.route.push([prepared])
            return self._stored(prepared, outcome)

    def push_sync(self, call: Call[R], /) -> JobHandle[R]:
        """Store a call over a blocking connection."""
        if call.steps:
            return self._composer.push_chain_sync(call)
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
        connection = self._preparing.connection(call)
        if call.steps:
            raise NotSupported(
                connection.capabilities.driver,
                "chains in a bulk push",
                "push each of them, or make them members of one app.batch()",
            )
        push = self._preparing.push(call, connection, departure)
        return Prepared(connection, push, call.definition, self._routes.of(connection, call.overrides))

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

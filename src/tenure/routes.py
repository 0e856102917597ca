"""The ways that prepared calls go: to a driver at once, after the caller's commit, or inside its transaction."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from tenure.connections import AUTO, Connection
from tenure.definition import JobDefinition
from tenure.enlisting import Enlisted, Enlists, Statements, enlist
from tenure.errors import InvalidOption, NotSupported, StoreError
from tenure.events import Events, PushFailed
from tenure.options import Options
from tenure.queue import Push, Pushed, feature
from tenure.relaying import Relays

logger: Final = logging.getLogger("tenure")

WITHIN: Final = "a push inside a transaction"


class Prepared(NamedTuple):
    """A validated, encoded call, and the way it goes."""

    connection: Connection
    push: Push
    definition: JobDefinition
    route: "Route"


class Route(Protocol):
    """A way for calls of one connection."""

    async def push(self, part: Sequence[Prepared]) -> Sequence[Pushed]:
        """Send the calls, and answer for each in order; raises what ``Queue.push`` raises."""
        ...

    def push_sync(self, part: Sequence[Prepared]) -> Sequence[Pushed]:
        """Do what ``push`` does, blocking."""
        ...


Told = Callable[[Prepared, Pushed], None]
Outbox = Callable[[Statements, Connection, Sequence[Push]], Sequence[Pushed]]
"""Keeps jobs for another store in the caller's transaction, until they can be moved on."""


class Promised(Pushed, frozen=True, gc=False):
    """A job that will be pushed once its caller commits."""


class Routes:
    """Chooses the ways of one application's calls.

    Args:
        events: told of what could not be pushed after a commit.
        told: told of what was pushed after a commit.
        outbox: returns what takes jobs that a caller's transaction cannot store itself; None refuses them.
    """

    def __init__(self, events: Events, told: Told, outbox: Callable[[], Outbox | None] = lambda: None) -> None:
        self._events = events
        self._told = told
        self._outbox = outbox

    def of(self, connection: Connection, options: Options) -> Route:
        """Return the way that a call goes; raises ``Refused`` for one that cannot be."""
        if options.transaction is None and options.after_commit is None:
            return Direct(connection)
        if options.transaction is None:
            enlisted = enlist("after_commit", options.after_commit)
            return AfterCommit(connection, options.after_commit, enlisted, self._told, self._events)
        if options.after_commit is not None:
            raise InvalidOption("give transaction or after_commit, not both; nothing was sent")
        # Jobs of a store that no other process sees, nobody could move on; what auto chooses elsewhere may be another.
        relayed = feature(connection.queue, Relays) and connection.infrastructure.configured != AUTO
        outbox = self._outbox() if relayed else None
        if outbox is None and not connection.capabilities.transactions:
            hint = "after_commit= pushes once it is committed"
            if relayed:
                hint += ", and an outbox (TENURE_OUTBOX_URL) keeps jobs in the transaction until then"
            raise NotSupported(connection.capabilities.driver, WITHIN, hint)
        enlisted = enlist("transaction", options.transaction)
        return Within(connection, options.transaction, enlisted, outbox)


@dataclass(frozen=True)
class Direct:
    """To the driver, now."""

    connection: Connection

    async def push(self, part: Sequence[Prepared]) -> Sequence[Pushed]:
        """Push the calls."""
        return await self.connection.queue.push([prepared.push for prepared in part])

    def push_sync(self, part: Sequence[Prepared]) -> Sequence[Pushed]:
        """Push the calls, blocking."""
        return self.connection.pusher.push([prepared.push for prepared in part])


@dataclass(frozen=True)
class Within:
    """Into the caller's transaction: with its own connection if that leads to the store, else into the outbox."""

    connection: Connection
    given: object
    enlisted: Enlisted = field(compare=False)
    outbox: Outbox | None = field(compare=False)

    async def push(self, part: Sequence[Prepared]) -> Sequence[Pushed]:
        """Write the calls."""
        return await self.enlisted.within_async(partial(self._write, jobs=[prepared.push for prepared in part]))

    def push_sync(self, part: Sequence[Prepared]) -> Sequence[Pushed]:
        """Write the calls, blocking."""
        return self.enlisted.within(partial(self._write, jobs=[prepared.push for prepared in part]))

    def _write(self, caller: Statements, jobs: Sequence[Push]) -> Sequence[Pushed]:
        queue: Any = self.connection.queue
        pushed: Sequence[Pushed] | None = queue.push_within(caller, jobs) if feature(queue, Enlists) else None
        if pushed is not None:
            return pushed
        if self.outbox is None:
            raise NotSupported(
                self.connection.capabilities.driver,
                f"{WITHIN} of another database than its own",
                "give it a connection to the database that holds tenure's tables, or use after_commit=",
            )
        return self.outbox(caller, self.connection, jobs)


@dataclass(frozen=True)
class AfterCommit:
    """To the driver, once the caller's transaction is committed."""

    connection: Connection
    given: object
    enlisted: Enlisted = field(compare=False)
    told: Told = field(compare=False)
    events: Events = field(compare=False)

    async def push(self, part: Sequence[Prepared]) -> Sequence[Pushed]:
        """Promise the calls."""
        return self.push_sync(part)

    def push_sync(self, part: Sequence[Prepared]) -> Sequence[Pushed]:
        """Promise the calls."""
        self.enlisted.after_commit(Dispatch(Direct(self.connection), part, self.told, self.events))
        return [Promised(prepared.push.id, "stored") for prepared in part]


class Dispatch:
    """The push that follows a commit.

    A store that fails is reported, in the log and by events, and not raised: what is raised out of a commit would say
    that the transaction failed, and it stands.
    """

    def __init__(self, route: Direct, part: Sequence[Prepared], told: Told, events: Events) -> None:
        self._route = route
        self._part = part
        self._told = told
        self._events = events

    def run(self) -> None:
        """Push, blocking."""
        try:
            outcomes = self._route.push_sync(self._part)
        except (StoreError, NotSupported) as error:
            self._report(self._part, error)
        else:
            self._answered(outcomes)

    async def run_async(self) -> None:
        """Push."""
        try:
            outcomes = await self._route.push(self._part)
        except (StoreError, NotSupported) as error:
            self._report(self._part, error)
        else:
            self._answered(outcomes)

    def abandon(self, error: BaseException) -> None:
        """Tell that nothing was pushed."""
        self._report(self._part, error)

    def _answered(self, outcomes: Sequence[Pushed]) -> None:
        for prepared, outcome in zip(self._part, outcomes, strict=True):
            if outcome.outcome in {"stored", "held"}:
                self._told(prepared, outcome)
            if outcome.error is not None:
                self._report([prepared], outcome.error)

    def _report(self, part: Sequence[Prepared], error: BaseException) -> None:
        logger.error(
            "the transaction is committed and stands, but of the jobs that were to follow it %d are not known to be "
            "stored as asked: %s: %s (%s)",
            len(part),
            type(error).__name__,
            error if isinstance(error, StoreError | NotSupported) else "interrupted",
            ", ".join(
                f"{prepared.definition.name} {prepared.push.id} of queue {prepared.push.queue}"
                for prepared in part[:20]
            ),
        )
        for prepared in part:
            push = prepared.push
            self._events.emit(
                PushFailed(queue=push.queue, id=push.id, name=prepared.definition.name, error=type(error).__name__)
            )

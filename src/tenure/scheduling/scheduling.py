"""Schedules of an application: defined in code, or stored, paused and removed at run time."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple, Unpack, cast
from zoneinfo import ZoneInfo

import msgspec

from tenure.call import Call, Registered
from tenure.config import DEFAULT
from tenure.connections import Connections
from tenure.envelope import decode as decode_envelope
from tenure.errors import InvalidOption, NotSupported, Undecodable
from tenure.job import Register
from tenure.naming import check_queue, check_schedule, shown
from tenure.operations import Operations
from tenure.options import UNSET
from tenure.portal import blocking
from tenure.preparing import Preparing
from tenure.queue import feature
from tenure.registry import DEFAULT_QUEUE, Registry
from tenure.schedules import ScheduleBook, ScheduleRecord, Schedules
from tenure.scheduling.info import ScheduleInfo, info
from tenure.scheduling.terms import Terms, check_terms, given, seconds
from tenure.timetables import Definition, When
from tenure.timetables.definition import TEMPLATE, Source, decode
from tenure.tracing import departing

FEATURE: Final = "schedules"
NOT_TAKEN: Final = ("id", "delay", "at", "transaction", "after_commit")
"""Options of one push, which the pushes of a schedule cannot share."""


class CodeSchedule(NamedTuple):
    """A schedule that the code defines. Its call is encoded when it is stored, and not before."""

    name: str
    when: When
    terms: Terms
    call: Callable[[], Call[Any]]


class Scheduling:
    """What ``app.schedules`` is. A schedule lives in the queue that its jobs go to, and its name is unique there.

    Raises ``NotSupported`` where the driver keeps no schedules, ``InvalidOption`` for what cannot be one, both before
    anything is sent, and ``StoreError``. Where no queue is named, the queues of the store are looked through.
    """

    def __init__(
        self,
        registry: Registry,
        connections: Connections,
        operations: Operations,
        preparing: Preparing,
        register: Callable[[Any], Any],
    ) -> None:
        """``register`` makes a job of a function or a class that is none yet."""
        self._registry = registry
        self._connections = connections
        self._operations = operations
        self._preparing = preparing
        self._register = register
        self._code: dict[str, CodeSchedule] = {}

    # --------------------------------------------------------------------------------------------------------- in code

    def defining(self, when: When, terms: Terms, **about: Any) -> Register:
        """Return what defines a schedule of the job, function or class that it decorates; see ``Tenure.cron``."""

        def decorate(target: Any) -> Any:
            known = isinstance(target, Registered) or (isinstance(target, type) and self._registry.of(target))
            job = target if known else self._register(target)
            self.define(job, when, terms, **about)
            return job

        return decorate

    def define(
        self,
        target: Any,
        when: When,
        terms: Terms,
        *,
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a schedule of a registered job, named like the job if not otherwise; nothing is sent.

        Raises ``InvalidOption``.
        """
        found = target.definition if isinstance(target, Registered) else self._registry.of(target)
        if found is None:
            raise InvalidOption(f"{shown(target)} is not a job of this application")
        name, kwargs = check_schedule(found.name if name is None else name), kwargs or {}
        if name in self._code:
            raise InvalidOption(f"the schedule {shown(name)} is defined twice; give one of the two another name")
        check_terms(when, terms)
        try:
            inspect.Signature(found.parameters).bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidOption(f"the schedule {name} of job {found.name}: {error}; give it args= or kwargs=") from None
        overrides = getattr(target, "overrides", UNSET)

        def call() -> Call[Any]:
            if isinstance(found.registered, type):
                return Call(found, *found.encode(*found.recover(found.target(*args, **kwargs))))
            return Call(found, *found.encode(tuple(args), kwargs), overrides)

        self._code[name] = CodeSchedule(name, when, terms, call)

    @property
    def in_code(self) -> tuple[CodeSchedule, ...]:
        """The schedules that the code defines."""
        return tuple(self._code.values())

    async def put_code(self, connection: str = DEFAULT) -> Sequence[str]:
        """Store the schedules of the code whose jobs go to this connection, where they differ from what is stored.

        Returns the names of those that are new. A definition that a newer version wrote is left alone.
        """
        wanted = self._connections.get(connection).name
        new: list[str] = []
        for schedule in self.in_code:
            call = schedule.call()
            chosen = self._connections.get(self._connection_of(call)).name
            if chosen == wanted and await self._put(schedule.name, call, schedule.when, schedule.terms, "code"):
                new.append(schedule.name)
        return new

    # ----------------------------------------------------------------------------------------------------- at run time

    async def add(
        self,
        name: str,
        job: Any,
        /,
        *,
        cron: str | None = None,
        tz: str | ZoneInfo = "UTC",
        every: float | timedelta | None = None,
        source: Source = "api",
        **terms: Unpack[Terms],
    ) -> bool:
        """Store a schedule of a call (``job.bind(…)``), or give one another definition; True if it is new.

        Its job's options are taken as they are now. A schedule that was there stays paused if it was; with another
        timetable it begins anew.
        """
        when = given(cron, tz, every)
        check_terms(when, terms)
        return await self._put(check_schedule(name), self._call(job), when, terms, source)

    async def list(self, *, queue: str | None = None, connection: str = DEFAULT) -> Sequence[ScheduleInfo]:
        """Return the stored schedules, sorted by queue and name."""
        store = self.store(connection)
        return [
            info(record, self._code or None)
            for name in await self._queues(queue, connection)
            for book in [await store.schedules(name)]
            for record in book.schedules
        ]

    async def upcoming(
        self, name: str, *, count: int = 5, queue: str | None = None, connection: str = DEFAULT
    ) -> Sequence[datetime]:
        """Return when a schedule is due next, in its zone, whether or not it is paused.

        Raises ``InvalidOption`` when it is unknown, and ``Undecodable`` when it cannot be read here.
        """
        found = await self.find(name, queue=queue, connection=connection)
        definition = decode(found.definition)
        slots = definition.timetable.slots(max(found.cursor, definition.since))
        return [datetime.fromtimestamp(slot, ZoneInfo(definition.when.tz)) for slot in islice(slots, count)]

    async def pause(self, name: str, *, queue: str | None = None, connection: str = DEFAULT) -> bool:
        """Let a schedule fire nothing; False when it was paused already. Raises ``InvalidOption`` when unknown."""
        found = await self.find(name, queue=queue, connection=connection)
        return await self.store(connection).pause_schedule(found.queue, name, paused=True)

    async def resume(self, name: str, *, queue: str | None = None, connection: str = DEFAULT) -> bool:
        """Let it fire again, from now on; False when it was not paused. Raises ``InvalidOption`` when unknown."""
        found = await self.find(name, queue=queue, connection=connection)
        return await self.store(connection).pause_schedule(found.queue, name, paused=False)

    async def remove(self, name: str, *, queue: str | None = None, connection: str = DEFAULT) -> bool:
        """Forget a schedule; its jobs stay. False when it is gone already. Raises ``InvalidOption`` when unknown.

        One that the code defines comes back when a process begins to fire it.
        """
        found = await self.find(name, queue=queue, connection=connection)
        return await self.store(connection).remove_schedule(found.queue, name)

    async def find(self, name: str, *, queue: str | None = None, connection: str = DEFAULT) -> ScheduleRecord:
        """Return a stored schedule; raises ``InvalidOption`` when there is none, or one in each of several queues."""
        store = self.store(connection)
        check_schedule(name)
        found = [
            record
            for one in await self._queues(queue, connection)
            for record in (await store.schedules(one)).schedules
            if record.name == name
        ]
        if not found:
            raise InvalidOption(f"there is no schedule {shown(name)}; nothing was changed")
        if len(found) > 1:
            where = ", ".join(record.queue for record in found)
            raise InvalidOption(
                f"there are schedules {shown(name)} in the queues {where}: name one; nothing was changed"
            )
        return found[0]

    def store(self, connection: str = DEFAULT) -> Schedules:
        """Return what keeps schedules; raises ``NotSupported``."""
        queue = self._connections.get(connection).queue
        if not queue.capabilities.schedules or not feature(queue, Schedules):
            raise NotSupported(queue.capabilities.driver, FEATURE)
        return cast("Schedules", queue)

    async def queues(self, connection: str = DEFAULT) -> Sequence[str]:
        """Return the queues that may hold schedules: those of the store, and those of this application's jobs."""
        self.store(connection)
        known = await self._operations.queues(connection=connection)
        return sorted({*known, *self._registry.queues(), DEFAULT_QUEUE})

    def add_sync(
        self,
        name: str,
        job: Any,
        /,
        *,
        cron: str | None = None,
        tz: str | ZoneInfo = "UTC",
        every: float | timedelta | None = None,
        source: Source = "api",
        **terms: Unpack[Terms],
    ) -> bool:
        """Do what ``add`` does, blocking."""
        return blocking("add", lambda: self.add(name, job, cron=cron, tz=tz, every=every, source=source, **terms))

    def list_sync(self, *, queue: str | None = None, connection: str = DEFAULT) -> Sequence[ScheduleInfo]:
        """Do what ``list`` does, blocking."""
        return blocking("list", lambda: self.list(queue=queue, connection=connection))

    def upcoming_sync(
        self, name: str, *, count: int = 5, queue: str | None = None, connection: str = DEFAULT
    ) -> Sequence[datetime]:
        """Do what ``upcoming`` does, blocking."""
        return blocking("upcoming", lambda: self.upcoming(name, count=count, queue=queue, connection=connection))

    def pause_sync(self, name: str, *, queue: str | None = None, connection: str = DEFAULT) -> bool:
        """Do what ``pause`` does, blocking."""
        return blocking("pause", lambda: self.pause(name, queue=queue, connection=connection))

    def resume_sync(self, name: str, *, queue: str | None = None, connection: str = DEFAULT) -> bool:
        """Do what ``resume`` does, blocking."""
        return blocking("resume", lambda: self.resume(name, queue=queue, connection=connection))

    def remove_sync(self, name: str, *, queue: str | None = None, connection: str = DEFAULT) -> bool:
        """Do what ``remove`` does, blocking."""
        return blocking("remove", lambda: self.remove(name, queue=queue, connection=connection))

    # --------------------------------------------------------------------------------------------------------- helpers

    async def _queues(self, queue: str | None, connection: str) -> Iterable[str]:
        return await self.queues(connection) if queue is None else [check_queue(queue)]

    async def _put(self, name: str, call: Call[Any], when: When, terms: Terms, source: Source) -> bool:
        connection = self._connection_of(call)
        store = self.store(connection)
        definition = self._definition(name, call, when, terms, source)
        queue = definition.envelope.queue
        book = await store.schedules(queue)
        stored = next((record for record in book.schedules if record.name == name), None)
        if stored is None:
            return await store.put_schedule(queue, name, definition.encode())
        written = _beginning(definition, stored, book, keep_unreadable=source == "code")
        return written is not None and await store.put_schedule(queue, name, written)

    def _definition(self, name: str, call: Call[Any], when: When, terms: Terms, source: Source) -> Definition:
        connection = self._preparing.connection(_fit(name, call))
        with departing(None) as departure:
            push = self._preparing.push(call, connection, departure)
        if push.durability != 1:
            raise InvalidOption(f"the schedule {name}: what a schedule pushes has the durability of the store alone")
        jitter = seconds(terms.get("jitter", 0.0))
        if push.expires_in is not None and push.expires_in <= jitter:
            raise InvalidOption(f"the schedule {name}: its jobs could expire within the jitter; nothing was sent")
        definition = Definition(
            # Of the meta what the call says: what the moment adds, a trace or a correlation, is not the schedule's.
            envelope=msgspec.structs.replace(
                decode_envelope(push.envelope), id=TEMPLATE, meta=dict(call.overrides.meta or {})
            ),
            when=when,
            catch_up=terms.get("catch_up", "last"),
            overlap=terms.get("overlap", True),
            jitter=jitter,
            source=source,
            crash_limit=push.crash_limit,
            expires_in=push.expires_in,
            keep=push.keep,
            unique=push.unique,
        )
        definition.push(
            name, 0.0, 0.0, max_bytes=connection.settings.max_payload_bytes
        )  # with what a firing fills in, it must fit as well
        return definition

    def _call(self, job: Any) -> Call[Any]:
        if isinstance(job, Call):
            return job
        definition = self._registry.of(type(job))
        if definition is None:
            raise InvalidOption(f"a schedule takes a call, made with bind(), or a class job, not {shown(job)}")
        return Call(definition, *definition.encode(*definition.recover(job)))

    @staticmethod
    def _connection_of(call: Call[Any]) -> str:
        return call.overrides.connection or call.definition.options.connection or DEFAULT


def _fit(name: str, call: Call[Any]) -> Call[Any]:
    taken = [option for option in NOT_TAKEN if getattr(call.overrides, option) is not None]
    if taken:
        raise InvalidOption(f"the schedule {name}: its jobs cannot have the option {taken[0]}; nothing was sent")
    if call.steps:
        raise InvalidOption(f"the schedule {name}: it pushes one job, and not a chain; nothing was sent")
    return call


def _beginning(
    definition: Definition, stored: ScheduleRecord, book: ScheduleBook, *, keep_unreadable: bool
) -> bytes | None:
    """Return what is to be stored over what is there; None if that says the same, or is not this version's to change.

    Another timetable counts from now on: what it would have had due before was not asked for.
    """
    try:
        old = decode(stored.definition)
    except Undecodable:
        return None if keep_unreadable else _since(definition, book.now)
    written = _since(definition, old.since if old.when == definition.when else book.now)
    return None if written == stored.definition else written


def _since(definition: Definition, since: float) -> bytes:
    return msgspec.structs.replace(definition, since=since).encode()

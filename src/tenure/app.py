"""The application: where jobs are registered, pushed and looked after.

Building one and registering jobs opens no socket and no file; settings are read at first use.
"""

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

import msgspec

from tenure.call import Call
from tenure.clock import Clock, SystemClock
from tenure.composes import Composes
from tenure.composing import Composer
from tenure.config import DEFAULT, Credentials, Settings
from tenure.connections import Connections, Infrastructure
from tenure.definition import define
from tenure.dispatch import Dispatcher
from tenure.errors import InvalidOption, NotRegistered, Undecodable
from tenure.events import Events
from tenure.extending import Extended, Extensions
from tenure.handle import JobHandle
from tenure.health import TIMEOUT, Health, health
from tenure.inline import InlineRunner
from tenure.job import AsyncHandles, AsyncJob, Job, Register, SyncHandles, SyncJob
from tenure.listening import Listen, ListenerOptions, Listeners, check_listener
from tenure.lookout import Lookout
from tenure.naming import check_job_id, check_namespace, check_queue, shown
from tenure.operations import Operations, Retried
from tenure.options import UNSET, AppOptions, JobOptions, PushOptions, defaults
from tenure.outgoing import OutboxLag, Outgoing
from tenure.portal import blocking, refuse_loop, require_loop
from tenure.preparing import Preparing
from tenure.queue import Cancelled, Counts, FailedRecord, JobState, Queue
from tenure.registry import DEFAULT_QUEUE, Registry
from tenure.scheduling import Scheduled, Scheduling
from tenure.surroundings import Lifespan, Middlewares
from tenure.tracing import Tracing
from tenure.walking import Walking

if TYPE_CHECKING:
    import svcs

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E")
C = TypeVar("C", bound=SyncHandles[Any])


class Tenure(Extended, Composes, Scheduled):
    """An application.

    Args:
        url: the store of the default connection; the environment says it otherwise.
        namespace: keeps applications on one store apart; the environment says it otherwise.
        outbox: the database that holds the outbox; the environment says it otherwise.
        settings: instead of those of the environment.
        credentials: called with a connection's name whenever a connection to Redis is made, for passwords that change;
            returns a password, a user's name and a password, or None when what is configured applies.
        clock: where dates are compared with now.
        options: defaults for all jobs, under what their decorators say.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        outbox: str | None = None,
        settings: Settings | None = None,
        credentials: Credentials | None = None,
        clock: Clock | None = None,
        **options: Unpack[AppOptions],
    ) -> None:
        self.registry: Registry = Registry()
        """The jobs."""
        self.events: Events = Events()
        """What happens to them, for observers."""
        self.middleware: Middlewares = Middlewares()
        """What stands around every attempt; ``@app.middleware`` adds to it."""
        self.lifespan: Lifespan = Lifespan()
        """What stands around a worker's life; ``@app.lifespan`` sets it."""
        self.tracing: Tracing | None = None
        """What observes pushes, claims and settlements; ``tenure.ext.otel.instrument`` sets it."""
        self.extensions: Extensions = Extensions(self)
        """What upper layers offer on the application."""
        self._listeners = Listeners()
        self._given = {
            **({} if url is None else {"url": url}),
            **({} if namespace is None else {"namespace": check_namespace(namespace)}),
            **({} if outbox is None else {"outbox_url": outbox}),
            **({} if credentials is None else {"credentials": credentials}),
        }
        self._settings = settings
        self._defaults = defaults(options)
        runner = InlineRunner(self.registry, lambda: self.services, self.middleware)
        self._connections = Connections(lambda: self.settings, runner)
        self.operate: Operations = Operations(self._connections)
        """What operators read and change: jobs, failed ones, unreadable records, pauses, restarts."""
        self._lookout = Lookout(self.operate)
        self._preparing = Preparing(self.registry, self._connections, clock or SystemClock())
        walking = Walking(self.registry, runner)
        self.composer: Composer = Composer(self._preparing, self.operate, self._lookout, walking, lambda: self.tracing)
        self._outgoing = Outgoing(lambda: self.settings)
        self._dispatcher = Dispatcher(
            self._preparing, self.composer, self.events, self._lookout, lambda: self.tracing, self._outgoing.outbox
        )
        self.schedules: Scheduling = Scheduling(
            self.registry, self._connections, self.operate, self._preparing, lambda target: self._register(target, {})
        )
        """Schedules: those of the code, and what is stored."""

    @functools.cached_property
    def settings(self) -> Settings:
        """The settings, read at first use; raises ``ConfigurationError``."""
        found = Settings.from_environ() if self._settings is None else self._settings
        return msgspec.structs.replace(found, **self._given)

    @functools.cached_property
    def services(self) -> "svcs.Registry":
        """What makes the services that handlers ask for."""
        from svcs import Registry as Services  # noqa: PLC0415 - keeps `import tenure` light

        return Services()

    def queue(self, connection: str = DEFAULT) -> Queue:
        """Return a connection's driver, made at first use and kept; raises ``ConfigurationError``."""
        return self._connections.get(connection).queue

    def infrastructure(self, connection: str = DEFAULT) -> Infrastructure:
        """Tell what a connection is, and why; without endpoints or credentials."""
        return self._connections.get(connection).infrastructure

    async def health(
        self, connection: str = DEFAULT, *, queues: Sequence[str] = (DEFAULT_QUEUE,), timeout: float = TIMEOUT
    ) -> Health:
        """Tell whether a connection's store can be used, by one cheap read of each queue; never raises."""
        return await health(self._connections, connection, queues=queues, timeout=timeout)

    def health_sync(
        self, connection: str = DEFAULT, *, queues: Sequence[str] = (DEFAULT_QUEUE,), timeout: float = TIMEOUT
    ) -> Health:
        """Do what ``health`` does, blocking."""
        return blocking("health", lambda: self.health(connection, queues=queues, timeout=timeout))

    # ----------------------------------------------------------------------------------------------------- registering

    @overload
    def job(self, target: type[C], /) -> type[C]: ...  # type: ignore[overload-overlap]
    @overload
    def job(self, target: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncJob[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def job(self, target: Callable[P, R], /) -> SyncJob[P, R]: ...
    @overload
    def job(self, /, **options: Unpack[JobOptions]) -> Register: ...
    def job(self, target: Any = None, /, **options: Any) -> Any:
        """Register a function or a class as a job; raises ``InvalidOption`` for what cannot be one.

        A class comes back unchanged: its instances are calls, and their arguments are read from the attributes that
        are named like the parameters of its constructor.
        """
        if target is None:
            return lambda decorated: self._register(decorated, options)
        return self._register(target, {})

    def _register(self, target: Any, options: Mapping[str, Any]) -> Any:
        definition = define(target, options, self._defaults)
        self.registry.add(definition)
        if definition.is_class:
            return target
        kind: type[Job[..., Any]] = AsyncJob if inspect.iscoroutinefunction(target) else SyncJob
        return kind(definition, self._dispatcher)

    def listener(self, kind: type[E], /, **options: Unpack[ListenerOptions]) -> Listen[E]:
        """Register a function as a job that runs once for each event of this class that is emitted.

        The options are those of ``job``. With ``after_commit=True`` an ``emit`` must name the transaction that it is
        about. Raises ``InvalidOption`` for what cannot be a listener.
        """
        chosen: dict[str, Any] = dict(options)
        after_commit = bool(chosen.pop("after_commit", False))

        def register(target: Any) -> Any:
            check_listener(kind, target)
            job = self._register(target, chosen)
            self._listeners.add(kind, job, after_commit=after_commit)
            return job

        return register

    # --------------------------------------------------------------------------------------------------------- pushing

    @overload
    def bind(self, job: AsyncHandles[R], /) -> Call[R]: ...
    @overload
    def bind(self, job: SyncHandles[R], /) -> Call[R]: ...
    def bind(self, job: Any, /) -> Any:
        """Return an instance of a class job as a call; raises ``NotRegistered`` and ``NotEncodable``."""
        return self._preparing.bound(job)

    @overload
    def push(self, job: Call[R], /, **options: Unpack[PushOptions]) -> Coroutine[Any, Any, JobHandle[R]]: ...
    @overload
    def push(self, job: AsyncHandles[R], /, **options: Unpack[PushOptions]) -> Coroutine[Any, Any, JobHandle[R]]: ...
    @overload
    def push(self, job: SyncHandles[R], /, **options: Unpack[PushOptions]) -> Coroutine[Any, Any, JobHandle[R]]: ...
    def push(self, job: Any, /, **options: Any) -> Any:
        """Store a call, or an instance of a class job; await it. Of a call with steps, the handle is the last one's.

        Refuses at once, with ``WrongContext``, where no event loop runs. Raises ``Refused`` before anything is sent,
        ``ConnectionFailed`` and ``StoreRefused`` when nothing was stored, and ``OutcomeUnknown``.
        """
        require_loop("push")
        return self._dispatcher.push(self._call(job, options))

    @overload
    def push_sync(self, job: Call[R], /, **options: Unpack[PushOptions]) -> JobHandle[R]: ...
    @overload
    def push_sync(self, job: AsyncHandles[R], /, **options: Unpack[PushOptions]) -> JobHandle[R]: ...
    @overload
    def push_sync(self, job: SyncHandles[R], /, **options: Unpack[PushOptions]) -> JobHandle[R]: ...
    def push_sync(self, job: Any, /, **options: Any) -> Any:
        """Do what ``push`` does, over a blocking connection; refuses inside a running event loop."""
        refuse_loop("push")
        return self._dispatcher.push_sync(self._call(job, options))

    async def push_many(self, calls: Iterable[Call[R]], /, **options: Unpack[PushOptions]) -> list[JobHandle[R]]:
        """Store many calls in few round trips, in order, and return their handles.

        Sent in parts of 500, each checked before it is sent; not atomic. Raises what ``push`` raises while nothing is
        stored, and ``PushIncomplete`` from then on, with the outcome and the id of each job so far.
        """
        return await self._dispatcher.push_many(self._calls(calls, options))

    def push_many_sync(self, calls: Iterable[Call[R]], /, **options: Unpack[PushOptions]) -> list[JobHandle[R]]:
        """Do what ``push_many`` does, over a blocking connection; refuses inside a running event loop."""
        refuse_loop("push_many")
        return self._dispatcher.push_many_sync(self._calls(calls, options))

    def emit(self, event: object, /, **options: Unpack[PushOptions]) -> Coroutine[Any, Any, list[JobHandle[Any]]]:
        """Push one job for each listener of the event's class, and return their handles; await it. None, no job.

        ``after_commit=`` and ``transaction=`` hold for all of them; an ``id`` is completed by each listener's name.
        Raises what ``push_many`` raises, and ``InvalidOption`` when a listener wants a commit that is not named.
        """
        require_loop("emit")
        return self._dispatcher.push_many(self._listeners.calls(event, options))

    def emit_sync(self, event: object, /, **options: Unpack[PushOptions]) -> list[JobHandle[Any]]:
        """Do what ``emit`` does, over a blocking connection; refuses inside a running event loop."""
        refuse_loop("emit")
        return self._dispatcher.push_many_sync(self._listeners.calls(event, options))

    def call(self, name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, /) -> Call[Any]:
        """Return a call by the job's name and JSON arguments, as a command line has them.

        Raises ``NotRegistered``, and ``InvalidOption`` for arguments that do not fit the job.
        """
        definition = self.registry.get(name)
        if definition is None:
            raise NotRegistered(f"there is no job {shown(name)} in this application")
        encode = msgspec.json.encode
        try:
            restored = definition.codec.decode(msgspec.Raw(encode(list(args))), msgspec.Raw(encode(dict(kwargs or {}))))
        except (Undecodable, ValueError, TypeError) as error:
            raise InvalidOption(f"{name}: {error}") from None
        return Call(definition, *definition.encode(*restored))

    def handle(self, job_id: str, *, queue: str, connection: str = DEFAULT) -> JobHandle[Any]:
        """Return the handle of a job that was pushed elsewhere; its result comes as plain JSON values."""
        return JobHandle(self._lookout, check_job_id(job_id), queue=check_queue(queue), connection=connection)

    def _call(self, job: Any, options: Mapping[str, Any]) -> Call[Any]:
        call = job if isinstance(job, Call) else self.bind(job)
        return call.options(**options) if options else call

    def _calls(self, calls: Iterable[Any], options: Mapping[str, Any]) -> Iterable[Call[Any]]:
        if "id" in options:
            raise InvalidOption("id is for one job: give each call its own, with call.options(id=…)")
        UNSET.with_(options)  # a wrong option is refused even when there is no call
        return (self._call(call, options) for call in calls)

    # ---------------------------------------------------- looking and operating: the daily part; `operate` has the rest

    async def queues(self, *, connection: str = DEFAULT) -> list[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        return await self.operate.queues(connection=connection)

    async def counts(self, queue: str, *, connection: str = DEFAULT) -> Counts:
        """Count a queue's jobs by state."""
        return await self.operate.counts(queue, connection=connection)

    async def states(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[JobState]:
        """Tell where jobs of a queue are, in order."""
        return await self.operate.states(queue, ids, connection=connection)

    async def cancel(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order."""
        return await self.operate.cancel(queue, ids, connection=connection)

    async def clear(self, queue: str, *, connection: str = DEFAULT) -> int:
        """Remove all ready and delayed jobs of a queue, and return their exact number."""
        return await self.operate.clear(queue, connection=connection)

    async def failed(
        self, queue: str, *, limit: int = 100, offset: int = 0, connection: str = DEFAULT
    ) -> list[FailedRecord]:
        """Return failed jobs of a queue, oldest first."""
        return await self.operate.failed(queue, limit=limit, offset=offset, connection=connection)

    async def retry(self, queue: str, ids: Sequence[str] | None = None, *, connection: str = DEFAULT) -> list[Retried]:
        """Make failed jobs ready again, their counters at zero; all that have failed so far if ``ids`` is None."""
        return await self.operate.retry(queue, ids, connection=connection)

    async def forget(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Remove failed jobs for good; False for one that is not there."""
        return await self.operate.forget(queue, ids, connection=connection)

    async def outbox_lag(self) -> list[OutboxLag]:
        """Return what waits in the outbox, by connection and queue; raises ``ConfigurationError`` without one."""
        return await self._outgoing.lag()

    async def aclose(self) -> None:
        """Close what was opened; idempotent, and safe before first use."""
        await self.extensions.aclose()
        for connection in self._connections.opened():
            await connection.aclose()

    def queues_sync(self, *, connection: str = DEFAULT) -> list[str]:
        """Do what ``queues`` does, blocking."""
        return blocking("queues", lambda: self.queues(connection=connection))

    def counts_sync(self, queue: str, *, connection: str = DEFAULT) -> Counts:
        """Do what ``counts`` does, blocking."""
        return blocking("counts", lambda: self.counts(queue, connection=connection))

    def states_sync(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[JobState]:
        """Do what ``states`` does, blocking."""
        return blocking("states", lambda: self.states(queue, ids, connection=connection))

    def cancel_sync(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[Cancelled]:
        """Do what ``cancel`` does, blocking."""
        return blocking("cancel", lambda: self.cancel(queue, ids, connection=connection))

    def clear_sync(self, queue: str, *, connection: str = DEFAULT) -> int:
        """Do what ``clear`` does, blocking."""
        return blocking("clear", lambda: self.clear(queue, connection=connection))

    def failed_sync(
        self, queue: str, *, limit: int = 100, offset: int = 0, connection: str = DEFAULT
    ) -> list[FailedRecord]:
        """Do what ``failed`` does, blocking."""
        return blocking("failed", lambda: self.failed(queue, limit=limit, offset=offset, connection=connection))

    def retry_sync(self, queue: str, ids: Sequence[str] | None = None, *, connection: str = DEFAULT) -> list[Retried]:
        """Do what ``retry`` does, blocking."""
        return blocking("retry", lambda: self.retry(queue, ids, connection=connection))

    def forget_sync(self, queue: str, ids: Sequence[str], *, connection: str = DEFAULT) -> list[bool]:
        """Do what ``forget`` does, blocking."""
        return blocking("forget", lambda: self.forget(queue, ids, connection=connection))

    def outbox_lag_sync(self) -> list[OutboxLag]:
        """Do what ``outbox_lag`` does, blocking."""
        return blocking("outbox_lag", self.outbox_lag)

    def close_sync(self) -> None:
        """Do what ``aclose`` does, blocking."""
        blocking("close", self.aclose)

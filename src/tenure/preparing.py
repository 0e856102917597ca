"""From a call to what a driver takes: its options decided, checked against the driver, and encoded."""

from typing import Any, NamedTuple

from tenure.call import Call, Registered, Step
from tenure.clock import Clock
from tenure.config import DEFAULT
from tenure.connections import Connection, Connections
from tenure.correlation import with_id
from tenure.envelope import VERSION, Envelope, encode
from tenure.errors import InvalidOption, NotRegistered, NotSupported
from tenure.naming import new_job_id, shown
from tenure.options import JobDefaults, Options
from tenure.queue import Push
from tenure.registry import DEFAULT_QUEUE, Registry
from tenure.tracing import Departure, travelling
from tenure.uniqueness import unique_text


class Given(NamedTuple):
    """What is said of a call by what it is a part of."""

    job_id: str | None = None
    """Its id in its composition."""
    named: str | None = None
    """What its envelope is given as its id, if that is another."""
    result_ttl: float | None = None
    """If neither the call nor its job has one."""


ALONE = Given()
"""Nothing: it is pushed for itself."""


class Preparing:
    """Prepares the calls of one application."""

    def __init__(self, registry: Registry, connections: Connections, clock: Clock) -> None:
        self._registry = registry
        self._connections = connections
        self._clock = clock

    def bound(self, job: object) -> Call[Any]:
        """Return an instance of a class job as a call; raises ``NotRegistered`` and ``NotEncodable``."""
        definition = self._registry.of(type(job))
        if definition is None:
            kind = type(job).__name__
            hint = "; push calls of it, made with its bind()" if isinstance(job, Registered) else ""
            raise NotRegistered(f"{shown(kind)} is not a job of this application (@app.job){hint}; nothing was sent")
        return Call(definition, *definition.encode(*definition.recover(job)))

    def connection(self, call: Call[Any] | Step, name: str | None = None) -> Connection:
        """Return the connection that a call goes to, or the one of this name; raises ``ConfigurationError``."""
        chosen = name or call.overrides.connection or call.definition.options.connection or DEFAULT
        return self._connections.get(chosen)

    def named(self, name: str) -> Connection:
        """Return the connection of this name; raises ``ConfigurationError``."""
        return self._connections.get(name)

    def push(self, call: Call[Any] | Step, connection: Connection, departure: Departure, given: Given = ALONE) -> Push:
        """Return a call as a driver takes it; raises ``Refused``."""
        definition = call.definition
        if self._registry.get(definition.name) is not definition:
            raise NotRegistered(f"the job {definition.name!r} belongs to another application; nothing was sent")
        options, below = call.overrides, definition.options
        tuning = connection.settings
        priority = options.priority if options.priority is not None else below.priority or 0
        max_attempts = options.max_attempts or below.max_attempts or tuning.max_attempts
        delay, expires_in = self._times(options, below)
        keep = options.result_ttl or below.result_ttl or given.result_ttl or 0.0
        _require(connection, call, priority, keep)
        queue = queue_of(call)
        job_id = given.job_id or options.id or new_job_id()
        envelope = Envelope(
            v=VERSION,
            id=given.named or job_id,
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
            keep=keep,
            unique=unique_text(call) if isinstance(call, Call) else "",
        )
        departure.carries(push, definition.name)
        return push

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


def queue_of(call: Call[Any] | Step) -> str:
    """Return the queue that a call goes to."""
    return call.overrides.queue or call.definition.options.queue or DEFAULT_QUEUE


def is_unique(call: Call[Any] | Step) -> bool:
    """Tell whether a call asks to be the only one of its kind."""
    options, below = call.overrides, call.definition.options
    return bool(options.unique or (options.unique is None and below.unique))


def _require(connection: Connection, call: Call[Any] | Step, priority: int, keep: float) -> None:
    """Raise ``NotSupported`` for what the driver cannot do."""
    can, options, below = connection.capabilities, call.overrides, call.definition.options
    if priority and not can.priorities:
        raise NotSupported(can.driver, "priorities")
    if is_unique(call) and not can.unique:
        raise NotSupported(can.driver, "unique jobs")
    if keep and not can.results:
        raise NotSupported(can.driver, "results")
    durability = options.durability or below.durability
    if durability is not None and durability not in can.durability:
        raise NotSupported(can.driver, f"durability {durability}")
    if options.transaction is not None and can.transactions and (durability or 1) > 1:
        raise NotSupported(
            can.driver, f"durability {durability} inside a transaction", "how durable its commit is, is the caller's"
        )

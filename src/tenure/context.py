"""What a handler can learn about the attempt that it is: ``current()``.

Kept in a context variable, so that it is right in coroutines that share a loop and in threads that are given a copy
of the context, and never seen by the next attempt on the same thread.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from tenure.effects import Attempt, Effects, EffectsBlock
from tenure.errors import WrongContext
from tenure.queue import Lease
from tenure.results import Progress, checked

G = TypeVar("G")

_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


class StopFlag:
    """Whether an attempt should stop, and whether its handler has seen that. Safe from any thread."""

    __slots__ = ("_set", "seen")

    def __init__(self) -> None:
        self._set = False
        self.seen: bool = False
        """Whether a handler looked after it was set."""

    def set(self) -> None:
        """Set it; there is no way back."""
        self._set = True

    def look(self) -> bool:
        """Tell whether it is set, for a handler."""
        if self._set:
            self.seen = True
        return self._set


class Adds(Protocol):
    """The batch of a running job, as its handler sees it."""

    async def add(self, *calls: Any) -> None:
        """Add calls, or instances of class jobs, to the batch: 500 at most, all of them or none.

        What waits for the batch then waits for them too. An attempt that is made again adds them again. Raises
        ``Refused`` before anything is sent, and ``StaleLease`` when nothing was added: the composition was cancelled,
        this job is no longer the attempt's own, or it is no member of a batch.
        """
        ...

    def add_sync(self, *calls: Any) -> None:
        """Do what ``add`` does, blocking."""
        ...


class Current:
    """The running attempt of one job."""

    __slots__ = (
        "_attempt",
        "_batches",
        "_connection",
        "_max_attempts",
        "_meta",
        "_name",
        "_queue",
        "_report",
        "_stop",
        "effects",
        "lease",
    )

    def __init__(
        self,
        lease: Lease,
        *,
        name: str,
        max_attempts: int,
        meta: Mapping[str, Any] = _EMPTY,
        stop: StopFlag | None = None,
        report: Callable[[Lease, Progress], None] | None = None,
        attempt: Attempt | None = None,
        queue: object = None,
        connection: str = "default",
        batches: Callable[[Lease], Adds] | None = None,
    ) -> None:
        self.lease: Lease = lease
        self.effects: Effects = Effects.NONE
        """How far its ``transaction`` has come, where no ``attempt`` keeps that."""
        self._attempt = attempt
        self._queue = queue
        self._connection = connection
        self._name = name
        self._max_attempts = max_attempts
        self._meta = MappingProxyType(dict(meta)) if meta else _EMPTY
        self._stop = stop or StopFlag()
        self._report = report
        self._batches = batches

    @property
    def id(self) -> str:
        """The job's id."""
        return self.lease.id

    @property
    def queue(self) -> str:
        """The queue that the job came from."""
        return self.lease.queue

    @property
    def connection(self) -> str:
        """The name of the connection that the job came from: where a job that belongs to it is pushed to."""
        return self._connection

    @property
    def name(self) -> str:
        """The job's name."""
        return self._name

    @property
    def attempt(self) -> int:
        """Which attempt this is; 1 is the first."""
        return self.lease.attempt

    @property
    def deliveries(self) -> int:
        """How often the job was handed to a worker, attempts that did not count included."""
        return self.lease.deliveries

    @property
    def max_attempts(self) -> int:
        """The attempt after whose failure the job fails for good."""
        return self._max_attempts

    @property
    def fence(self) -> int:
        """A number that rises with every claim of the job: a store that remembers the highest one can refuse others."""
        return self.lease.fence

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the push gave as ``meta``; read only."""
        return self._meta

    @property
    def composition(self) -> str:
        """The id of the composition that the job belongs to, for ``app.composition()``; empty if to none."""
        return self.lease.composition

    @property
    def batch(self) -> Adds:
        """The batch that the job is a member of; raises ``WrongContext`` for one that belongs to no composition."""
        if self._batches is None or not self.lease.composition:
            raise WrongContext(f"the job {self.id} is a member of no batch that it could add to; nothing was sent")
        return self._batches(self.lease)

    @property
    def cancelled(self) -> bool:
        """Whether the attempt should stop: a cancel was requested, its time is over, or its lease was lost.

        For handlers in threads, which nothing can interrupt: look at it now and then. One that has seen it and
        returns has stopped early, and is not taken for done.
        """
        return self._stop.look()

    def progress(self, fraction: float, note: str = "") -> None:
        """Tell how far the attempt has come, from 0 to 1, for ``handle.progress()``; raises ``InvalidOption``.

        Safe from any thread, never blocks and never fails because of the store: the latest is sent within about half
        a second, and not at all if the attempt ends before. A note is cut to 500 characters; it is shown to people,
        so it must hold no secret. For jobs pushed with ``result_ttl``; for others nothing is kept.
        """
        told = checked(fraction, note)
        if self._report is not None and self.lease.keep:
            self._report(self.lease, told)

    def transaction(self, given: G) -> EffectsBlock[G]:
        """Begin a transaction that is committed together with the acknowledgement of this job.

        ``given`` is a SQLAlchemy session or connection of the database that the jobs are in, in no transaction, for
        ``with`` or, an asynchronous one, for ``async with``; or the alias of a Django database. An exception in the
        block rolls it back. Behind the block the job is done: what is raised there is logged, and nothing is retried.

        Raises ``NotSupported`` when the jobs are elsewhere, ``InvalidOption`` and ``WrongContext`` for what no such
        block can be made of, all before anything is sent; at the end of the block ``StaleLease`` when the lease is no
        longer current, and ``StoreError``: nothing was written then. What COMMIT raises is the library's own error;
        if that was done, the job is done.
        """
        if self.lease.gives:
            raise WrongContext(
                f"the job {self.id} passes its result on to the next, and so cannot be acknowledged before that is "
                "known, as current().transaction() would; nothing was sent"
            )
        return EffectsBlock(given, self._attempt or self, self._queue)

    def cancel(self) -> None:
        """Tell the handler to stop; see ``cancelled``. Safe from any thread."""
        self._stop.set()

    @contextmanager
    def enter(self) -> Iterator["Current"]:
        """Make this the attempt that ``current()`` finds within the block."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    def __repr__(self) -> str:
        return f"<attempt {self.attempt} of {self.name} {self.id} from {self.queue}>"


_current: ContextVar[Current] = ContextVar("tenure.current")


def current() -> Current:
    """Return the attempt that is running here; raises ``WrongContext`` where none is."""
    found = _current.get(None)
    if found is None:
        raise WrongContext("no job is running here: current() is for handlers, and what they call")
    return found


def running() -> Current | None:
    """Return the attempt that is running here, or None."""
    return _current.get(None)


def attempt_in(context: Context) -> Current | None:
    """Return the attempt that runs in a context, or None."""
    return context.get(_current)

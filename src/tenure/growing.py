"""Adding to a batch from inside of one of its members: ``current().batch``."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from tenure.call import Call
from tenure.compositions import CompositionStatus, JobNode, job_id
from tenure.errors import InvalidOption, NotSupported, StaleLease
from tenure.ordering import refuse_inside
from tenure.portal import blocking
from tenure.preparing import Given, Preparing, queue_of
from tenure.queue import Lease
from tenure.tracing import Departure, Tracing, departing

MOST: Final = 500
"""Calls that are added at a time: a store takes no more in one step."""


class Grows(Protocol):
    """What a batch needs of what keeps it: see ``tenure.compositions.Compositions``."""

    async def grow(self, lease: Lease, nodes: Sequence[JobNode]) -> bool:
        """Add counted jobs."""
        ...

    async def composition(self, home: str, composition_id: str) -> CompositionStatus | None:
        """Return how far it has come."""
        ...


class Growing:
    """The batch of one running job."""

    def __init__(
        self,
        preparing: Preparing,
        store: Callable[[], Grows],
        connection: str,
        tracing: Callable[[], Tracing | None],
        lease: Lease,
    ) -> None:
        self._preparing = preparing
        self._store = store
        self._connection = connection
        self._tracing = tracing
        self._lease = lease

    async def add(self, *calls: Any) -> None:
        """Add calls: see ``tenure.context.Adds``."""
        with departing(self._tracing()) as departure:
            await self._grow(self._nodes(calls, departure))

    def add_sync(self, *calls: Any) -> None:
        """Add calls, blocking."""
        with departing(self._tracing()) as departure:
            nodes = self._nodes(calls, departure)
            blocking("add", lambda: self._grow(nodes))

    async def _grow(self, nodes: Sequence[JobNode]) -> None:
        store = self._store()
        await self._check_limit(store, len(nodes))
        if not await store.grow(self._lease, nodes):
            raise StaleLease(
                f"nothing was added to composition {self._lease.composition}: it was cancelled, or job "
                f"{self._lease.id} is no member of a batch, or no longer this attempt's"
            )

    async def _check_limit(self, store: Grows, more: int) -> None:
        # Where its record is elsewhere, this is not known; the limit is there for what grows by mistake.
        status = await store.composition(self._lease.queue, self._lease.composition)
        most = self._preparing.named(self._connection).settings.max_composition_members
        if status is not None and status.total + more > most:
            raise InvalidOption(
                f"the composition would have more than {most} jobs (QUEUE_MAX_COMPOSITION_MEMBERS); nothing was added"
            )

    def _nodes(self, calls: Sequence[Any], departure: Departure) -> list[JobNode]:
        if not 0 < len(calls) <= MOST:
            raise InvalidOption(f"add() takes 1 to {MOST} calls at a time, not {len(calls)}; nothing was added")
        return [self._node(number, call, departure) for number, call in enumerate(calls)]

    def _node(self, number: int, given: Any, departure: Departure) -> JobNode:
        call = given if isinstance(given, Call) else self._preparing.bound(given)
        connection, composition = self._preparing.named(self._connection), self._lease.composition
        if call.steps:
            raise InvalidOption(f"{call.name} has steps after it: only single calls can be added; nothing was added")
        refuse_inside(call, connection)
        if queue_of(call) != self._lease.queue and not connection.capabilities.spanning:
            raise NotSupported(connection.capabilities.driver, "a composition over several queues")
        # The store gives it its number and its id; what it is called until then is its composition.
        about = Given(job_id=job_id(composition, number), named=composition, result_ttl=self._lease.keep or None)
        return JobNode(number=number, push=self._preparing.push(call, connection, departure, about))

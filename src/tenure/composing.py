"""Storing compositions: from values to what a store takes, part by part, so that no length of them is ever in memory.

What is done is written once, as generators that yield each call to the store, and driven by a loop or by a blocking
caller. So what the caller gives is read in the caller's own thread.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

from tenure.call import Call
from tenure.composed import Stored, Whose
from tenure.compositions import Compositions, NewComposition, job_id
from tenure.config import DEFAULT
from tenure.errors import CompositionIncomplete, OutcomeUnknown, StoreError, TenureError
from tenure.flow.handle import CompositionHandle
from tenure.flow.last import LastHandle
from tenure.flow.values import Composition
from tenure.growing import Growing
from tenure.handle import JobHandle, Kept
from tenure.lookout import Lookout
from tenure.naming import check_job_id, check_queue
from tenure.operations import Operations
from tenure.ordering import Order, Top
from tenure.portal import blocking
from tenure.preparing import Preparing, queue_of
from tenure.queue import Lease
from tenure.tracing import Departure, Tracing, departing
from tenure.walking import Grown, Walking

T = TypeVar("T")
R = TypeVar("R")

StoreCall = Callable[[], Coroutine[Any, Any, Any]]
Making = Generator[StoreCall, Any, T]


class Composer:
    """Stores the compositions of one application, and finds them again."""

    def __init__(
        self,
        preparing: Preparing,
        operations: Operations,
        lookout: Lookout,
        walking: Walking,
        tracing: Callable[[], Tracing | None],
    ) -> None:
        self._preparing = preparing
        self._operations = operations
        self._lookout = lookout
        self._walking = walking
        self._tracing = tracing

    def call(self, given: Any, /) -> Call[Any]:
        """Return a call, or an instance of a class job, as a call; raises ``NotRegistered``."""
        return given if isinstance(given, Call) else self._preparing.bound(given)

    async def push(self, composition: Composition, connection: str | None, /) -> CompositionHandle:
        """Store a composition: see ``Composition.push``."""
        with departing(self._tracing()) as departure:
            order = self._order(composition, connection, departure)
            if order.inline:
                return (await self._walking.walk(order.new, order.all(), order.limit, self._grown(order))).handle
            return await _driven(self._making(order))

    def push_sync(self, composition: Composition, connection: str | None, /) -> CompositionHandle:
        """Store a composition, blocking."""
        with departing(self._tracing()) as departure:
            order = self._order(composition, connection, departure)
            if order.inline:
                return self._walking.walk_sync(order.new, order.all(), order.limit, self._grown(order)).handle
            return _driven_sync(self._making(order))

    async def push_chain(self, call: Call[R], /) -> JobHandle[R]:
        """Store a call with steps; the handle is that of the last."""
        with departing(self._tracing()) as departure:
            order = self._order(call, None, departure)
            if order.inline:
                ran = await self._walking.walk(order.new, order.all(), order.limit, self._grown(order))
                return self._last(call, order, ran.handle, Kept(ran.value(len(call.steps))))
            return self._last(call, order, await _driven(self._making(order)))

    def push_chain_sync(self, call: Call[R], /) -> JobHandle[R]:
        """Store a call with steps, blocking."""
        with departing(self._tracing()) as departure:
            order = self._order(call, None, departure)
            if order.inline:
                ran = self._walking.walk_sync(order.new, order.all(), order.limit, self._grown(order))
                return self._last(call, order, ran.handle, Kept(ran.value(len(call.steps))))
            return self._last(call, order, _driven_sync(self._making(order)))

    async def find(
        self, composition_id: str, *, connection: str = DEFAULT, queue: str | None = None
    ) -> CompositionHandle | None:
        """Return the handle of a composition; None for one that is unknown, has not begun or was forgotten."""
        home = None if queue is None else check_queue(queue)
        status = await self._operations.compositions.status(
            check_job_id(composition_id), queue=home, connection=connection
        )
        return None if status is None else self._handle(status.id, status.home, connection)

    async def prune(self, *, hours: float, connection: str = DEFAULT) -> int:
        """Forget compositions that were over so many hours ago, in all queues, and return their exact number."""
        return await self._operations.compositions.prune(hours=hours, connection=connection)

    def batches(self, connection: str = DEFAULT) -> Callable[[Lease], Growing]:
        """Return what adds to the batches of jobs that a worker of this connection runs."""
        store = partial(self._operations.compositions.store, connection)
        return partial(Growing, self._preparing, store, connection, self._tracing)

    def _grown(self, order: Order) -> Grown:
        name = order.connection.name
        return lambda grows: partial(Growing, self._preparing, lambda: grows, name, self._tracing)

    # ----------------------------------------------------------------------------------------------------------- making

    def _order(self, top: Top, name: str | None, departure: Departure) -> Order:
        """Return what is to be stored, its first part prepared; raises ``Refused`` for what cannot be."""
        chosen = Order(self._preparing, top, name, departure)
        chosen.begin()
        return chosen

    def _making(self, order: Order) -> Making[CompositionHandle]:
        store, new, name = order.store(self._operations), order.new, order.connection.name
        if not (yield partial(store.prepare, new)):
            yield from self._known(store, new)
            return self._handle(new.id, new.home, name, held=True)
        try:
            for part in order.parts():
                yield partial(store.add, new.home, new.id, part)
        except TenureError as error:
            raise CompositionIncomplete(new.id, str(error)) from error
        except BaseException as error:
            error.add_note(f"composition {new.id} was given up while it was stored, and nothing of it runs")
            raise
        try:
            yield partial(store.start, new.home, new.id)
        except OutcomeUnknown as error:
            raise OutcomeUnknown(
                f"composition {new.id} is stored, and whether it has begun is not known: {error}; "
                "app.composition() tells, by this id"
            ) from error
        except StoreError as error:
            raise CompositionIncomplete(new.id, str(error)) from error
        return self._handle(new.id, new.home, name, whose=order.whose)

    def _known(self, store: Compositions, new: NewComposition) -> Making[None]:
        if (yield partial(store.composition, new.home, new.id)) is None:
            raise CompositionIncomplete(
                new.id,
                "the id is that of a composition that has not begun: somebody stores it right now, or has given it up "
                "less than a day ago; nothing was written",
            )

    def _handle(
        self, composition_id: str, home: str, connection: str, *, held: bool = False, whose: Whose | None = None
    ) -> CompositionHandle:
        source = Stored(self._operations, composition_id, home=home, connection=connection, whose=whose)
        return CompositionHandle(source, composition_id, home=home, connection=connection, held=held)

    def _last(self, call: Call[R], order: Order, handle: CompositionHandle, kept: Kept | None = None) -> JobHandle[R]:
        last, one = call.steps[-1], job_id(handle.id, len(call.steps))
        restore, queue = last.definition.restore, queue_of(last)
        if kept is None:
            return LastHandle(self._lookout, one, queue=queue, chain=handle, restore=restore)
        connection = order.connection.name
        return JobHandle(self._lookout, one, queue=queue, connection=connection, kept=kept, composition=handle.id)


async def _driven(making: Making[T]) -> T:
    """Do what a generator yields, awaiting each call."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            call = making.throw(error) if error is not None else making.send(answer)
        except StopIteration as made:
            return made.value  # type: ignore[no-any-return] # a generator's type does not reach here
        answer = error = None
        try:
            answer = await call()
        except BaseException as raised:  # noqa: BLE001 - it is the generator's to judge
            error = raised
        else:
            await asyncio.sleep(0)  # preparing holds the loop: others get their turn between two parts


def _driven_sync(making: Making[T]) -> T:
    """Do what a generator yields, each call on the background loop."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            call = making.throw(error) if error is not None else making.send(answer)
        except StopIteration as made:
            return made.value  # type: ignore[no-any-return] # as above
        answer = error = None
        try:
            answer = blocking("push", call)
        except BaseException as raised:  # noqa: BLE001 - as above
            error = raised

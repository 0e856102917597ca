"""Runs jobs in the process that pushes them, for the sync driver: one attempt, as a worker would make it.

The handler finds its services, ``current()`` and the application's middleware around it. Outcomes that speak of later
attempts (``Retry``, ``Snooze``, ``GiveUp``) reach the caller as they are; ``Discard`` ends the job quietly.
"""

import asyncio
import math
import queue
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.context import Adds, Current
from tenure.definition import JobDefinition, LoadedCall
from tenure.envelope import decode
from tenure.errors import NotRegistered
from tenure.naming import new_token, shown
from tenure.outcomes import Discard
from tenure.portal import portal
from tenure.queue import Lease, Push
from tenure.registry import Registry

if TYPE_CHECKING:
    import svcs

CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[Current, CallNext], Awaitable[Any]]
Batches = Callable[[Lease], Adds]
"""Gives a running job the batch that it is a member of."""
Threads = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a blocking function elsewhere than on the loop, and awaits it."""


class InlineRunner:
    """Runs a pushed job at once."""

    def __init__(
        self, registry: Registry, services: "Callable[[], svcs.Registry]", middleware: Iterable[Middleware]
    ) -> None:
        self._registry = registry
        self._services = services
        self._middleware = middleware

    async def run(self, push: Push) -> Any:
        """Run the job once: a coroutine function here, a plain one in a thread."""
        try:
            return await self.attempt(lease_of(push))
        except Discard:
            return None

    def run_sync(self, push: Push) -> Any:
        """Run the job once, blocking: a plain function in this thread, a coroutine function on the background loop."""
        try:
            return self.attempt_sync(lease_of(push))
        except Discard:
            return None

    async def attempt(self, lease: Lease, batches: Batches | None = None) -> Any:
        """Do what ``run`` does, and raise all that the handler raises."""
        return await self._attempt(lease, asyncio.to_thread, batches)

    def attempt_sync(self, lease: Lease, batches: Batches | None = None) -> Any:
        """Do what ``run_sync`` does, and raise all that the handler raises."""
        errands = _Errands()
        return errands.serve_while(lambda: self._attempt(lease, errands.send, batches))

    async def _attempt(self, lease: Lease, threads: Threads, batches: Batches | None) -> Any:
        envelope = decode(lease.envelope)
        definition = self._registry.get(envelope.name)
        if definition is None:
            raise NotRegistered(f"the job {shown(envelope.name)} is not registered")
        loaded = definition.load(envelope, lease.input)
        current = Current(lease, name=envelope.name, max_attempts=1, meta=envelope.meta, batches=batches)
        step: CallNext
        if definition.asynchronous:
            step = partial(self._on_the_loop, definition, loaded)
        else:
            step = partial(self._blocking, definition, loaded, threads)
        with current.enter():
            for layer in reversed(tuple(self._middleware)):
                step = partial(layer, current, step)
            return await step()

    async def _on_the_loop(self, definition: JobDefinition, call: LoadedCall) -> Any:
        if not definition.injected:
            return await call.function(*call.args, **call.kwargs)
        from svcs import Container  # noqa: PLC0415 - keeps `import tenure` light

        async with Container(self._services()) as container:
            services = {name: await container.aget(kind) for name, kind in definition.injected.items()}
            return await call.function(*call.args, **call.kwargs, **services)

    async def _blocking(self, definition: JobDefinition, call: LoadedCall, threads: Threads) -> Any:
        if not definition.injected:
            return await threads(partial(call.function, *call.args, **call.kwargs))
        from svcs import Container  # noqa: PLC0415 - keeps `import tenure` light

        def with_services() -> Any:
            with Container(self._services()) as container:
                services = {name: container.get(kind) for name, kind in definition.injected.items()}
                return call.function(*call.args, **call.kwargs, **services)

        return await threads(with_services)


class _Outcome(NamedTuple):
    """What user code came to. Carried as data: a ``SystemExit`` would end the loop that it passes through."""

    value: Any
    error: BaseException | None

    def get(self) -> Any:
        """Return the value or raise the error, here."""
        if self.error is not None:
            raise self.error
        return self.value


class _Errands:
    """Lets a coroutine on the background loop run functions in the thread that waits for it.

    A plain function then runs in the caller's own thread, where the caller's connections and transactions are.
    """

    def __init__(self) -> None:
        self._errands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    async def send(self, function: Callable[[], Any]) -> Any:
        """Run a function in the waiting thread, in the coroutine's context."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_Outcome] = loop.create_future()
        context = copy_context()

        def errand() -> None:
            try:
                outcome = _Outcome(context.run(function), None)
            except BaseException as error:  # noqa: BLE001 - carried to the coroutine, whatever it is
                outcome = _Outcome(None, error)
            loop.call_soon_threadsafe(_answered, answer, outcome)

        self._errands.put(errand)
        return (await answer).get()

    def serve_while(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Run a coroutine on the background loop and its errands in this thread; return its result."""

        async def carried() -> _Outcome:
            try:
                return _Outcome(await make(), None)
            except BaseException as error:  # noqa: BLE001 - carried to the caller, whatever it is
                return _Outcome(None, error)
            finally:
                self._errands.put(None)

        future = portal().start(carried)
        try:
            while (errand := self._errands.get()) is not None:
                errand()
        except BaseException:
            future.cancel()  # Ctrl-C in the waiting thread
            raise
        return future.result().get()


def _answered(answer: "asyncio.Future[_Outcome]", outcome: _Outcome) -> None:
    if not answer.done():
        answer.set_result(outcome)


def lease_of(push: Push, *, composition: str = "", given: bytes | None = None, gives: bool = False) -> Lease:
    """Return the lease of a job that runs where it is pushed: it never ends.

    In a composition, ``given`` is what the job before it has returned, and ``gives`` that the next takes what this
    one does.
    """
    return Lease(
        queue=push.queue,
        id=push.id,
        incarnation=1,
        token=new_token(),
        fence=1,
        deliveries=1,
        free=0,
        crashes=0,
        length=math.inf,
        deadline=math.inf,
        envelope=push.envelope,
        composition=composition,
        input=given,
        gives=gives,
    )

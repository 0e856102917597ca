"""What belongs to one event loop: its connections, its lanes, its calls under way."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tenure.drivers.redis.connection import Link, Reply
from tenure.drivers.redis.durability import USUAL, Assurance, ConfirmedCall, Known
from tenure.drivers.redis.endpoint import Endpoint
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.lanes import Lane, Lanes, NumberedCall, Patience
from tenure.drivers.redis.plain import PlainCall
from tenure.drivers.redis.pool import LinkPool
from tenure.drivers.redis.relaying import RelayedCall
from tenure.drivers.redis.scripts import Scripts
from tenure.drivers.redis.topology import Way
from tenure.drivers.redis.trouble import Trouble
from tenure.errors import ConnectionFailed, DurabilityNotReached, OutcomeUnknown

T = TypeVar("T")

HURRIED = 0.3
"""Seconds that a call to one of several queues waits for a queue that nobody takes calls for."""


class Call(Protocol):
    """What is to be sent, and what its answers mean; see ``NumberedCall``."""

    @property
    def key(self) -> bytes:
        """One of the keys it is about: where that belongs, it is sent."""
        ...

    @property
    def tied(self) -> bool:
        """The next command is about what was sent before: it must go over the same connection or not at all."""
        ...

    def command(self) -> bytes:
        """Return what is to be sent now."""
        ...

    def answered(self, reply: Reply) -> bool:
        """Take the reply: True when it is the call's outcome, False when the call is to be sent again."""
        ...

    def troubled(self, trouble: Trouble) -> float:
        """Take a trouble: return the seconds to wait before sending again, or raise the call's final error."""
        ...


class Session:
    """One event loop's access to the store."""

    def __init__(
        self,
        endpoint: Endpoint,
        keyspace: Keyspace,
        scripts: Scripts,
        patience: Patience,
        assurance: Assurance = USUAL,
        *,
        driver: str = "redis",
    ) -> None:
        self.keyspace = keyspace
        self.patience = patience
        self.assurance: Assurance = assurance
        self._known = Known(driver)
        self.links: LinkPool = LinkPool(endpoint.topology)
        self._scripts = scripts
        self._lanes = Lanes()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def write(
        self, queue: str, name: str, arguments: Sequence[bytes | str | int], *, hurried: bool = False
    ) -> Reply:
        """Make a numbered call (P1): its reply, ``ConnectionFailed``, ``StoreRefused`` or ``OutcomeUnknown``.

        ``hurried``: other queues are waiting; do not wait long for one that nobody takes calls for at the moment.
        """
        keys = self.keyspace.queue(queue)
        call = NumberedCall(self._lanes, self.patience, queue, keys, self._scripts[name], arguments)
        return await self._perform(call, HURRIED if hurried else None)

    async def write_confirmed(
        self, queue: str, name: str, arguments: Sequence[bytes | str | int], durability: int
    ) -> tuple[Reply, DurabilityNotReached | None]:
        """Make a numbered call that waits for a class of durability: its reply, and what kept it from the class.

        Raises what ``write`` raises, and ``NotSupported``, when nothing was written.
        """
        keys = self.keyspace.queue(queue)
        call = NumberedCall(self._lanes, self.patience, queue, keys, self._scripts[name], arguments)
        return await self._confirm(call, durability)

    async def relay(
        self, queue: str, lane: Lane, arguments: Sequence[bytes | str | int], durability: int
    ) -> tuple[Reply, DurabilityNotReached | None]:
        """Push by a lane that somebody else numbers: what ``write_confirmed`` returns and raises, and ``Forgotten``."""
        call = RelayedCall(lane, self.patience, queue, self.keyspace.queue(queue), self._scripts["push"], arguments)
        return await self._confirm(call, durability)

    async def _confirm(self, call: NumberedCall, durability: int) -> tuple[Reply, DurabilityNotReached | None]:
        if durability == 1:
            return await self._perform(call), None
        confirmed = ConfirmedCall(call, durability, self.assurance, self._known)
        try:
            await self._perform(confirmed)
        except DurabilityNotReached as error:
            return confirmed.reply, error
        return confirmed.reply, None

    async def run(self, queue: str, name: str, arguments: Sequence[bytes | str | int]) -> Reply:
        """Make the call of a script that may be called twice without harm."""
        script = self._scripts[name]
        return await self._perform(PlainCall.of(script, self.keyspace.queue(queue).all(script.keys), arguments))

    async def sweep(self, queue: str, leftover: bytes) -> int:
        """Take away at most 100 records of a clear; 0 when none is left."""
        keys = self.keyspace.queue(queue)
        script = self._scripts["sweep"]
        named = [leftover if name == "leftover" else keys.named(name) for name in script.keys]
        taken: int = await self._perform(PlainCall.of(script, named, ()))
        return taken

    async def command(self, *arguments: bytes | str | int, key: bytes = b"") -> Reply:
        """Send a command that may be sent twice without harm; one without a key to the server of ``key``, or any."""
        return await self._perform(PlainCall(*arguments, key=key))

    async def _perform(self, call: Call, moves: float | None = None) -> Reply:
        way: Way | None = None
        while True:
            self.check_open()
            pause: float | None = 0.0
            link: Link | None = None
            try:
                link = self.links.take_known(call.key) if way is None else None
                link = link or await self.links.take(call.key, way)
                send = link.ask if way is not None and way.asking else link.exchange
                while True:
                    reply = await send(call.command(), self.patience.answer)
                    if call.answered(reply):
                        return reply
                    if not call.tied:
                        break
                    send = link.go_on
            except Trouble as trouble:
                way = way or Way(self.links.topology, self.patience.moves if moves is None else moves)
                pause = None if call.tied else way.onward(self.links.server(link), trouble)
                if link is not None:
                    await self.links.distrust(link, trouble)
                if pause is None:
                    pause = call.troubled(trouble)
            finally:
                if link is not None:
                    await self.links.give(link)
            if pause:
                await asyncio.sleep(pause)

    @property
    def spread(self) -> bool:
        """Queues may lie on different servers, of which one may be away while the others are not."""
        return self.links.topology.spread

    async def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Read keys of several queues, in order."""
        by_slot: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            by_slot.setdefault(self.links.topology.slot_of(key), []).append(place)
        values: list[bytes | None] = [None] * len(keys)
        for places in by_slot.values():
            found = await self.command(b"MGET", *(keys[place] for place in places))
            for place, value in zip(places, found, strict=True):
                values[place] = value
        return values

    def check_open(self) -> None:
        """Raise ``ConnectionFailed`` once the driver is closed."""
        if self._closed:
            raise ConnectionFailed("the queue is closed; nothing was sent")

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run work that a cancelled caller does not take with it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Whoever waits for it gets the error all the same; if the caller was cancelled, nobody does.
            task.exception()

    async def through(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work that goes on to its end even if the caller is cancelled meanwhile (rule 5)."""
        return await self.unbroken(self.start(work))

    async def unbroken(self, task: "asyncio.Task[T]") -> T:
        """Await a task of this session without cancelling it."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and caller is not None and not caller.cancelling():
                raise OutcomeUnknown("the queue was closed while the call was under way") from None
            raise

    async def close(self) -> None:
        """End what is under way and close the connections; idempotent."""
        self._closed = True
        # Calls that are under way may end, so that their outcome is known; no new one begins.
        current = asyncio.current_task()
        try:
            if tasks := {task for task in self._tasks if task is not current}:
                _, late = await asyncio.wait(tasks, timeout=self.patience.answer)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)
        finally:
            # Also when this is cancelled: another loop asked for it, and this one is coming to its end meanwhile.
            await self.links.close()


class Holder(Protocol):
    """Whatever is built upon a session."""

    @property
    def session(self) -> Session:
        """The session."""
        ...


H = TypeVar("H", bound=Holder)


class Sessions(Generic[H]):
    """The sessions, one for each event loop of each process, made at first use.

    A child of ``fork`` finds none of its own and leaves its parent's alone, unclosed: closing a transport would take
    its socket out of the parent's event loop too. There is no lock, which a fork might copy while it is held: a loop
    has one thread, so no two make the session of one loop.
    """

    def __init__(self, make: Callable[[], H]) -> None:
        self._make = make
        self._holders: dict[tuple[int, asyncio.AbstractEventLoop], tuple[H, AsyncGenerator[None, None]]] = {}
        self._closed = False

    def current(self) -> H:
        """Return the running loop's session."""
        key = os.getpid(), asyncio.get_running_loop()
        holding = self._holders.get(key)
        if holding is not None:
            return holding[0]
        if self._closed:
            raise ConnectionFailed("the queue is closed; nothing was sent")
        for pid, loop in list(self._holders):
            if loop.is_closed() and pid == key[0]:
                self._holders.pop((pid, loop), None)
        holder = self._make()
        guard = _closed_with_its_loop(holder)
        with contextlib.suppress(StopIteration):
            # Runs it to its yield, and so makes it known to the loop.
            guard.asend(None).send(None)
        self._holders[key] = holder, guard
        return holder

    async def close(self) -> None:
        """Close this process's sessions, each in its own loop; idempotent."""
        self._closed = True
        here = asyncio.get_running_loop()
        for pid, loop in list(self._holders):
            if pid != os.getpid():
                continue
            _, guard = self._holders.pop((pid, loop))
            if loop is here:
                await guard.aclose()
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(guard.aclose(), loop)


async def _closed_with_its_loop(holder: Holder) -> AsyncGenerator[None, None]:
    """Close the session at the latest when its loop shuts down: the loop ends the generators that it knows."""
    try:
        yield
    finally:
        await holder.session.close()

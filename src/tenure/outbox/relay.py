"""``Relay``: finds what waits in the outbox, and has it moved, connection by connection."""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from tenure.app import Tenure
from tenure.config import AUTO, Settings
from tenure.drivers.sql.outbox import Line, Sending
from tenure.errors import ConfigurationError, ConnectionFailed, OutcomeUnknown, TenureError
from tenure.events import JobPushed
from tenure.outage import Outage, pause
from tenure.outbox.mover import Mover, Threaded
from tenure.outgoing import belongs, box_of
from tenure.queue import Pushed, feature
from tenure.relaying import Relays
from tenure.summaries import job_name

logger: Final = logging.getLogger("tenure.relay")

POLL: Final = 0.2
"""Seconds between two looks into an outbox that is empty."""
GRACE: Final = 5.0
"""Seconds that a call may take to end once the relay is to stop. What is broken off is repeated by the next relay."""


class Relay:
    """Moves an application's jobs from the outbox to their stores: in order per queue, each once.

    As many relays as one likes may run, on as many hosts: one at a time moves a queue, the others take over when it
    dies. Only jobs of the application's namespaces are moved.

    Args:
        app: whose settings name the outbox and the stores; its observers are told of what was pushed.
        connections: move jobs of these alone; of all when there are none.
        database: the URL of the database that holds the outbox; the settings say it otherwise.
    """

    def __init__(self, app: Tenure, *, connections: Collection[str] = (), database: str | None = None) -> None:
        self._app = app
        self._only = frozenset(connections)
        self._database = database
        self._warned: set[str] = set()
        self._moved = 0

    async def once(self) -> int:
        """Move everything that waits, and return how many jobs that were.

        Raises ``TenureError`` when something could not be moved, the rest having been tried.
        """
        outbox = self._open()
        error: TenureError | None = None
        before, never = self._moved, asyncio.Event()
        try:
            waiting = self._ours(await outbox.call(outbox.box.lines))
            for line in waiting:
                try:
                    mover = self._mover(line.target, outbox)
                    while mover is not None and await mover.move(line, never):
                        pass
                except TenureError as failed:
                    error = error or failed
        finally:
            await outbox.close()
        if error is not None:
            raise error
        return self._moved - before

    async def run(self, stopping: asyncio.Event) -> int:
        """Move what comes until the event is set, and return how many jobs that were.

        Neither the outbox nor a store that fails ends it: it tries again, after 0.1 seconds growing to 2. A call that
        is under way when it is to stop has five seconds to end. Raises ``ConfigurationError``.
        """
        before = self._moved
        carriers: dict[str, _Carrier] = {}
        async with contextlib.AsyncExitStack() as stack:
            outbox = self._open()
            stack.push_async_callback(outbox.close)
            try:
                await self._watch(outbox, carriers, stack, stopping)
            finally:
                stopping.set()
                for carrier in carriers.values():
                    carrier.end()
                if carriers:
                    await asyncio.wait([carrier.task for carrier in carriers.values()], timeout=GRACE)
        return self._moved - before

    async def _watch(
        self,
        outbox: Threaded,
        carriers: dict[str, "_Carrier"],
        stack: contextlib.AsyncExitStack,
        stopping: asyncio.Event,
    ) -> None:
        outage = Outage("looking into the outbox", logger=logger)
        while not stopping.is_set():
            try:
                waiting = self._ours(await outbox.call(outbox.box.lines))
            except TenureError as error:
                await pause(outage.failed(error), stopping)
                continue
            outage.succeeded()
            for target in dict.fromkeys(line.target for line in waiting):
                if target not in carriers and (carrier := self._carrier(target, stopping)) is not None:
                    carriers[target] = carrier
                    stack.push_async_callback(carrier.close)
            for target, carrier in carriers.items():
                carrier.give([line for line in waiting if line.target == target])
            await pause(POLL, stopping)

    # -------------------------------------------------------------------------------------------------- what is whose

    @property
    def _settings(self) -> Settings:
        settings = self._app.settings
        return settings if self._database is None else msgspec.structs.replace(settings, outbox_url=self._database)

    def _open(self) -> Threaded:
        return Threaded(box_of(self._settings))

    def _ours(self, lines: Sequence[Line]) -> list[Line]:
        settings = self._settings
        return [line for line in lines if (not self._only or line.target in self._only) and belongs(settings, line)]

    def _carrier(self, target: str, stopping: asyncio.Event) -> "_Carrier | None":
        outbox = self._open()  # opens nothing yet
        mover = self._mover(target, outbox)
        return None if mover is None else _Carrier(target, mover, outbox, stopping)

    def _mover(self, target: str, outbox: Threaded) -> Mover | None:
        """Return what moves jobs of a connection; None, and a word in the log, when there is no such store."""
        try:
            if self._app.infrastructure(target).configured == AUTO:
                self._warn(target, "it is 'auto', and might choose another store than a relay before this one")
                return None
            store: Any = self._app.queue(target)
        except ConfigurationError as error:
            self._warn(target, str(error))
            return None
        if not feature(store, Relays):
            self._warn(target, f"its driver {store.capabilities.driver!r} takes no jobs from a relay")
            return None
        return Mover(store, outbox, self._told)

    def _warn(self, target: str, problem: str) -> None:
        if target not in self._warned:
            self._warned.add(target)
            logger.error("jobs for the connection %s stay in the outbox: %s", target, problem)

    def _told(self, sending: Sending, outcomes: Sequence[Pushed]) -> None:
        self._moved += len(sending.jobs)
        if self._app.events.wants(JobPushed):
            for job, outcome in zip(sending.jobs, outcomes, strict=True):
                held = outcome.outcome == "held"
                self._app.events.emit(JobPushed(queue=job.queue, id=job.id, name=job_name(job.envelope), held=held))


class _Carrier:
    """A task that moves the lines of one connection, and holds up nobody else when its store is away."""

    def __init__(self, target: str, mover: Mover, outbox: Threaded, stopping: asyncio.Event) -> None:
        self._target = target
        self._mover = mover
        self._outbox = outbox
        self._stopping = stopping
        self._lines: list[Line] = []
        self._given = asyncio.Event()
        self._outages: dict[str, Outage] = {}
        self.task: asyncio.Task[None] = asyncio.create_task(self._run(), name=f"relay-{target}")

    def give(self, lines: list[Line]) -> None:
        """Tell which lines there are; raises what the task ended with, if it has."""
        if self.task.done():
            self.task.result()
        self._lines = lines
        if lines:
            self._given.set()

    def end(self) -> None:
        """Let the task look whether it is to stop."""
        self._given.set()

    async def close(self) -> None:
        """End the task, if it has not ended, and close the outbox; raises what the task ended with."""
        self.task.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self.task
        finally:
            await self._outbox.close()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self._given.wait()
            self._given.clear()
            delay = await self._round()
            while delay is not None and not self._stopping.is_set():
                await pause(delay, self._stopping)
                delay = await self._round()

    async def _round(self) -> float | None:
        """Give each line its turn. Return after how many seconds another round is due, None when all is moved."""
        again: float | None = None
        for line in list(self._lines):
            if self._stopping.is_set():
                return None
            outage = self._outages.setdefault(
                line.queue, Outage(f"moving jobs to queue {line.queue} of connection {self._target}", logger=logger)
            )
            try:
                moved = await self._mover.move(line, self._stopping)
            except TenureError as error:
                delay = outage.failed(error)
                if isinstance(error, ConnectionFailed | OutcomeUnknown):
                    return delay  # it would be the same with the other lines
                again = delay if again is None else min(again, delay)
            else:
                outage.succeeded()
                again = 0.0 if moved else again
        return again

"""The settle loop: outcomes go to the store in groups, and each goes until the store has answered.

While one call is in flight, outcomes queue up; the next call takes them all. A store that does not answer is asked
again; meanwhile the keeper renews those leases. An answer is needed even for a lease past its deadline: while nobody
has reclaimed it, it may still settle (P3), and if somebody has, the token makes the call harmless.

One queue can fail alone (a key of another type, a node of a cluster that is away). So after a failure each queue is
asked for itself until it has answered; the others go on together.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from tenure.effects import Effects
from tenure.errors import OutcomeUnknown, StoreError
from tenure.events import JobSucceeded
from tenure.outage import Outage, delay_after
from tenure.queue import Ack, Failure, Queue, Settled, Settlement
from tenure.worker.held import Held, HeldLeases, Stage
from tenure.worker.reports import Reports

SPREAD: Final = 0.05
"""Seconds between the tries of different queues, on average, while none of them succeeds."""
GROUP: Final = 500
"""Settlements in one call, at most."""


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """An outcome on its way to the store."""

    held: Held
    settlement: Settlement
    failure: Failure | None


class Settler:
    """Settles what attempts hand in."""

    def __init__(self, queue: Queue, leases: HeldLeases, reports: Reports, settled: Callable[[int], None]) -> None:
        self._queue = queue
        self._leases = leases
        self._reports = reports
        self._settled = settled
        self.outage: Outage = Outage("settling")
        """What its store calls came to."""
        self._waiting: list[Outgoing] = []
        self._in_flight = 0
        self._apart: dict[str, list[Outgoing]] = {}
        """By queue: what could not be settled together with the other queues."""
        self._stopped = asyncio.Event()
        self._wake: asyncio.Future[None] | None = None
        self._drained: asyncio.Event = asyncio.Event()
        self.answered: int = 0
        """Settlements that the store has answered."""
        self.calls: int = 0
        """Calls that were answered, or failed as calls may; the watchdog looks whether they go on."""

    def put(self, held: Held, settlement: Settlement, failure: Failure | None, now: float) -> None:
        """Hand in the outcome of a lease; from now on a lost lease is told by the settlement's own answer."""
        held.enter(Stage.SETTLING, now)
        if held.effects is Effects.DONE:
            # Acknowledged with the handler's own writes: there is nothing to send.
            self._take([Outgoing(held, Ack(held.lease), None)], [Settled.DONE], unknown=False)
            return
        self._waiting.append(Outgoing(held, settlement, failure))
        self._look()

    @property
    def open(self) -> int:
        """How many outcomes the store has not answered."""
        return len(self._waiting) + self._in_flight + sum(map(len, self._apart.values()))

    async def run(self) -> None:
        """Settle until stopped, and then what is left. Cancel it to leave that to the leases' ends."""
        async with asyncio.TaskGroup() as lanes:
            while True:
                group = self._group()
                if group:
                    self._drained.clear()
                    self._in_flight = len(group)
                    error = await self._together(group)
                    self._in_flight = 0
                    if error is not None:
                        self._part(group, error, lanes)
                    continue
                if not self.open:
                    self._drained.set()
                    if self._stopped.is_set():
                        return
                await self._something()

    async def drained(self, seconds: float) -> bool:
        """Wait until everything is answered; False when the time is over first."""
        if not self.open:
            return True
        self._drained.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._drained.wait()
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """Make ``run`` return once everything is answered."""
        self._stopped.set()
        self._look()

    def _look(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _something(self) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _group(self) -> list[Outgoing]:
        """Take what goes in the next call."""
        group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
        if not self._apart:
            return group
        together: list[Outgoing] = []
        for outgoing in group:
            self._apart.get(outgoing.held.lease.queue, together).append(outgoing)
        return together

    async def _together(self, group: list[Outgoing]) -> StoreError | None:
        """Settle a group once, whatever its queues; return what kept the store from answering."""
        try:
            answers = await self._settle(group)
        except StoreError as error:
            return error
        self._take(group, answers, unknown=False)
        return None

    async def _settle(self, group: list[Outgoing]) -> Sequence[Settled]:
        try:
            return await self._queue.settle([outgoing.settlement for outgoing in group])
        finally:
            self.calls += 1

    def _part(self, group: list[Outgoing], error: StoreError, lanes: asyncio.TaskGroup) -> None:
        """Let each queue of a group go its own way: one of them may fail for long, and must not hold up the others."""
        self.outage.failed(error)
        parts: dict[str, list[Outgoing]] = {}
        for outgoing in group:
            parts.setdefault(outgoing.held.lease.queue, []).append(outgoing)
        self._apart.update(parts)
        for queue in parts:
            lanes.create_task(self._alone(queue, unknown=isinstance(error, OutcomeUnknown)))

    async def _alone(self, queue: str, *, unknown: bool) -> None:
        """Settle what one queue has, however long it takes; ``unknown``: an earlier answer for the first was lost."""
        outgoings = self._apart[queue]
        number, failures = len(outgoings), 1
        await self._pause(failures)
        while outgoings:
            group = outgoings[:number]
            try:
                answers = await self._settle(group)
            except StoreError as error:
                unknown = unknown or isinstance(error, OutcomeUnknown)
                failures += 1
                self.outage.failed(error)
                await self._pause(failures)
                continue
            del outgoings[: len(group)]  # more may have come while the call was under way
            self._take(group, answers, unknown=unknown)
            number, failures, unknown = GROUP, 0, False
        del self._apart[queue]
        if not self._apart:
            self.outage.succeeded()
        self._look()

    async def _pause(self, failures: int) -> None:
        # Of many queues not all at once: when the whole store is away, each try is a connection.
        await asyncio.sleep(delay_after(failures) + random.uniform(0, SPREAD * (len(self._apart) - 1)))  # noqa: S311

    def _take(self, group: list[Outgoing], answers: Sequence[Settled], *, unknown: bool) -> None:
        if len(answers) != len(group):
            raise RuntimeError(f"the driver answered {len(answers)} of {len(group)} settlements")
        quiet = self._reports.quiet(JobSucceeded)
        stale: list[tuple[Held, Settlement]] = []
        unsure: list[Held] = []
        """Whose handler's COMMIT may have been done, so that the lease is gone because the job is."""
        for outgoing, answer in zip(group, answers, strict=True):
            held = outgoing.held
            held.stage = Stage.ENDED
            self._leases.remove(held)
            if quiet and answer is Settled.DONE and type(outgoing.settlement) is Ack:
                continue
            if answer is Settled.STALE and held.effects >= Effects.CLOSING:
                unsure.append(held)
                continue
            if answer is Settled.STALE:
                stale.append((held, outgoing.settlement))
                continue
            self._reports.settled(held, outgoing.settlement, answer, outgoing.failure)
        if unknown:
            # An earlier sending whose answer was lost may have done it: neither event would be known to be true.
            unsure += [held for held, _ in stale]
        else:
            self._reports.stale(stale)
        self._reports.outcomes_unknown(unsure)
        self.answered += len(group)
        self._settled(len(group))

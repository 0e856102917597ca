"""The settle loop: outcomes go to the store in groups, and each goes until the store has answered.

While one call is in flight, outcomes queue up; the next call takes them all. A store that does not answer is asked
again; meanwhile the keeper renews those leases. An answer is needed even for a lease past its deadline: while nobody
has reclaimed it, it may still settle (P3), and if somebody has, the token makes the call harmless.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from tenure.errors import OutcomeUnknown, StoreError
from tenure.events import JobSucceeded
from tenure.queue import Ack, Failure, Queue, Settled, Settlement
from tenure.worker.held import Held, HeldLeases, Stage
from tenure.worker.outage import Outage
from tenure.worker.reports import Reports

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
        self._outage = Outage("settling")
        self._waiting: list[Outgoing] = []
        self._in_flight = 0
        self._stopped = asyncio.Event()
        self._wake: asyncio.Future[None] | None = None
        self._drained: asyncio.Event = asyncio.Event()
        self.answered: int = 0
        """Settlements that the store has answered."""

    def put(self, held: Held, settlement: Settlement, failure: Failure | None, now: float) -> None:
        """Hand in the outcome of a lease; from now on a lost lease is told by the settlement's own answer."""
        held.enter(Stage.SETTLING, now)
        self._waiting.append(Outgoing(held, settlement, failure))
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    @property
    def open(self) -> int:
        """How many outcomes the store has not answered."""
        return len(self._waiting) + self._in_flight

    async def run(self) -> None:
        """Settle until stopped, and then what is left. Cancel it to leave that to the leases' ends."""
        while True:
            if not self._waiting:
                self._drained.set()
                if self._stopped.is_set():
                    return
                await self._something()
                continue
            self._drained.clear()
            group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
            self._in_flight = len(group)
            answers, unknown = await self._settle(group)
            self._in_flight = 0
            self._take(group, answers, unknown=unknown)

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
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _something(self) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    async def _settle(self, group: list[Outgoing]) -> tuple[Sequence[Settled], bool]:
        """Return the store's answers, however long it takes, and whether an earlier answer was lost."""
        settlements = [outgoing.settlement for outgoing in group]
        unknown = False
        while True:
            try:
                answers = await self._queue.settle(settlements)
            except StoreError as error:
                unknown = unknown or isinstance(error, OutcomeUnknown)
                await asyncio.sleep(self._outage.failed(error))
                continue
            self._outage.succeeded()
            if len(answers) != len(settlements):
                raise RuntimeError(f"the driver answered {len(answers)} of {len(settlements)} settlements")
            return answers, unknown

    def _take(self, group: list[Outgoing], answers: Sequence[Settled], *, unknown: bool) -> None:
        quiet = self._reports.quiet(JobSucceeded)
        for outgoing, answer in zip(group, answers, strict=True):
            held = outgoing.held
            held.stage = Stage.ENDED
            self._leases.remove(held)
            if quiet and answer is Settled.DONE and type(outgoing.settlement) is Ack:
                continue
            if unknown and answer is Settled.STALE:
                # An earlier sending whose answer was lost may have done it: neither event would be known to be true.
                self._reports.outcome_unknown(held)
                continue
            self._reports.settled(held, outgoing.settlement, answer, outgoing.failure)
        self.answered += len(group)
        self._settled(len(group))

"""The claim loop: asks the store for as many jobs as there is room for, and hands them on.

It claims while the previous jobs run. A claim that waits is cancelled politely when the worker stops; what a claim
brings after that is given back free of charge.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from tenure.errors import StoreError
from tenure.outage import pause
from tenure.queue import Aside, Claimed, Lease, Queue
from tenure.worker.held import Held, HeldLeases
from tenure.worker.limits import Limits
from tenure.worker.line import Line
from tenure.worker.marker import RestartMarker
from tenure.worker.options import ExitReason
from tenure.worker.rota import Asked, Rota
from tenure.worker.shares import ordering

T = TypeVar("T")

MOST: Final = 500
"""Jobs that one claim asks for, at most."""


class ClaimTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What is claimed, and for how long."""

    queues: Sequence[str]
    lease: float
    wait: float
    crash_limit: int
    holder: str
    weights: Mapping[str, int] | None = None
    """Each queue's share; None is strict order."""


class Claims:
    """Claims for one worker until it is stopped or a limit is reached."""

    def __init__(
        self,
        queue: Queue,
        terms: ClaimTerms,
        *,
        line: Line,
        leases: HeldLeases,
        limits: Limits,
        marker: RestartMarker,
        give_back: Callable[[Held], None],
        batch: Callable[[], None],
        unreadable: Callable[[Sequence[Aside]], None],
    ) -> None:
        self._queue = queue
        self._terms = terms
        self._line = line
        self._leases = leases
        self._limits = limits
        self._marker = marker
        self._give_back = give_back
        self._batch = batch
        self._unreadable = unreadable
        self._rota = Rota(terms.queues)
        self._order = ordering(terms.weights)
        self._stopped = asyncio.Event()
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._call: asyncio.Task[Any] | None = None
        self.calls: int = 0
        """Claims that were answered, or failed as claims may; the watchdog looks whether they go on."""
        self.failed: int = 0
        """Those that failed."""
        self.ready: bool = False
        """Whether the last claim that was due succeeded, of one queue at least."""

    async def run(self) -> ExitReason | None:
        """Claim until a limit is reached or a restart is asked for, and return that reason; None when stopped."""
        while not self._stopped.is_set():
            if not self._resumed.is_set():
                await self._resumed.wait()
                continue
            room = min(self._limits.allowed(await self._line.wait_for_room()), MOST)
            if room > 0 and not self._held_back and await self._restart():
                return ExitReason.RESTART
            if room <= 0 or self._held_back:
                continue
            # Asked before the claim is sent: a job that still ran then may have pushed another since.
            idle = len(self._leases) == 0
            asked = self._rota.next(self._limits.wait(self._terms.wait, idle=idle))
            claimed = await self._claim(room, asked)
            if claimed is None:
                continue
            self._take(claimed)
            if self._stopped.is_set():
                break
            # An answer of some queues does not tell what the others hold.
            known = asked.whole or bool(claimed.leases)
            reason = self._limits.after_claim(len(claimed.leases), idle=idle) if known else None
            if reason is ExitReason.MAX_JOBS:
                # Those that were claimed ahead are counted, so they are to run; the end would give them back.
                await self._line.begun()
            if reason is not None:
                return reason
        return None

    def stop(self) -> None:
        """Claim no more; a claim that waits is cancelled, and the store keeps or gets back what it would bring."""
        self._stopped.set()
        self._resumed.set()
        self._line.close()
        self._break_off()

    def quiet(self) -> None:
        """Claim no more for now."""
        self._resumed.clear()
        self._break_off()

    def _break_off(self) -> None:
        # Once: a second cancellation would end the wait for what the first one has it give back.
        if self._call is not None and not self._call.cancelling():
            self._call.cancel()

    @property
    def waits_rightly(self) -> bool:
        """Whether no claim is due: no free slot, quiet, stopped, or a store that does not answer."""
        idle = not self._resumed.is_set() or self._stopped.is_set()
        return idle or not self._line.due or self._rota.failing

    @property
    def outages(self) -> int:
        """How often claims began to fail, of one queue or of all."""
        return self._rota.outages

    @property
    def _held_back(self) -> bool:
        return self._stopped.is_set() or not self._resumed.is_set()

    async def _made(self, call: Coroutine[Any, Any, T]) -> T | None:
        """Make a call that stopping and going quiet cancel; None when they did."""
        self._call = asyncio.get_running_loop().create_task(call)
        try:
            answer: T = await self._call
        except asyncio.CancelledError:
            if not self._call.cancelled() or not self._held_back:
                raise  # it is this loop that is being cancelled, not its call
            return None
        finally:
            self._call = None
        return answer

    async def _restart(self) -> bool:
        """Tell whether it is time to look for a restart, and one was asked for."""
        # Not while claims fail: that the store is away is known, and the next claim tells when it is back.
        if not self._marker.due or self._rota.failing:
            return False
        return bool(await self._made(self._marker.changed()))

    async def _claim(self, room: int, asked: Asked) -> Claimed | None:
        terms = self._terms
        queues = self._order.order(asked.queues)
        most = self._order.most(queues, room)
        claim = self._queue.claim(
            queues,
            limit=most,
            lease=terms.lease,
            wait=asked.wait,
            crash_limit=terms.crash_limit,
            suspects=not self._leases.suspect,
            holder=terms.holder,
        )
        try:
            claimed = await self._made(claim)
        except StoreError as error:
            delay = self._rota.failed(asked.queues, error)
            self.ready = not self._rota.failing
            self.calls += 1
            self.failed += 1
            await pause(delay, self._stopped)
            return None
        if claimed is None:
            return None
        self._rota.answered(asked.queues)
        self._order.took(queues, most, claimed.leases)
        self.ready = True
        self.calls += 1
        return claimed

    def _take(self, claimed: Claimed) -> None:
        if claimed.unreadable:
            self._unreadable(claimed.unreadable)
        if not claimed.leases:
            return
        self._batch()
        now = time.monotonic()
        for lease in claimed.leases:
            held = self._hold(lease, now)
            if self._held_back:
                self._give_back(held)
            else:
                self._line.offer(held)

    def _hold(self, lease: Lease, now: float) -> Held:
        held = Held(lease, now)
        self._leases.add(held)
        return held

"""Claims: look, wait for a wake-up, look again; and nothing that a cancelled caller has claimed stays leased."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple

from tenure import naming
from tenure.drivers.redis import record
from tenure.drivers.redis.retiring import Retirement
from tenure.drivers.redis.session import Session
from tenure.drivers.redis.settling import Settlements
from tenure.drivers.redis.sweeping import Sweeper
from tenure.drivers.redis.waiting import Waiter
from tenure.errors import StoreError, StoreRefused
from tenure.queue import Aside, Claimed, Lease, Release

MOST_LEASES = 1000
"""What one call leases at most."""
LOOK_EVERY = 1.0
"""Seconds after which a waiting claim looks by itself: what a lost wake-up costs."""
HELD_UP = 3.0
"""Seconds for which a cancelled caller waits until what it has claimed is given back; with a server that has gone, that
goes on in the background, and in the worst case the leases lapse."""


class Terms(NamedTuple):
    """On what terms to claim."""

    length: int
    """The lease in ms."""
    crash_limit: int
    suspects: bool
    holder: str | None


class Found(NamedTuple):
    """What one look at the queues brought."""

    leases: list[Lease]
    unreadable: list[Aside]
    next_due: float | None
    at_once: bool
    """There may be more, and looking again will tell."""


class Claims:
    """The claims of one event loop."""

    def __init__(
        self, session: Session, settlements: Settlements, sweeper: Sweeper, retirement: Retirement | None
    ) -> None:
        self._session = session
        self._settlements = settlements
        self._sweeper = sweeper
        self._retirement = retirement
        self._consumer = naming.new_token()
        """The name that a server which keeps names knows this process by, unless it has one as a holder."""
        self._waiter = Waiter(session)

    async def claim(self, queues: Sequence[str], limit: int, terms: Terms, wait: float) -> Claimed:
        """Lease up to ``limit`` jobs; see ``tenure.queue.Queue.claim``."""
        until = time.monotonic() + wait
        while True:
            found = await self._held_through(self._look(queues, min(limit, MOST_LEASES), terms))
            left = until - time.monotonic()
            if found.leases or found.unreadable or (left <= 0 and not found.at_once):
                return Claimed(leases=found.leases, unreadable=found.unreadable, next_due=found.next_due)
            if not found.at_once:
                seconds = min(left, LOOK_EVERY)
                if found.next_due is not None:
                    seconds = min(seconds, found.next_due)
                if seconds > 0:
                    await self._waiter.wait(queues, seconds)

    async def _held_through(self, look: Coroutine[Any, Any, Found]) -> Found:
        """Await a look; when the caller is cancelled meanwhile, give back what it brings (rule 5)."""
        task = self._session.start(look)
        try:
            return await self._session.unbroken(task)
        except asyncio.CancelledError:
            back = self._session.start(self._give_back(task))
            until = time.monotonic() + HELD_UP
            while not back.done() and (left := until - time.monotonic()) > 0:
                try:
                    await asyncio.wait({back}, timeout=left)
                except asyncio.CancelledError:
                    # Cancelled again: the first one is on its way already, as soon as nothing is held any more.
                    continue
            raise

    async def _give_back(self, task: "asyncio.Task[Found]") -> None:
        await asyncio.wait({task})
        if task.cancelled() or task.exception() is not None:
            return
        releases = [Release(lease=lease, free=True) for lease in task.result().leases]
        try:
            await self._settlements.settle(releases)
        except StoreError:
            # Nobody can be told; they lapse, and the next claim recovers them.
            return

    async def _look(self, queues: Sequence[str], limit: int, terms: Terms) -> Found:
        leases: list[Lease] = []
        unreadable: list[Aside] = []
        next_due: float | None = None
        at_once = False
        failed: StoreError | None = None
        for queue in queues:
            suspects = terms.suspects and not any(lease.suspect for lease in leases)
            try:
                hurried = len(queues) > 1
                reply = await self._call(queue, limit - len(leases), terms, suspects=suspects, hurried=hurried)
            except StoreError as error:
                # What other queues bring is not given up for one that failed; the next claim tells. On a cluster the
                # nodes of those behind it may be well.
                failed = failed or error
                if not self._session.spread or (isinstance(error, StoreRefused) and error.code == "CLUSTERDOWN"):
                    break
                continue
            brought, set_aside, due, more = reply
            leases += brought
            unreadable += set_aside
            at_once = at_once or more
            if due is not None:
                next_due = due if next_due is None else min(next_due, due)
            if len(leases) >= limit:
                break
        if failed is not None and not leases and not unreadable:
            raise failed
        return Found(leases, unreadable, next_due, at_once)

    async def _call(self, queue: str, limit: int, terms: Terms, *, suspects: bool, hurried: bool) -> Found:
        token = naming.new_token(terms.holder)
        before = time.monotonic()
        _, due, more, leftover, marks, aside, *pairs = await self._session.write(
            queue,
            "claim",
            (limit, terms.length, token, b"1" if suspects else b"0", terms.crash_limit, terms.holder or self._consumer),
            hurried=hurried,
        )
        # Counted from before the call was sent: this process stops trusting a lease before the store does (P8).
        deadline = before + terms.length / 1000
        if leftover:
            self._sweeper.sweep(queue, leftover)
        if self._retirement is not None:
            self._retirement.look(queue)
        leases = [
            record.lease(queue, member, stored, mark, deadline)
            for member, stored, mark in zip(pairs[::2], pairs[1::2], marks.decode(), strict=True)
        ]
        set_aside = [Aside(queue, job_id.decode(errors="replace")) for job_id in aside]
        next_due = int(due) / 1000 if due else None
        return Found(leases, set_aside, next_due, more == b"1")

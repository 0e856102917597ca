"""``MemoryQueue``: the contract over ledgers in memory, from any thread and any event loop of one process."""

import asyncio
import logging
import os
import threading
from collections.abc import Iterable, Sequence

from tenure.clock import Clock, SystemClock
from tenure.drivers.memory.ledger import Ledger
from tenure.errors import InvalidOption
from tenure.queue import (
    DEFAULT_CRASH_LIMIT,
    Cancelled,
    Capabilities,
    Claimed,
    Counts,
    FailedRecord,
    JobState,
    Lease,
    Push,
    Pushed,
    Release,
    Renewal,
    Settled,
    Settlement,
)
from tenure.waiting import Waiters

log: logging.Logger = logging.getLogger("tenure.drivers.memory")

LONGEST_SLEEP = 1.0
"""Seconds after which a waiting claim looks again in any case: what a lost wake-up costs at most."""


class Store:
    """All ledgers of one process, behind one lock."""

    def __init__(self, clock: Clock) -> None:
        self.pid: int = os.getpid()
        self.waiters: Waiters = Waiters()
        self.lock: threading.Lock = threading.Lock()
        self.ledgers: dict[str, Ledger] = {}
        self._clock = clock

    def ledger(self, queue: str) -> Ledger:
        """Return the queue's ledger, made when there is none. Call it with the lock held."""
        ledger = self.ledgers.get(queue)
        if ledger is None:
            ledger = self.ledgers[queue] = Ledger(queue, self._clock)
        return ledger

    def known(self, queue: str) -> Ledger:
        """Return the queue's ledger, or an empty one for a queue that nothing was pushed to."""
        return self.ledgers.get(queue) or Ledger(queue, self._clock)

    def push(self, jobs: Sequence[Push]) -> list[Pushed]:
        """Store the jobs and wake who waits for them."""
        with self.lock:
            pushed = [Pushed(job.id, self.ledger(job.queue).push(job)) for job in jobs]
        self.waiters.wake({job.queue for job in jobs})
        return pushed

    def renew(self, leases: Sequence[Lease]) -> list[Renewal]:
        """Extend the leases that are current."""
        with self.lock:
            return [self.known(lease.queue).renew(lease) for lease in leases]


class MemoryQueue:
    """Jobs in the memory of this process: gone when it ends, and unknown to every other.

    A process that is forked off begins with an empty store and says so once in the log: the parent still has its
    jobs, and would run each a second time if the child kept a copy.

    Steps take microseconds, so an event loop waits for the lock itself rather than for a thread that does. No call is
    numbered: an answer cannot be lost on the way, hence no settlement is ever ``repeated``.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._current = Store(self._clock)

    @property
    def capabilities(self) -> Capabilities:
        """What this driver can do."""
        return Capabilities(driver="memory", shared=False)

    def _store(self) -> Store:
        store = self._current
        if store.pid != os.getpid():
            # The lock may have been held by a thread that the child does not have: nothing of the old is touched.
            store = self._current = Store(self._clock)
            log.warning("this process was forked off: its memory queue is empty, the jobs stay with the parent")
        return store

    async def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store each job once (P1), and answer for each in order."""
        return self._store().push(jobs)

    async def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease: float,
        wait: float,
        crash_limit: int = DEFAULT_CRASH_LIMIT,
        suspects: bool = True,
    ) -> Claimed:
        """Lease up to ``limit`` jobs for ``lease`` seconds: see ``Queue.claim``.

        Nothing is awaited between the taking and the return, so a cancelled claim has taken nothing.
        """
        if limit < 1 or not lease > 0 or not wait >= 0:
            raise InvalidOption(f"a claim of {limit} jobs for {lease} s, waiting {wait} s, cannot be; nothing was sent")
        loop = asyncio.get_running_loop()
        end = loop.time() + wait
        store = self._store()
        with store.waiters.waiting(queues) as waiter:
            while True:
                waiter.reset()
                claimed = self._take(store, queues, limit, lease, crash_limit, suspects=suspects)
                left = end - loop.time()
                if claimed.leases or left <= 0:
                    return claimed
                due = LONGEST_SLEEP if claimed.next_due is None else claimed.next_due
                await waiter.sleep(min(left, due, LONGEST_SLEEP))

    def _take(
        self, store: Store, queues: Sequence[str], limit: int, length: float, crash_limit: int, *, suspects: bool
    ) -> Claimed:
        sent = self._clock.monotonic()
        leases: list[Lease] = []
        with store.lock:
            ledgers = [(queue, store.ledgers[queue]) for queue in dict.fromkeys(queues) if queue in store.ledgers]
            moved = sum(ledger.recover(crash_limit) + ledger.promote(crash_limit) for _, ledger in ledgers)
            for _, ledger in ledgers:
                leases += ledger.take(
                    limit - len(leases),
                    length=length,
                    crash_limit=crash_limit,
                    suspects=suspects and not any(lease.suspect for lease in leases),
                    sent=sent,
                )
            dues = [due for _, ledger in ledgers if (due := ledger.next_due()) is not None]
            left_over = [queue for queue, ledger in ledgers if ledger.has_ready]
        if left_over and (leases or moved):
            # Only a claim that changed something passes the rest on: two that may not take what is there would
            # otherwise wake each other for ever.
            store.waiters.wake(left_over)
        return Claimed(leases=leases, next_due=min(dues, default=None))

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        return self._store().renew(leases)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        """End each lease, and answer for each in order. A lease named twice is settled once; the second is stale."""
        store = self._store()
        with store.lock:
            settled = [store.known(settlement.lease.queue).settle(settlement) for settlement in settlements]
        store.waiters.wake({s.lease.queue for s in settlements if isinstance(s, Release)})
        return settled

    async def cancel(self, queue: str, ids: Sequence[str]) -> Sequence[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order. Failed jobs are not found."""
        store = self._store()
        with store.lock:
            return [store.known(queue).cancel(job_id) for job_id in ids]

    async def clear(self, queue: str) -> int:
        """Remove all ready and delayed jobs, and return their exact number. What is leased stays."""
        store = self._store()
        with store.lock:
            return store.known(queue).clear()

    async def counts(self, queue: str) -> Counts:
        """Count the queue's jobs by state, at a cost that does not grow with them."""
        store = self._store()
        with store.lock:
            return store.known(queue).counts()

    def keeper(self) -> "MemoryKeeper":
        """Return a new keeper."""
        return MemoryKeeper(self)

    def pusher(self) -> "MemoryPusher":
        """Return a new blocking pusher."""
        return MemoryPusher(self)

    def renew_now(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Renew without an event loop; for the keeper."""
        return self._store().renew(leases)

    def push_now(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Push without an event loop; for the pusher."""
        return self._store().push(jobs)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close, and the jobs stay for as long as this object does."""

    # ---------------------------------------------------------------------------------------------- reading, operating

    async def queues(self) -> Sequence[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        store = self._store()
        with store.lock:
            return sorted(store.ledgers)

    async def states(self, queue: str, ids: Sequence[str]) -> Sequence[JobState]:
        """Tell where each job is, in order, in one step."""
        store = self._store()
        with store.lock:
            return [store.known(queue).state(job_id) for job_id in ids]

    async def failed(self, queue: str, *, limit: int = 100, offset: int = 0) -> Sequence[FailedRecord]:
        """Return failed jobs of the queue, oldest first."""
        store = self._store()
        with store.lock:
            return store.known(queue).failed(limit, offset)

    async def failed_record(self, queue: str, job_id: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        store = self._store()
        with store.lock:
            return store.known(queue).failed_record(job_id)

    async def retry(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Make each a new ready job and remove it from the failed store, guarded by its incarnation."""
        store = self._store()
        with store.lock:
            retried = [store.known(record.queue).retry(record) for record in records]
        store.waiters.wake(_queues(records))
        return retried

    async def forget(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Remove each from the failed store; False for one that is no longer there."""
        store = self._store()
        with store.lock:
            return [store.known(record.queue).forget(record) for record in records]


class MemoryKeeper:
    """Renews leases from any thread."""

    def __init__(self, queue: MemoryQueue) -> None:
        self._queue = queue

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        return self._queue.renew_now(leases)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class MemoryPusher:
    """Pushes from any thread."""

    def __init__(self, queue: MemoryQueue) -> None:
        self._queue = queue

    def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store the jobs: see ``Queue.push``."""
        return self._queue.push_now(jobs)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _queues(records: Iterable[FailedRecord]) -> set[str]:
    return {record.queue for record in records}

"""All queues of one process, behind one lock."""

import os
import threading
from collections.abc import Sequence

from tenure.clock import Clock
from tenure.drivers.memory.ledger import Ledger
from tenure.queue import Claimed, Lease, Push, Pushed, Renewal
from tenure.waiting import Waiters


class Store:
    """The ledgers, and what operators told the workers."""

    def __init__(self, clock: Clock) -> None:
        self.pid: int = os.getpid()
        self.waiters: Waiters = Waiters()
        self.lock: threading.Lock = threading.Lock()
        self.ledgers: dict[str, Ledger] = {}
        self.paused: set[str] = set()
        self.restart_marker: str | None = None
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

    def claim(
        self,
        queues: Sequence[str],
        limit: int,
        length: float,
        crash_limit: int,
        *,
        suspects: bool,
        holder: str | None,
    ) -> Claimed:
        """Lease what there is now: see ``Queue.claim``.

        A paused queue hands out nothing; its lapsed leases are recovered and its due jobs promoted all the same.
        """
        sent = self._clock.monotonic()
        leases: list[Lease] = []
        with self.lock:
            ledgers = [(queue, self.ledgers[queue]) for queue in dict.fromkeys(queues) if queue in self.ledgers]
            moved = sum(ledger.recover(crash_limit) + ledger.promote(crash_limit) for _, ledger in ledgers)
            open_ones = [(queue, ledger) for queue, ledger in ledgers if queue not in self.paused]
            for _, ledger in open_ones:
                leases += ledger.take(
                    limit - len(leases),
                    length=length,
                    crash_limit=crash_limit,
                    suspects=suspects and not any(lease.suspect for lease in leases),
                    sent=sent,
                    holder=holder,
                )
            dues = [due for _, ledger in ledgers if (due := ledger.next_due()) is not None]
            left_over = [queue for queue, ledger in open_ones if ledger.has_ready]
        if left_over and (leases or moved):
            # Only a claim that changed something passes the rest on: two that may not take what is there would
            # otherwise wake each other for ever.
            self.waiters.wake(left_over)
        return Claimed(leases=leases, next_due=min(dues, default=None))

    def renew(self, leases: Sequence[Lease]) -> list[Renewal]:
        """Extend the leases that are current."""
        with self.lock:
            return [self.known(lease.queue).renew(lease) for lease in leases]

"""All queues of one process, behind one lock."""

import os
import threading
from collections.abc import Collection, Sequence

from tenure.clock import Clock
from tenure.compositions import Node
from tenure.drivers.memory.flows import Flows
from tenure.drivers.memory.ledger import Ledger
from tenure.drivers.memory.schedules import Timers
from tenure.queue import Cancelled, Claimed, Lease, Push, Pushed, Release, Renewal, Settled, Settlement
from tenure.waiting import Waiters


class Store:
    """The ledgers, the compositions of their jobs, schedules, and what operators told the workers."""

    def __init__(self, clock: Clock) -> None:
        self.pid: int = os.getpid()
        self.waiters: Waiters = Waiters()
        self.lock: threading.Lock = threading.Lock()
        self.ledgers: dict[str, Ledger] = {}
        self.flows: Flows = Flows(clock, self.ledger)
        self.timers: Timers = Timers(clock, self.ledger)
        self.paused: set[str] = set()
        self.restart_marker: str | None = None
        self._clock = clock

    def ledger(self, queue: str) -> Ledger:
        """Return the queue's ledger, made when there is none. Call it with the lock held."""
        ledger = self.ledgers.get(queue)
        if ledger is None:
            ledger = self.ledgers[queue] = Ledger(queue, self._clock, self.flows.ended)
        return ledger

    def known(self, queue: str) -> Ledger:
        """Return the queue's ledger, or an empty one for a queue that nothing was pushed to."""
        return self.ledgers.get(queue) or Ledger(queue, self._clock, self.flows.ended)

    def push(self, jobs: Sequence[Push]) -> list[Pushed]:
        """Store the jobs and wake who waits for them."""
        with self.lock:
            pushed = [self.ledger(job.queue).push(job) for job in jobs]
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
            self.flows.sweep()
            released = self.flows.work()
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
            unfinished = self.flows.unfinished
        self._wake_for(released, unfinished=unfinished)
        if unfinished:
            dues = [0.0]
        if left_over and (leases or moved):
            # Only a claim that changed something passes the rest on: two that may not take what is there would
            # otherwise wake each other for ever.
            self.waiters.wake(left_over)
        return Claimed(leases=leases, next_due=min(dues, default=None))

    @property
    def unfinished(self) -> bool:
        """Whether compositions have more to be done, which another claim may make jobs of."""
        with self.lock:
            return self.flows.unfinished

    def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        """End the leases that are current, advance their compositions, and wake who waits for what is ready now."""
        with self.lock:
            settled = [self.known(settlement.lease.queue).settle(settlement) for settlement in settlements]
            released = self.flows.work()
            unfinished = self.flows.unfinished
        released.update(one.lease.queue for one in settlements if isinstance(one, Release))
        self._wake_for(released, unfinished=unfinished)
        return settled

    def cancel(self, queue: str, ids: Sequence[str]) -> list[Cancelled]:
        """Cancel each job, and advance its composition."""
        with self.lock:
            cancelled = [self.known(queue).cancel(job_id) for job_id in ids]
        self.advance()
        return cancelled

    def clear(self, queue: str) -> int:
        """Remove all that waits in the queue, and tell the first of them to their compositions."""
        with self.lock:
            number, members = self.known(queue).clear()
            self.flows.cleared(members)
        self.advance()
        return number

    def grow(self, lease: Lease, nodes: Sequence[Node]) -> bool:
        """Add jobs to the batch of a lease's job: see ``Compositions.grow``."""
        with self.lock:
            grown = self.flows.grow(self.known(lease.queue).held(lease), nodes)
        self.advance()
        return grown

    def advance(self) -> None:
        """Do what is to be done for compositions, and wake who waits for what is ready now."""
        with self.lock:
            released = self.flows.work()
            unfinished = self.flows.unfinished
        self._wake_for(released, unfinished=unfinished)

    def _wake_for(self, queues: Collection[str], *, unfinished: bool) -> None:
        # What is left over is done by whoever claims, in whatever queue.
        if unfinished:
            self.waiters.wake_all()
        elif queues:
            self.waiters.wake(queues)

    def renew(self, leases: Sequence[Lease]) -> list[Renewal]:
        """Extend the leases that are current."""
        with self.lock:
            return [self.known(lease.queue).renew(lease) for lease in leases]

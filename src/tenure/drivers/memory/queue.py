"""``MemoryQueue``: the contract over ledgers in memory, from any thread and any event loop of one process."""

import asyncio
import logging
import os
from collections.abc import Iterable, Sequence

from tenure.clock import Clock, SystemClock
from tenure.compositions import MOST_RELEASED, CompositionPage, CompositionStatus, NewComposition, Node
from tenure.drivers.memory.blocking import MemoryKeeper, MemoryPusher
from tenure.drivers.memory.failures import STEP
from tenure.drivers.memory.store import Store
from tenure.errors import InvalidOption
from tenure.naming import check_holder, new_token
from tenure.operating import HeldPage, JobPage, UnreadableRecord
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
    Renewal,
    Settled,
    Settlement,
)
from tenure.results import Ending, Progress, ProgressReport
from tenure.schedules import Fired, ScheduleBook, check_fire
from tenure.summaries import check_age

log: logging.Logger = logging.getLogger("tenure.drivers.memory")

LONGEST_SLEEP = 1.0
"""Seconds after which a waiting claim looks again in any case: what a lost wake-up costs at most."""


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
        return Capabilities(
            driver="memory", shared=False, results=True, unique=True, compositions=True, spanning=True, schedules=True
        )

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
        holder: str | None = None,
    ) -> Claimed:
        """Lease up to ``limit`` jobs for ``lease`` seconds: see ``Queue.claim``.

        Nothing is awaited between the taking and the return, so a cancelled claim has taken nothing.
        """
        if limit < 1 or not lease > 0 or not wait >= 0:
            raise InvalidOption(f"a claim of {limit} jobs for {lease} s, waiting {wait} s, cannot be; nothing was sent")
        if holder is not None:
            check_holder(holder)
        loop = asyncio.get_running_loop()
        end = loop.time() + wait
        store = self._store()
        with store.waiters.waiting(queues) as waiter:
            while True:
                waiter.reset()
                claimed = store.claim(queues, limit, lease, crash_limit, suspects=suspects, holder=holder)
                left = end - loop.time()
                if claimed.leases or (left <= 0 and not store.unfinished):
                    return claimed
                if store.unfinished:
                    await asyncio.sleep(0)  # others have their turn between two steps
                    continue
                due = LONGEST_SLEEP if claimed.next_due is None else claimed.next_due
                await waiter.sleep(min(left, due, LONGEST_SLEEP))

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        return self._store().renew(leases)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        """End each lease, and answer for each in order. A lease named twice is settled once; the second is stale."""
        return self._store().settle(settlements)

    async def cancel(self, queue: str, ids: Sequence[str]) -> Sequence[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order. Failed jobs are not found."""
        return self._store().cancel(queue, ids)

    async def clear(self, queue: str) -> int:
        """Remove all ready and delayed jobs, and return their exact number. What is leased stays."""
        return self._store().clear(queue)

    async def counts(self, queue: str) -> Counts:
        """Count the queue's jobs by state, at a cost that does not grow with them."""
        store = self._store()
        with store.lock:
            return store.known(queue).counts()

    def keeper(self) -> MemoryKeeper:
        """Return a new keeper."""
        return MemoryKeeper(self._store)

    def pusher(self) -> MemoryPusher:
        """Return a new blocking pusher."""
        return MemoryPusher(self._store)

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

    async def endings(self, queue: str, ids: Sequence[str]) -> Sequence[Ending | None]:
        """Return the kept end of each job, in order: see ``tenure.results.Results``."""
        store = self._store()
        with store.lock:
            return [store.known(queue).kept.ending(job_id) for job_id in ids]

    async def progress(self, queue: str, ids: Sequence[str]) -> Sequence[Progress | None]:
        """Return the last progress of each job's current attempt, in order."""
        store = self._store()
        with store.lock:
            return [store.known(queue).kept.progress.get(job_id) for job_id in ids]

    async def report(self, reports: Sequence[ProgressReport]) -> Sequence[bool]:
        """Replace the progress of each job whose lease is current, and answer for each in order."""
        store = self._store()
        with store.lock:
            return [store.known(report.lease.queue).report(report) for report in reports]

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

    async def jobs(self, queue: str, state: JobState, *, limit: int = 100, cursor: str | None = None) -> JobPage:
        """Return jobs of one state, those first that are first in line; a thousand at most."""
        store = self._store()
        with store.lock:
            return store.known(queue).jobs(state, limit, cursor)

    async def held_by(self, queue: str, holder: str, *, limit: int = 500, cursor: str | None = None) -> HeldPage:
        """Return leases that were claimed with this ``holder``; a thousand are looked at, at most."""
        store = self._store()
        with store.lock:
            return store.known(queue).held_by(holder, limit, cursor)

    async def unreadable(self, queue: str, *, limit: int = 100, after: str = "") -> Sequence[UnreadableRecord]:
        """Return records that were set aside, oldest first, those behind the key ``after``; without their bytes."""
        store = self._store()
        with store.lock:
            return store.known(queue).unreadable.page(limit, after)

    async def unreadable_bytes(self, queue: str, key: str) -> bytes | None:
        """Return one record byte for byte, or None."""
        store = self._store()
        with store.lock:
            return store.known(queue).unreadable.content(key)

    async def drop_unreadable(self, queue: str, keys: Sequence[str]) -> Sequence[bool]:
        """Remove records for good; False for one that is not there."""
        store = self._store()
        with store.lock:
            return [store.known(queue).unreadable.drop(key) for key in keys]

    async def prune(self, queue: str, *, older_than: float) -> int:
        """Remove failed jobs that failed at least so many seconds ago, a hundred a step; return their exact number."""
        check_age(older_than)
        store = self._store()
        until, total = self._clock.time() - older_than, 0
        with store.lock:
            last = store.known(queue).last
        while True:
            with store.lock:
                removed = store.known(queue).prune(until, last)
            total += removed
            if removed < STEP:
                return total
            await asyncio.sleep(0)  # others have their turn between two steps

    # ------------------------------------------------------------------------------------------------------ schedules

    async def schedules(self, queue: str) -> ScheduleBook:
        """Return the queue's schedules, sorted by name."""
        store = self._store()
        with store.lock:
            return store.timers.book(queue)

    async def put_schedule(self, queue: str, name: str, definition: bytes) -> bool:
        """Store a schedule, or give one another definition: see ``Schedules.put_schedule``."""
        store = self._store()
        with store.lock:
            return store.timers.put(queue, name, definition)

    async def fire(
        self, queue: str, name: str, *, seen: float, slot: float, jobs: Sequence[Push], overlap: bool
    ) -> Fired:
        """Move the cursor and push the jobs, all in one step: see ``Schedules.fire``."""
        check_fire(queue, seen=seen, slot=slot, jobs=jobs)
        store = self._store()
        with store.lock:
            fired = store.timers.fire(queue, name, seen=seen, slot=slot, jobs=jobs, overlap=overlap)
        store.waiters.wake([queue])
        return fired

    async def pause_schedule(self, queue: str, name: str, *, paused: bool) -> bool:
        """Let nothing fire, or let it fire again from now on; False when it is unknown, or so already."""
        store = self._store()
        with store.lock:
            return store.timers.pause(queue, name, paused=paused)

    async def remove_schedule(self, queue: str, name: str) -> bool:
        """Forget a schedule; its jobs stay. False when it is unknown."""
        store = self._store()
        with store.lock:
            return store.timers.remove(queue, name)

    # --------------------------------------------------------------------------------------------------- compositions

    async def prepare(self, composition: NewComposition) -> bool:
        """Begin to store a composition; False, and nothing changes, when there is one with this id in this home."""
        store = self._store()
        with store.lock:
            return store.flows.prepare(composition)

    async def add(self, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        """Store nodes of a composition that has not started: see ``Compositions.add``."""
        store = self._store()
        with store.lock:
            store.flows.add(home, composition_id, nodes)

    async def start(self, home: str, composition_id: str) -> None:
        """Let it begin: from here on it can be read, and its first jobs are released."""
        store = self._store()
        with store.lock:
            store.flows.start(home, composition_id)
        store.advance()

    async def grow(self, lease: Lease, nodes: Sequence[Node]) -> bool:
        """Add counted jobs to a batch from inside one of its members: see ``Compositions.grow``."""
        return self._store().grow(lease, nodes)

    async def composition(self, home: str, composition_id: str) -> CompositionStatus | None:
        """Return how far it has come; None for one that is unknown here, has not started or is forgotten."""
        store = self._store()
        with store.lock:
            graph = store.flows.graph(home, composition_id)
            return None if graph is None else graph.status()

    async def compositions(self, home: str, *, limit: int = 100, cursor: str | None = None) -> CompositionPage:
        """Return those whose home this is, a page at a time; a thousand at most."""
        store = self._store()
        with store.lock:
            return store.flows.page(home, limit, cursor)

    async def cancel_composition(self, home: str, composition_id: str) -> bool:
        """Cancel what has not ended, a hundred jobs a step: see ``Compositions.cancel_composition``."""
        store = self._store()
        with store.lock:
            graph = store.flows.cancel(home, composition_id)
        if graph is None:
            return False
        for first in range(0, graph.total, MOST_RELEASED):
            with store.lock:
                store.flows.cancel_members(graph, first)
            store.advance()
            await asyncio.sleep(0)  # others have their turn between two steps
        return True

    async def prune_compositions(self, home: str, *, older_than: float) -> int:
        """Forget compositions that were over at least so many seconds ago; return their exact number."""
        check_age(older_than)
        store = self._store()
        until, total, removed = self._clock.monotonic() - older_than, 0, STEP
        while removed:
            with store.lock:
                removed = store.flows.prune(home, until)
            total += removed
            await asyncio.sleep(0)
        return total

    # ------------------------------------------------------------------------------------------------ telling workers

    async def pause(self, queue: str) -> bool:
        """Stop handing out the queue's jobs; all else goes on. False when it was paused already."""
        store = self._store()
        with store.lock:
            was_paused = queue in store.paused
            store.paused.add(queue)
        return not was_paused

    async def resume(self, queue: str) -> bool:
        """Hand out the queue's jobs again, and wake who waits. False when it was not paused."""
        store = self._store()
        with store.lock:
            was_paused = queue in store.paused
            store.paused.discard(queue)
        store.waiters.wake([queue])
        return was_paused

    async def paused(self, queues: Sequence[str]) -> Sequence[bool]:
        """Tell which queues are paused, in order."""
        store = self._store()
        with store.lock:
            return [queue in store.paused for queue in queues]

    async def request_restart(self) -> str:
        """Write a new opaque marker, and return it: workers that see it change finish and exit."""
        marker = new_token()
        self._store().restart_marker = marker
        return marker

    async def restart_marker(self) -> str | None:
        """Return the marker, or None when there was never one."""
        return self._store().restart_marker


def _queues(records: Iterable[FailedRecord]) -> set[str]:
    return {record.queue for record in records}

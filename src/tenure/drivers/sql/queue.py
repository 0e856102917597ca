"""``SqlQueue``: the contract over transactions, whatever the database."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol, TypeVar

from tenure.drivers.sql.blocking import SqlKeeper, SqlPusher
from tenure.drivers.sql.calls import Calls
from tenure.drivers.sql.claims import Claim, Looked
from tenure.drivers.sql.compositions import SqlCompositions
from tenure.drivers.sql.engine import Engine, Session
from tenure.drivers.sql.parts import outcomes, parts
from tenure.drivers.sql.schedules import SqlSchedules
from tenure.drivers.sql.transitions import STEP, Transitions
from tenure.drivers.sql.units import micros
from tenure.enlisting import Statements
from tenure.errors import InvalidOption, StoreError
from tenure.naming import check_holder, held_prefix
from tenure.operating import HeldPage, JobPage, UnreadableRecord
from tenure.queue import (
    DEFAULT_CRASH_LIMIT,
    Cancelled,
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
from tenure.results import Ending, Progress, ProgressReport
from tenure.summaries import check_age, check_limit, number_after, page_length
from tenure.waiting import Waiters

Tx = TypeVar("Tx")


class Callers(Protocol):
    """Pushes in the transactions of callers."""

    def push(self, caller: Statements, jobs: Sequence[Push]) -> Sequence[Pushed] | None:
        """Store the jobs with the caller's commit; None if its connection leads elsewhere."""
        ...

    def join(self, caller: Statements, lease: Lease) -> float | None:
        """Make ready for ``acknowledge``: see ``Acknowledges.join_within``."""
        ...

    def acknowledge(self, caller: Statements, lease: Lease) -> bool:
        """End a lease with the caller's commit: see ``Acknowledges.acknowledge_within``."""
        ...


class SqlQueue(SqlCompositions[Tx], SqlSchedules[Tx]):
    """Runs every call as a transition in a transaction, on threads of its own, and waits for what it brings.

    A caller that is cancelled leaves its transaction to the thread, which ends it: no connection is ever left in the
    middle of one.
    """

    def __init__(
        self,
        transitions: Transitions[Tx],
        calls: Callable[[], Calls[Tx]],
        session: Callable[[Waiters], Session[Tx]],
        callers: Callers,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(transitions, calls)
        self._session = session
        self._callers = callers
        self._monotonic = monotonic
        self._fruitful = False

    # ---------------------------------------------------------------------------------------------------- the contract

    async def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store each job once (P1), and answer for each in order: see ``Queue.push``."""
        pushed: list[Pushed] = []
        for part in parts(jobs):
            try:
                pushed += await self._write("push", partial(self._transitions.push, jobs=part), weight=len(part))
            except StoreError as error:
                return outcomes(jobs, pushed, part, error)
        return pushed

    async def push_numbered(self, client: str, number: int, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store jobs of one queue by a call that the caller numbers: see ``tenure.relaying.Relays``."""
        if not jobs:
            return []
        push = partial(self._transitions.push_numbered, client=client, number=number, jobs=jobs)
        return await self._write("push", push, weight=len(jobs))

    def push_within(self, caller: Statements, jobs: Sequence[Push]) -> Sequence[Pushed] | None:
        """Store jobs in a caller's transaction: see ``Enlists.push_within``."""
        return self._callers.push(caller, jobs)

    def join_within(self, caller: Statements, lease: Lease) -> float | None:
        """Make ready for an acknowledgement in a caller's transaction: see ``Acknowledges.join_within``."""
        return self._callers.join(caller, lease)

    def acknowledge_within(self, caller: Statements, lease: Lease) -> bool:
        """End a lease in a caller's transaction: see ``Acknowledges.acknowledge_within``."""
        return self._callers.acknowledge(caller, lease)

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
        """Lease up to ``limit`` jobs for ``lease`` seconds: see ``Queue.claim``."""
        if limit < 1 or not lease > 0 or not wait >= 0:
            raise InvalidOption(f"a claim of {limit} jobs for {lease} s, waiting {wait} s, cannot be; nothing was sent")
        if holder is not None:
            check_holder(holder)
        loop = asyncio.get_running_loop()
        end = loop.time() + wait
        local = self.here()
        with local.waiters.waiting(queues) as waiter:
            while True:
                waiter.reset()
                claim = Claim(
                    queues=queues,
                    limit=limit,
                    length=lease,
                    crash_limit=crash_limit,
                    suspects=suspects,
                    holder=holder,
                    sent=self._monotonic(),
                )
                claimed, more = await self._claim(local.on("claim"), claim)
                left = end - loop.time()
                if claimed.leases or (left <= 0 and not more):
                    return claimed
                if more:
                    continue
                longest = local.watch.longest_sleep()
                due = longest if claimed.next_due is None else claimed.next_due
                await waiter.sleep(min(left, due, longest))

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        if not leases:
            return []
        return await self._write(
            "settle", partial(self._transitions.renew, leases=leases), durable=False, weight=len(leases)
        )

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        """End each lease, and answer for each in order. A lease named twice is settled once; the second is stale."""
        if not settlements:
            return []
        return await self._write(
            "settle", partial(self._transitions.settle, settlements=settlements), weight=len(settlements)
        )

    async def cancel(self, queue: str, ids: Sequence[str]) -> Sequence[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order. Failed jobs are not found."""
        return await self._write("operate", partial(self._transitions.cancel, name=queue, ids=ids), weight=len(ids))

    async def clear(self, queue: str) -> int:
        """Remove all ready and delayed jobs, and return their exact number. What is leased stays."""
        return await self._write("operate", partial(self._transitions.clear, name=queue))

    async def counts(self, queue: str) -> Counts:
        """Count the queue's jobs by state, at a cost that does not grow with them."""
        return await self._read(partial(self._transitions.counts, name=queue))

    def keeper(self) -> SqlKeeper[Tx]:
        """Return a new keeper."""
        return SqlKeeper(self._session(self.here().waiters), self._transitions)

    def pusher(self) -> SqlPusher[Tx]:
        """Return a new blocking pusher."""
        return SqlPusher(self._session(self.here().waiters), self._transitions)

    async def aclose(self) -> None:
        """End this process's threads and close their connections; idempotent. Keepers and pushers close their own."""
        await self._stop()

    # ---------------------------------------------------------------------------------------------- reading, operating

    async def queues(self) -> Sequence[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        return await self._read(self._transitions.queues)

    async def states(self, queue: str, ids: Sequence[str]) -> Sequence[JobState]:
        """Tell where each job is, in order, in one step."""
        return await self._read(partial(self._transitions.states, name=queue, ids=ids))

    async def endings(self, queue: str, ids: Sequence[str]) -> Sequence[Ending | None]:
        """Return the kept end of each job, in order: see ``tenure.results.Results``."""
        return await self._read(partial(self._transitions.endings, name=queue, ids=ids))

    async def progress(self, queue: str, ids: Sequence[str]) -> Sequence[Progress | None]:
        """Return the last progress of each job's current attempt, in order."""
        return await self._read(partial(self._transitions.progress, name=queue, ids=ids))

    async def report(self, reports: Sequence[ProgressReport]) -> Sequence[bool]:
        """Replace the progress of each job whose lease is current, and answer for each in order."""
        if not reports:
            return []
        report = partial(self._transitions.report, reports=reports)
        return await self._write("settle", report, durable=False, weight=len(reports))

    async def failed(self, queue: str, *, limit: int = 100, offset: int = 0) -> Sequence[FailedRecord]:
        """Return failed jobs of the queue, oldest first."""
        return await self._read(partial(self._transitions.failed, name=queue, limit=limit, offset=offset))

    async def failed_record(self, queue: str, job_id: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        return await self._read(partial(self._transitions.failed_record, name=queue, job_id=job_id))

    async def retry(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Make each a new ready job and remove it from the failed store, guarded by its incarnation."""
        return await self._write("operate", partial(self._transitions.retry, records=records), weight=len(records))

    async def forget(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Remove each from the failed store; False for one that is no longer there."""
        return await self._write("operate", partial(self._transitions.forget, records=records), weight=len(records))

    async def jobs(self, queue: str, state: JobState, *, limit: int = 100, cursor: str | None = None) -> JobPage:
        """Return jobs of one state, those first that are first in line; a thousand at most."""
        limit = page_length(state, limit)
        return await self._read(partial(self._transitions.jobs, name=queue, state=state, limit=limit, cursor=cursor))

    async def held_by(self, queue: str, holder: str, *, limit: int = 500, cursor: str | None = None) -> HeldPage:
        """Return leases that were claimed with this ``holder``; a thousand are looked at, at most."""
        prefix = held_prefix(check_holder(holder))
        limit = page_length(JobState.RUNNING, limit)
        held = partial(self._transitions.held, prefix=prefix, limit=limit, cursor=cursor, sent=self._monotonic())
        return await self._read(partial(held, name=queue))

    async def unreadable(self, queue: str, *, limit: int = 100, after: str = "") -> Sequence[UnreadableRecord]:
        """Return records that were set aside, oldest first, those behind the key ``after``; without their bytes."""
        check_limit(limit)
        number = number_after(after)
        return await self._read(partial(self._transitions.records, name=queue, limit=limit, after=number))

    async def unreadable_bytes(self, queue: str, key: str) -> bytes | None:
        """Return one record byte for byte, or None."""
        return await self._read(partial(self._transitions.content, name=queue, key=key))

    async def drop_unreadable(self, queue: str, keys: Sequence[str]) -> Sequence[bool]:
        """Remove records for good; False for one that is not there."""
        return await self._write("operate", partial(self._transitions.drop, name=queue, keys=keys), weight=len(keys))

    async def prune(self, queue: str, *, older_than: float) -> int:
        """Remove failed jobs that failed at least so many seconds ago, a hundred a step; return their exact number.

        When a step cannot be done, its error is raised; what the steps before it removed stays removed.
        """
        check_age(older_than)
        old = await self._read(partial(self._transitions.old, age=micros(older_than) - 1))
        total = 0
        while True:
            removed = await self._write("operate", partial(self._transitions.prune, name=queue, old=old), weight=STEP)
            total += removed
            if removed < STEP:
                return total

    # ------------------------------------------------------------------------------------------------- telling workers

    async def pause(self, queue: str) -> bool:
        """Stop handing out the queue's jobs; all else goes on. False when it was paused already."""
        return await self._write("operate", partial(self._transitions.pause, name=queue))

    async def resume(self, queue: str) -> bool:
        """Hand out the queue's jobs again, and wake who waits. False when it was not paused."""
        return await self._write("operate", partial(self._transitions.resume, name=queue))

    async def paused(self, queues: Sequence[str]) -> Sequence[bool]:
        """Tell which queues are paused, in order."""
        return await self._read(partial(self._transitions.paused, names=queues))

    async def request_restart(self) -> str:
        """Write a new opaque marker, and return it: workers that see it change finish and exit."""
        return await self._write("operate", self._transitions.request_restart)

    async def restart_marker(self) -> str | None:
        """Return the marker, or None when there was never one."""
        return await self._read(self._transitions.restart_marker)

    # ------------------------------------------------------------------------------------------------------- claiming

    async def _claim(self, engine: Engine[Tx], claim: Claim) -> Looked:
        """Claim once. What a cancelled claim brings is given back, free of charge, before the cancellation goes on."""
        call = engine.write(
            partial(self._transitions.claim, claim=claim),
            durable=False,
            weight=claim.limit,
            # After a claim that brought something the next one likely does: a look before it would be a round trip.
            glance=None if self._fruitful and self.here().lanes else partial(self._transitions.glance, claim=claim),
        )
        try:
            # Shielded: the cancellation of this task must not hide from us what the thread brings.
            looked = await asyncio.shield(asyncio.wrap_future(call))
        except asyncio.CancelledError:
            if not call.cancel():
                returned: Future[None] = Future()
                call.add_done_callback(partial(self._give_back, engine, returned))
                # A second cancellation ends the waiting, not the giving back.
                await asyncio.shield(asyncio.wrap_future(returned))
            raise
        self._fruitful = bool(looked.claimed.leases)
        return looked

    def _give_back(self, engine: Engine[Tx], returned: "Future[None]", call: "Future[Looked]") -> None:
        """Release what an abandoned claim brought. Runs in whatever thread ends the claim."""
        leases = [] if call.cancelled() or call.exception() else call.result().claimed.leases
        if not leases:
            returned.set_result(None)
            return
        releases = [Release(lease, free=True) for lease in leases]
        settle = partial(self._transitions.settle, settlements=releases)
        try:
            release = engine.write(settle, durable=False, weight=len(releases))
        except StoreError:
            returned.set_result(None)  # the driver was closed meanwhile: the leases lapse
        else:
            release.add_done_callback(lambda _: returned.set_result(None))

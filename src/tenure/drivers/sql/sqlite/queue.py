"""``SqliteQueue``: the contract over one SQLite file."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from tenure.clock import Clock, SystemClock
from tenure.drivers.sql.sqlite.blocking import SqliteKeeper, SqlitePusher
from tenure.drivers.sql.sqlite.doctor import examine
from tenure.drivers.sql.sqlite.engine import Engine
from tenure.drivers.sql.sqlite.forking import Sessions
from tenure.drivers.sql.sqlite.parts import outcomes, parts
from tenure.drivers.sql.sqlite.session import Location
from tenure.drivers.sql.sqlite.transaction import Transaction, micros
from tenure.drivers.sql.sqlite.transitions import (
    claiming,
    keeping,
    listing,
    operating,
    pushing,
    reading,
    settling,
    telling,
    unreadable,
)
from tenure.drivers.sql.sqlite.transitions.claiming import Claim
from tenure.drivers.sql.sqlite.transitions.sweeping import STEP
from tenure.errors import InvalidOption, StoreError
from tenure.naming import check_holder, check_namespace, held_prefix
from tenure.operating import Finding, HeldPage, JobPage, UnreadableRecord
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
from tenure.results import Ending, Progress, ProgressReport
from tenure.summaries import check_age, check_limit, number_after, page_length
from tenure.waiting import Waiters

T = TypeVar("T")

LONGEST_SLEEP: Final = 1.0
"""Seconds after which a waiting claim looks again in any case: what a lost wake-up costs at most."""

BUSY_TIMEOUT: Final = 5.0
"""Seconds to wait for a file that another process has locked, before ``StoreRefused``."""


class Local:
    """What belongs to one process: its thread, and its waiting claims."""

    def __init__(self, sessions: Sessions) -> None:
        self.pid: int = os.getpid()
        self.waiters: Waiters = Waiters()
        self.engine: Engine = Engine(sessions.new(self.waiters), self.waiters)


class SqliteQueue:
    """Jobs in one SQLite file, for the processes of one host.

    Durability: what a call acknowledges is on the disk (class 2, ``synchronous=FULL``) and survives a power cut:
    pushes, settlements, cancels, clears, retries. Claims and renewals are written with ``synchronous=NORMAL``: they
    survive the death of any process, and a power cut, which no lease holder survives either, may undo the last of
    them; such a job is simply ready again, that one delivery uncounted. In trials a commit took 14 µs with NORMAL
    and 190 µs with FULL; calls that wait for the same commit share it.

    Answers cannot be lost on the way: a call either committed or raised. So there are no call numbers, and no
    settlement is ``repeated``. ``OutcomeUnknown`` is left for a disk that fails in the middle of a commit.

    Time is this host's: all processes that share the file run on it, so that its clock is the store's one clock (P8).
    The clock may go forward and back; ``clock=`` is for those who want to show it.

    Jobs that other processes push are noticed within 20 ms, or 50 ms after two seconds without any commit; those of
    this process at once.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        namespace: str,
        timeout: float = BUSY_TIMEOUT,
        max_bytes: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        if str(path) in {"", ":memory:"}:
            raise InvalidOption("a SQLite queue needs a file; for jobs in memory use memory://")
        self._path = Path(path).absolute()
        self._sessions = Sessions(
            Location(
                path=self._path,
                namespace=check_namespace(namespace),
                timeout=timeout,
                max_bytes=max_bytes,
                clock=self._clock,
            )
        )
        self._local: Local | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What this driver can do."""
        return Capabilities(driver="sql", shared=True, results=True, durability=frozenset({1, 2}))

    def _here(self) -> Local:
        local = self._local
        if local is None or local.pid != os.getpid():
            # In a child the thread of the parent does not exist; its connections were closed before the fork.
            local = self._local = Local(self._sessions)
        return local

    # ---------------------------------------------------------------------------------------------------- the contract

    async def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store each job once (P1), and answer for each in order: see ``Queue.push``."""
        pushed: list[Pushed] = []
        for part in parts(jobs):
            try:
                pushed += await self._write(partial(pushing.push, jobs=part), weight=len(part))
            except StoreError as error:
                return outcomes(jobs, pushed, part, error)
        return pushed

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
        local = self._here()
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
                    sent=self._clock.monotonic(),
                )
                claimed = await _claim(local.engine, claim)
                left = end - loop.time()
                if claimed.leases or left <= 0:
                    return claimed
                due = LONGEST_SLEEP if claimed.next_due is None else claimed.next_due
                await waiter.sleep(min(left, due, LONGEST_SLEEP))

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        if not leases:
            return []
        return await self._write(partial(settling.renew, leases=leases), durable=False, weight=len(leases))

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        """End each lease, and answer for each in order. A lease named twice is settled once; the second is stale."""
        if not settlements:
            return []
        return await self._write(partial(settling.settle, settlements=settlements), weight=len(settlements))

    async def cancel(self, queue: str, ids: Sequence[str]) -> Sequence[Cancelled]:
        """Remove what waits, request it of what runs, and answer for each in order. Failed jobs are not found."""
        return await self._write(partial(operating.cancel, name=queue, ids=ids), weight=len(ids))

    async def clear(self, queue: str) -> int:
        """Remove all ready and delayed jobs, and return their exact number. What is leased stays."""
        return await self._write(partial(operating.clear, name=queue))

    async def counts(self, queue: str) -> Counts:
        """Count the queue's jobs by state, at a cost that does not grow with them."""
        return await self._read(partial(reading.counts, name=queue))

    def keeper(self) -> SqliteKeeper:
        """Return a new keeper."""
        return SqliteKeeper(self._sessions.new(self._here().waiters))

    def pusher(self) -> SqlitePusher:
        """Return a new blocking pusher."""
        return SqlitePusher(self._sessions.new(self._here().waiters))

    async def aclose(self) -> None:
        """End this process's thread and close its connection; idempotent. Keepers and pushers close their own."""
        local, self._local = self._local, None
        if local is not None and local.pid == os.getpid():
            await asyncio.wrap_future(local.engine.stop())

    # ---------------------------------------------------------------------------------------------- reading, operating

    async def queues(self) -> Sequence[str]:
        """Return the names of the queues that were ever pushed to, sorted."""
        return await self._read(reading.queues)

    async def states(self, queue: str, ids: Sequence[str]) -> Sequence[JobState]:
        """Tell where each job is, in order, in one step."""
        return await self._read(partial(reading.states, name=queue, ids=ids))

    async def endings(self, queue: str, ids: Sequence[str]) -> Sequence[Ending | None]:
        """Return the kept end of each job, in order: see ``tenure.results.Results``."""
        return await self._read(partial(keeping.endings, name=queue, ids=ids))

    async def progress(self, queue: str, ids: Sequence[str]) -> Sequence[Progress | None]:
        """Return the last progress of each job's current attempt, in order."""
        return await self._read(partial(keeping.progress, name=queue, ids=ids))

    async def report(self, reports: Sequence[ProgressReport]) -> Sequence[bool]:
        """Replace the progress of each job whose lease is current, and answer for each in order."""
        if not reports:
            return []
        return await self._write(partial(keeping.report, reports=reports), durable=False, weight=len(reports))

    async def failed(self, queue: str, *, limit: int = 100, offset: int = 0) -> Sequence[FailedRecord]:
        """Return failed jobs of the queue, oldest first."""
        return await self._read(partial(reading.failed, name=queue, limit=limit, offset=offset))

    async def failed_record(self, queue: str, job_id: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        return await self._read(partial(reading.failed_record, name=queue, job_id=job_id))

    async def retry(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Make each a new ready job and remove it from the failed store, guarded by its incarnation."""
        return await self._write(partial(operating.retry, records=records), weight=len(records))

    async def forget(self, records: Sequence[FailedRecord]) -> Sequence[bool]:
        """Remove each from the failed store; False for one that is no longer there."""
        return await self._write(partial(operating.forget, records=records), weight=len(records))

    async def jobs(self, queue: str, state: JobState, *, limit: int = 100, cursor: str | None = None) -> JobPage:
        """Return jobs of one state, those first that are first in line; a thousand at most."""
        limit = page_length(state, limit)
        return await self._read(partial(listing.jobs, name=queue, state=state, limit=limit, cursor=cursor))

    async def held_by(self, queue: str, holder: str, *, limit: int = 500, cursor: str | None = None) -> HeldPage:
        """Return leases that were claimed with this ``holder``; a thousand are looked at, at most.

        The file keeps the last fence of a queue and not each lease's: that one is told.
        """
        prefix = held_prefix(check_holder(holder))
        limit = page_length(JobState.RUNNING, limit)
        sent = self._clock.monotonic()
        return await self._read(partial(listing.held, name=queue, prefix=prefix, limit=limit, cursor=cursor, sent=sent))

    async def unreadable(self, queue: str, *, limit: int = 100, after: str = "") -> Sequence[UnreadableRecord]:
        """Return records that were set aside, oldest first, those behind the key ``after``; without their bytes."""
        check_limit(limit)
        number = number_after(after)
        return await self._read(partial(unreadable.records, name=queue, limit=limit, after=number))

    async def unreadable_bytes(self, queue: str, key: str) -> bytes | None:
        """Return one record byte for byte, or None."""
        return await self._read(partial(unreadable.content, name=queue, key=key))

    async def drop_unreadable(self, queue: str, keys: Sequence[str]) -> Sequence[bool]:
        """Remove records for good; False for one that is not there."""
        return await self._write(partial(unreadable.drop, name=queue, keys=keys), weight=len(keys))

    async def prune(self, queue: str, *, older_than: float) -> int:
        """Remove failed jobs that failed at least so many seconds ago, a hundred a step; return their exact number.

        When a step cannot be done, its error is raised; what the steps before it removed stays removed.
        """
        check_age(older_than)
        old = await self._read(partial(operating.old, age=micros(older_than) - 1))
        total = 0
        while True:
            removed = await self._write(partial(operating.prune, name=queue, old=old), weight=STEP)
            total += removed
            if removed < STEP:
                return total

    # ------------------------------------------------------------------------------------------------- telling workers

    async def pause(self, queue: str) -> bool:
        """Stop handing out the queue's jobs; all else goes on. False when it was paused already."""
        return await self._write(partial(telling.pause, name=queue))

    async def resume(self, queue: str) -> bool:
        """Hand out the queue's jobs again, and wake who waits. False when it was not paused."""
        return await self._write(partial(telling.resume, name=queue))

    async def paused(self, queues: Sequence[str]) -> Sequence[bool]:
        """Tell which queues are paused, in order."""
        return await self._read(partial(telling.paused, names=queues))

    async def request_restart(self) -> str:
        """Write a new opaque marker, and return it: workers that see it change finish and exit."""
        return await self._write(telling.request_restart)

    async def restart_marker(self) -> str | None:
        """Return the marker, or None when there was never one."""
        return await self._read(telling.restart_marker)

    async def diagnose(self, *, durability: int = 1) -> Sequence[Finding]:  # noqa: ARG002 - every push is on the disk
        """Look at the file and its disk for what would break a promise; changes nothing."""
        return await asyncio.to_thread(examine, self._path)

    # ------------------------------------------------------------------------------------------------------ the thread

    async def _read(self, operation: Callable[[Transaction], T]) -> T:
        return await asyncio.wrap_future(self._here().engine.read(operation))

    async def _write(self, operation: Callable[[Transaction], T], *, durable: bool = True, weight: int = 1) -> T:
        return await asyncio.wrap_future(self._here().engine.write(operation, durable=durable, weight=weight))


async def _claim(engine: Engine, claim: Claim) -> Claimed:
    """Claim once. What a cancelled claim brings is given back, free of charge, before the cancellation goes on."""
    call = engine.write(
        partial(claiming.claim, claim=claim),
        durable=False,
        weight=claim.limit,
        glance=partial(claiming.glance, claim=claim),
    )
    try:
        # Shielded: the cancellation of this task must not hide from us what the thread brings.
        return await asyncio.shield(asyncio.wrap_future(call))
    except asyncio.CancelledError:
        if not call.cancel():
            returned: Future[None] = Future()
            call.add_done_callback(partial(_give_back, engine, returned))
            # A second cancellation ends the waiting, not the giving back.
            await asyncio.shield(asyncio.wrap_future(returned))
        raise


def _give_back(engine: Engine, returned: "Future[None]", call: "Future[Claimed]") -> None:
    """Release what an abandoned claim brought. Runs in whatever thread ends the claim."""
    leases = [] if call.cancelled() or call.exception() else call.result().leases
    if not leases:
        returned.set_result(None)
        return
    releases = [Release(lease, free=True) for lease in leases]
    try:
        release = engine.write(partial(settling.settle, settlements=releases), durable=False, weight=len(releases))
    except StoreError:
        returned.set_result(None)  # the driver was closed meanwhile: the leases lapse
    else:
        release.add_done_callback(lambda _: returned.set_result(None))

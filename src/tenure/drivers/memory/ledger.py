"""One queue in memory: its jobs, and every transition between their states.

The states are ``ready`` (in the ready line, or in that of the suspects), ``delayed``, ``leased``, ``failed`` and
``unreadable``. A method is one transition, done or not done at all. Nothing here waits, locks or knows of threads:
``MemoryQueue`` does that. Time is the clock's monotonic time, except for what people read and for fences.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from tenure.clock import Clock
from tenure.drivers.memory import listing
from tenure.drivers.memory.failures import Failures, recorded
from tenure.drivers.memory.keeping import Kept
from tenure.drivers.memory.line import Hold, Job, Key, Line
from tenure.drivers.memory.locks import Locks
from tenure.drivers.memory.members import End, Member, end_of
from tenure.drivers.memory.unreadable import Unreadable, UnreadableRecords
from tenure.naming import new_token
from tenure.operating import HeldPage, JobPage
from tenure.queue import (
    Ack,
    Cancelled,
    Counts,
    Doom,
    Fail,
    FailedRecord,
    JobState,
    Lease,
    Push,
    Pushed,
    Release,
    Renewal,
    SetAside,
    Settled,
    Settlement,
)
from tenure.results import ProgressReport, failed_state

STEP = 100
"""How many due jobs, and how many lapsed leases, one claim moves at most (P6)."""


Ended = Callable[[Member, End, bytes | None], None]
"""Takes the end of a member of a composition, and what it returned."""


class Ledger:
    """The jobs of one queue."""

    def __init__(self, name: str, clock: Clock, ended: Ended) -> None:
        self._name = name
        self._clock = clock
        self._ended = ended
        self._sequence = 0
        self._fence = 0
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, Job] = {}
        self._failed = Failures()
        self._locks = Locks()
        self.kept: Kept = Kept(clock)
        self.unreadable: UnreadableRecords = UnreadableRecords(name)
        self._start_lines()
        self._leased = Line()

    def _start_lines(self) -> None:
        self._ready = Line()
        self._suspects = Line()
        self._delayed = Line()
        self._ready_since: OrderedDict[str, float] = OrderedDict()

    # ------------------------------------------------------------------------------------------------------- pushing

    def push(self, push: Push, member: Member | None = None) -> Pushed:
        """Store a new job; an id that exists, in whatever state, is held, as is a unique text by who has it."""
        if push.id in self._waiting or push.id in self._running or push.id in self._failed:
            return Pushed(push.id, "held")
        if holder := self._locks.holder(push.unique):
            return Pushed(holder.id, "held")
        now = self._clock.monotonic()
        job = Job(
            id=push.id,
            incarnation=self._next(),
            envelope=push.envelope,
            priority=push.priority,
            crash_limit=push.crash_limit,
            expires=None if push.expires_in is None else now + push.expires_in,
            keep=push.keep,
            unique=push.unique,
            member=member,
            input=None if member is None else member.input,
        )
        self.kept.forget(job.id)
        self._locks.take(job)
        self._enter(job, delay=push.delay, suspect=False)
        return Pushed(job.id, "stored")

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _enter(self, job: Job, *, delay: float, suspect: bool) -> None:
        """Let the job wait: at the tail of its line, or for its time."""
        now = self._clock.monotonic()
        self._waiting[job.id] = job
        job.entry = self._next()
        if delay > 0:
            self._delayed.add(job, (now + delay, job.entry))
            return
        line = self._suspects if suspect else self._ready
        line.add(job, (-job.priority, job.entry))
        self._ready_since[job.id] = now

    # ------------------------------------------------------------------------------------------------------ claiming

    def recover(self, crash_limit: int) -> int:
        """Take lapsed leases back, at most ``STEP``, and return how many.

        A cancel request outlives the lapse: the job is leased doomed, and ends by settlement.
        """
        now = self._clock.monotonic()
        self.kept.sweep()
        for number in range(STEP):
            first = self._leased.first()
            if first is None or first[0][0] > now:
                return number
            job = first[1]
            self._end_lease(job)
            job.crashes += 1
            self._enter(job, delay=0, suspect=job.suspect(crash_limit))
        return STEP

    def promote(self, crash_limit: int) -> int:
        """Make due jobs ready, at most ``STEP``, and return how many."""
        now = self._clock.monotonic()
        for number in range(STEP):
            first = self._delayed.first()
            if first is None or first[0][0] > now:
                return number
            job = first[1]
            self._delayed.remove(job)
            self._enter(job, delay=0, suspect=job.suspect(crash_limit))
        return STEP

    def take(
        self, limit: int, *, length: float, crash_limit: int, suspects: bool, sent: float, holder: str | None
    ) -> list[Lease]:
        """Lease up to ``limit`` ready jobs, in order, at most one suspect among them."""
        leases: list[Lease] = []
        while len(leases) < limit:
            job = self._first_ready(crash_limit, suspects=suspects)
            if job is None:
                break
            lease = self._lease(job, length, crash_limit, sent, holder)
            suspects = suspects and not lease.suspect
            leases.append(lease)
        return leases

    def _first_ready(self, crash_limit: int, *, suspects: bool) -> Job | None:
        """Return the job that is next in line.

        Who is a suspect may depend on who claims (``Job.limit``). One that this claim must leave to others steps
        over to the line of the suspects, keeping its place; at most ``STEP`` do in one go.
        """
        for _ in range(STEP):
            heads = [head for head in (self._ready.first(), suspects and self._suspects.first()) if head]
            if not heads:
                return None
            key, job = min(heads, key=_key)
            if suspects or not job.suspect(crash_limit) or job.doom(crash_limit, self._clock.monotonic()):
                return job
            self._ready.remove(job)
            self._suspects.add(job, key)
        return None

    def _lease(self, job: Job, length: float, crash_limit: int, sent: float, holder: str | None) -> Lease:
        now = self._clock.monotonic()
        waited = now - self._ready_since[job.id]
        self._leave_lines(job)
        # A fence is never below the wall clock, so that it also rises from one life of the process to the next.
        self._fence = max(self._fence + 1, int(self._clock.time() * 1e6))
        doomed = job.doom(crash_limit, now)
        job.cancel_requested = doomed is Doom.CANCELLED
        job.deliveries += 1
        job.hold = Hold(token=new_token(holder), fence=self._fence, length=length, deadline=now + length)
        self._running[job.id] = job
        self._leased.add(job, (job.hold.deadline, job.entry))
        suspect = doomed is None and job.suspect(crash_limit)
        return listing.lease(self._name, job, job.hold, sent + length, doomed=doomed, suspect=suspect, waited=waited)

    def _leave_lines(self, job: Job) -> None:
        """Take a waiting job out of whatever line it stands in."""
        del self._waiting[job.id]
        for line in (self._ready, self._suspects, self._delayed):
            if job in line:
                line.remove(job)
        self._ready_since.pop(job.id, None)

    def next_due(self) -> float | None:
        """Return the seconds until the next delayed job or lease falls due, or None."""
        times = [head[0][0] for head in (self._delayed.first(), self._leased.first()) if head]
        return max(0.0, min(times) - self._clock.monotonic()) if times else None

    @property
    def has_ready(self) -> bool:
        """Whether any job is ready, suspects included."""
        return bool(self._ready_since)

    # ------------------------------------------------------------------------------------------------- leases, fenced

    def _held(self, lease: Lease) -> Job | None:
        """Return the job if this lease is still its current one: lapsed it may be, reclaimed it may not."""
        job = self._running.get(lease.id)
        if job is None or job.hold is None:
            return None
        return job if job.incarnation == lease.incarnation and job.hold.token == lease.token else None

    def _end_lease(self, job: Job) -> None:
        del self._running[job.id]
        self._leased.remove(job)
        self.kept.progress.pop(job.id, None)
        job.hold = None

    def renew(self, lease: Lease) -> Renewal:
        """Extend the lease by its own length from now."""
        job = self._held(lease)
        if job is None or job.hold is None:
            return Renewal.LOST
        job.hold.deadline = self._clock.monotonic() + job.hold.length
        self._leased.add(job, (job.hold.deadline, job.entry))
        return Renewal.CANCEL_REQUESTED if job.cancel_requested else Renewal.HELD

    def settle(self, settlement: Settlement) -> Settled:
        """End the lease, if it is the job's current one."""
        job = self._held(settlement.lease)
        if job is None:
            return Settled.STALE
        self._end_lease(job)
        match settlement:
            case Release() if not job.cancel_requested:
                job.free += settlement.free
                job.crashes += settlement.crashed
                # Who is a suspect is judged again by the claim that finds it, which knows its limit.
                self._enter(job, delay=settlement.delay, suspect=False)
                return Settled.DONE
            case Fail():
                job.entry = self._next()
                self._failed.keep(job, recorded(self._name, job, settlement, self._clock.time()))
                self.kept.end(job, settlement)
            case SetAside():
                aside = Unreadable(job.id, job.envelope, settlement.reason, self._clock.time())
                self.unreadable.add(self._next(), aside)
            case _:
                self.kept.end(job, settlement)
        self._leave(job, end_of(settlement), settlement.result if isinstance(settlement, Ack) else None)
        return Settled.CANCELLED if isinstance(settlement, Release) else Settled.DONE

    def _leave(self, job: Job, end: End, result: bytes | None = None) -> None:
        """Let go of what a job has while it waits or runs, and tell its composition how it has ended."""
        self._locks.free(job)
        if job.member is not None:
            self._ended(job.member, end, result if job.member.gives else None)

    def held(self, lease: Lease) -> Member | None:
        """Return what the job is in its composition, if this lease is still its current one."""
        job = self._held(lease)
        return None if job is None else job.member

    # ------------------------------------------------------------------------------------------------------ operating

    def cancel(self, job_id: str) -> Cancelled:
        """Remove a waiting job; of a running one, request it. The request names this incarnation alone."""
        if job := self._waiting.get(job_id):
            self._leave_lines(job)
            self.kept.end(job)
            self._leave(job, End.CANCELLED)
            return Cancelled.REMOVED
        if job := self._running.get(job_id):
            job.cancel_requested = True
            return Cancelled.REQUESTED
        return Cancelled.NOT_FOUND

    def cancel_member(self, job_id: str, member: Member) -> None:
        """Cancel a job of a composition; another that has its id is left alone."""
        job = self._waiting.get(job_id) or self._running.get(job_id)
        if job is not None and job.member is member:
            self.cancel(job_id)

    def clear(self) -> tuple[int, Sequence[Member]]:
        """Remove all that waits; return how many jobs that were, and which were of compositions."""
        cleared, self._waiting = self._waiting, {}
        self._start_lines()
        self._locks.keep(lambda job: job.hold is not None)
        return len(cleared), [job.member for job in cleared.values() if job.member is not None]

    def counts(self) -> Counts:
        """Count the jobs by state."""
        now = self._clock.monotonic()
        oldest = next(iter(self._ready_since.values()), None)
        return Counts(
            ready=len(self._ready_since),
            delayed=len(self._delayed),
            leased=len(self._running),
            lapsed=self._leased.count_until(now),
            failed=len(self._failed),
            unreadable=len(self.unreadable),
            oldest_age=None if oldest is None else now - oldest,
        )

    def state(self, job_id: str) -> JobState:
        """Tell where the job is."""
        if job_id in self._ready_since:
            return JobState.READY
        if job_id in self._waiting:
            return JobState.DELAYED
        if job_id in self._running:
            return JobState.RUNNING
        if record := self._failed.record(job_id):
            return failed_state(record.failure.reason)
        ending = self.kept.ending(job_id)
        return JobState.GONE if ending is None else ending.state

    def report(self, report: ProgressReport) -> bool:
        """Take the progress of a job's current attempt."""
        job = self._held(report.lease)
        if job is None or not job.keep:
            return False
        self.kept.progress[job.id] = report.progress
        return True

    def failed(self, limit: int, offset: int) -> list[FailedRecord]:
        """Return failed jobs, oldest first."""
        return self._failed.records(limit, offset)

    def failed_record(self, job_id: str) -> FailedRecord | None:
        """Return one failed job, or None."""
        return self._failed.record(job_id)

    def retry(self, record: FailedRecord) -> bool:
        """Make the failed job a new one: its counters at zero, its limits kept; an expiry that has passed is not.

        Whoever retries a job by hand wants it to run: an expiry of long ago would only fail it again. It is no longer
        of a composition, but has its argument from there.
        """
        job = self._failed.job(record)
        if job is None or self._locks.holder(job.unique) is not None:
            return False
        self._failed.take(record)
        again = Job(
            id=job.id,
            incarnation=self._next(),
            envelope=job.envelope,
            priority=job.priority,
            crash_limit=job.crash_limit,
            expires=None if job.expired(self._clock.monotonic()) else job.expires,
            keep=job.keep,
            unique=job.unique,
            input=job.input,
        )
        self.kept.forget(job.id)
        self._locks.take(again)
        self._enter(again, delay=0, suspect=False)
        return True

    def forget(self, record: FailedRecord) -> bool:
        """Remove the failed job."""
        return self._failed.take(record) is not None

    @property
    def last(self) -> int:
        """The last number that was taken: what comes later has a higher one."""
        return self._sequence

    def prune(self, until: float, last: int) -> int:
        """Remove failed jobs, at most a hundred: see ``Failures.prune``."""
        return self._failed.prune(until, last)

    def jobs(self, state: JobState, limit: int, cursor: str | None) -> JobPage:
        """Return jobs of one state, those first that are first in line."""
        lines = {
            JobState.READY: (self._ready, self._suspects),
            JobState.DELAYED: (self._delayed,),
            JobState.RUNNING: (self._leased,),
        }
        now = self._clock.monotonic()
        return listing.page(self._name, state, lines, self._ready_since, now=now, limit=limit, cursor=cursor)

    def held_by(self, holder: str, limit: int, cursor: str | None) -> HeldPage:
        """Return leases of one holder, those first that lapse first."""
        return listing.held(self._name, self._leased, holder, limit=limit, cursor=cursor)


def _key(head: tuple[Key, Job]) -> Key:
    return head[0]

"""The contract as dictionaries: what a queue answers when nothing goes wrong and nobody else is there.

Written from the promises, not from a driver. It keeps no lines: the order is worked out from when each job entered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tenure.queue import (
    Ack,
    Cancelled,
    Doom,
    Drop,
    Fail,
    FailedRecord,
    Lease,
    Push,
    Release,
    Renewal,
    SetAside,
    Settled,
    Settlement,
)

CRASH_LIMIT = 3
LEASE = 1000.0


@dataclass
class Job:
    id: str
    envelope: bytes
    priority: int
    limit: int | None
    expires: float | None
    state: str = "ready"
    entered: int = 0
    at: float = 0.0
    """When a delayed job is due, or a lease ends."""
    deliveries: int = 0
    free: int = 0
    crashes: int = 0
    token: str = ""
    incarnation: int = 0
    """Learnt from the first lease of this life; 0 before."""
    cancel_asked: bool = False

    @property
    def crash_limit(self) -> int:
        return CRASH_LIMIT if self.limit is None else self.limit

    @property
    def suspect(self) -> bool:
        return 0 < self.crashes == self.crash_limit - 1

    def doomed(self, now: float) -> Doom | None:
        if self.cancel_asked:
            return Doom.CANCELLED
        if self.crashes >= self.crash_limit:
            return Doom.CRASHED
        return Doom.EXPIRED if self.expires is not None and self.expires <= now else None


@dataclass
class Model:
    now: float = 0.0
    jobs: dict[str, Job] = field(default_factory=dict)
    unreadable: int = 0
    fences: dict[str, int] = field(default_factory=dict)
    incarnations: dict[str, int] = field(default_factory=dict)
    entries: int = 0

    def enter(self, job: Job, delay: float = 0.0) -> None:
        self.entries += 1
        job.state, job.entered, job.at = ("delayed" if delay else "ready"), self.entries, self.now + delay
        job.token = ""

    def push(self, pushes: Sequence[Push]) -> list[str]:
        answers = []
        for push in pushes:
            if push.id in self.jobs:
                answers.append("held")
                continue
            expires = None if push.expires_in is None else self.now + push.expires_in
            job = Job(push.id, push.envelope, push.priority, push.crash_limit, expires)
            self.jobs[push.id] = job
            self.enter(job, push.delay)
            answers.append("stored")
        return answers

    def move_on(self) -> None:
        """Recover and promote, as every claim does first. What falls due together may enter in any order."""
        for state in ("leased", "delayed"):
            for at in sorted({job.at for job in self.of(state) if job.at <= self.now}):
                together = [job for job in self.of(state) if job.at == at]
                for job in together:
                    job.crashes += state == "leased"
                    self.enter(job)
                for job in together:
                    job.entered = self.entries

    def check_claim(self, leases: Sequence[Lease], limit: int, *, suspects: bool, length: float) -> None:
        """Assert that a claim may bring just this, and take it over."""
        self.move_on()
        line = sorted(self.of("ready"), key=_place)
        plain = [job for job in line if not job.suspect]
        # Suspects that are doomed are not held back as others are, but may stand in their line.
        either = {job.id for job in line if job.suspect and job.doomed(self.now)}
        doubtful = {job.id for job in line if job.suspect} - either
        assert len({lease.id for lease in leases}) == len(leases) <= limit
        taken = [lease for lease in leases if lease.id in doubtful]
        others = [self.jobs[lease.id] for lease in leases if not self.jobs[lease.id].suspect]
        assert len(taken) <= (1 if suspects else 0)
        room = limit - (len(leases) - len(others))
        assert [_place(job) for job in others] == [_place(job) for job in plain[:room]]
        if doubtful and suspects and not taken and not either:
            assert len(leases) == limit, "there was room for a suspect"
        for lease in leases:
            self.lease(lease, length)

    def lease(self, lease: Lease, length: float) -> None:
        job = self.jobs[lease.id]
        job.deliveries += 1
        assert (lease.deliveries, lease.free, lease.crashes) == (job.deliveries, job.free, job.crashes)
        assert lease.attempt == job.deliveries - job.free
        assert lease.envelope == job.envelope
        assert lease.doomed is job.doomed(self.now)
        assert lease.suspect is (job.suspect and lease.doomed is None)
        assert lease.fence > self.fences.get(job.id, 0)
        self.fences[job.id] = lease.fence
        if job.incarnation:
            assert lease.incarnation == job.incarnation
        else:
            assert lease.incarnation > self.incarnations.get(job.id, 0)
        self.incarnations[job.id] = job.incarnation = lease.incarnation
        job.state, job.token, job.at = "leased", lease.token, self.now + length

    def holder(self, lease: Lease) -> Job | None:
        job = self.jobs.get(lease.id)
        return job if job is not None and job.token == lease.token and job.state == "leased" else None

    def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        return [self.settle_one(settlement) for settlement in settlements]

    def settle_one(self, settlement: Settlement) -> Settled:
        job = self.holder(settlement.lease)
        if job is None:
            return Settled.STALE
        match settlement:
            case Ack() | Drop():
                del self.jobs[job.id]
            case SetAside():
                del self.jobs[job.id]
                self.unreadable += 1
            case Fail():
                self.entries += 1
                job.state, job.token, job.entered = "failed", "", self.entries
            case Release() if job.cancel_asked:
                del self.jobs[job.id]
                return Settled.CANCELLED
            case Release():
                job.free += settlement.free
                job.crashes += settlement.crashed
                self.enter(job, settlement.delay)
        return Settled.DONE

    def renew(self, leases: Sequence[Lease]) -> list[Renewal]:
        answers = []
        for lease in leases:
            job = self.holder(lease)
            if job is None:
                answers.append(Renewal.LOST)
                continue
            job.at = self.now + lease.length
            answers.append(Renewal.CANCEL_REQUESTED if job.cancel_asked else Renewal.HELD)
        return answers

    def cancel(self, ids: Sequence[str]) -> list[Cancelled]:
        answers = []
        for one in ids:
            job = self.jobs.get(one)
            if job is None or job.state == "failed":
                answers.append(Cancelled.NOT_FOUND)
            elif job.state == "leased":
                job.cancel_asked = True
                answers.append(Cancelled.REQUESTED)
            else:
                del self.jobs[one]
                answers.append(Cancelled.REMOVED)
        return answers

    def clear(self) -> int:
        waiting = [*self.of("ready"), *self.of("delayed")]
        for job in waiting:
            del self.jobs[job.id]
        return len(waiting)

    def retry(self, records: Sequence[FailedRecord]) -> list[bool]:
        answers = []
        for record in records:
            job = self.failed_as(record)
            answers.append(job is not None)
            if job is not None:
                # A passed expiry would only fail it again; one that is still to come may hold.
                fresh = Job(job.id, job.envelope, job.priority, job.limit, None)
                self.jobs[job.id] = fresh
                self.enter(fresh)
        return answers

    def forget(self, records: Sequence[FailedRecord]) -> list[bool]:
        answers = []
        for record in records:
            job = self.failed_as(record)
            answers.append(job is not None)
            if job is not None:
                del self.jobs[job.id]
        return answers

    def failed_as(self, record: FailedRecord) -> Job | None:
        job = self.jobs.get(record.id)
        return job if job is not None and job.state == "failed" and job.incarnation == record.incarnation else None

    def of(self, state: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.state == state]

    def counts(self) -> dict[str, int]:
        lapsed = [job for job in self.of("leased") if job.at <= self.now]
        states = {state: len(self.of(state)) for state in ("ready", "delayed", "leased", "failed")}
        return {**states, "lapsed": len(lapsed), "unreadable": self.unreadable}

    def states(self, ids: Iterable[str]) -> list[str]:
        names = {"leased": "running"}
        return [names.get(job.state, job.state) if (job := self.jobs.get(one)) else "gone" for one in ids]


def _place(job: Job) -> tuple[int, int]:
    return -job.priority, job.entered

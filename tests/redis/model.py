"""What the scripts must do, said again in plain Python over plain lists, with the whole of the stored state."""

from bisect import insort
from dataclasses import dataclass, field
from typing import Any

from tests.redis.kept import Kept, as_told, ended
from tests.redis.taking import Taking

CRASH_LIMIT = 3


@dataclass
class Job:
    id: str
    inc: int
    envelope: bytes
    limit: int = 0
    expiry: int = 0
    at: int = 0
    priority: int = 0
    deliveries: int = 0
    free: int = 0
    crashes: int = 0
    rest: str = ""
    # While it is leased:
    member: str = ""
    deadline: int = 0
    record: bytes = b""

    @property
    def entry(self) -> str:
        return f"{self.id}|{self.inc}"

    @property
    def delayed_entry(self) -> str:
        return f"{self.entry}|{self.priority}" if self.priority else self.entry

    def stored(self) -> bytes:
        counters = f"{self.inc}|{self.deliveries}|{self.free}|{self.crashes}"
        return f"{counters}|{self.limit}|{self.expiry}|{self.at}|{self.priority}{self.rest}\n".encode() + self.envelope


@dataclass
class Model:
    now: int
    waiting: dict[str, Job] = field(default_factory=dict)
    running: dict[str, Job] = field(default_factory=dict)
    failed: dict[str, tuple[Job, bytes, int]] = field(default_factory=dict)
    planted: dict[str, bytes] = field(default_factory=dict)
    """Records in the waiting hash that are no records."""
    ready: list[str] = field(default_factory=list)
    prio: list[tuple[int, str]] = field(default_factory=list)
    delayed: dict[str, int] = field(default_factory=dict)
    suspects: list[str] = field(default_factory=list)
    unreadable: list[dict[bytes, bytes]] = field(default_factory=list)
    cancel: dict[str, int] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    leftovers: dict[str, dict[str, bytes]] = field(default_factory=dict)
    clients: dict[str, str] = field(default_factory=dict)
    seq: int = 0
    fence: int = 0
    kept: Kept = field(default_factory=Kept)
    awake: bool = False
    paused: bool = False
    taken: dict[str, int] = field(default_factory=dict)
    """How many entries have left the head of a list."""
    ended: set[str] = field(default_factory=set)
    """Members whose lease has ended."""
    seen: dict[str, int] = field(default_factory=dict)
    """How often what happened: a run that never met a case proves nothing about it."""

    def note(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1

    # ------------------------------------------------------------------------------------------------- the lines

    def next(self) -> int:
        self.seq += 1
        return self.seq

    @property
    def idle(self) -> bool:
        return not self.ready and not self.prio

    @property
    def first_delayed(self) -> float:
        return min(self.delayed.values(), default=float("inf"))

    def enter(self, entries: list[tuple[str, int]]) -> None:
        self.ready += [entry for entry, priority in entries if not priority]
        for entry, priority in entries:
            if priority:
                insort(self.prio, (-priority, f"{self.next():016d}|{entry}"))

    def count(self, line: str, left: int) -> None:
        if left:
            self.taken[line] = self.taken.get(line, 0) + left

    # ------------------------------------------------------------------------------------------------ transitions

    def push(self, jobs: list[tuple[str, int, int, int, int, int, bytes]]) -> str:
        """Take (id, delay, priority, crash limit, expires in, keep, envelope) each; return the answer."""
        idle, first, letters, fresh = self.idle, self.first_delayed, "", []
        for job_id, delay, priority, limit, expires, keep, envelope in jobs:
            if job_id in self.waiting or job_id in self.running or job_id in self.failed or job_id in self.planted:
                letters += "h"
                continue
            letters += "s"
            job = Job(job_id, self.next(), envelope, limit=limit, priority=priority, rest=f"|{keep}" if keep else "")
            job.expiry = self.now + expires if expires else 0
            job.at = self.now + delay
            self.waiting[job_id] = job
            self.kept.drop(job_id)
            fresh.append((job, delay))
        for job, delay in fresh:
            if delay:
                self.delayed[job.delayed_entry] = self.now + delay
        self.enter([(job.entry, job.priority) for job, delay in fresh if not delay])
        soonest = min((self.now + delay for _, delay in fresh if delay), default=float("inf"))
        if (idle and any(not delay for _, delay in fresh)) or soonest < first:
            self.awake = True
        return "" if set(letters) == {"s"} else letters

    def judged(self, job: Job, crash_limit: int) -> str:
        limit = job.limit or crash_limit
        if self.cancel.get(job.id) == job.inc:
            return "x"
        if job.crashes >= limit:
            return "c"
        if job.expiry and job.expiry <= self.now:
            return "e"
        if job.deliveries > 1000:
            return "d"
        return "s" if job.crashes and job.crashes == limit - 1 else "-"

    def claim(self, limit: int, lease: int, token: str, suspects: bool, crash_limit: int) -> list[Any]:
        """Return the reply, but for its second to fourth element."""
        lapsed = sorted((job.deadline, job.member.encode(), job) for job in self.running.values())
        lapsed = [each for each in lapsed if each[0] <= self.now]
        self._repair()
        entering: list[tuple[str, int]] = []
        fresh_suspects = False
        for _, _, job in lapsed:
            self.note("lapsed")
            self.ended.add(job.member)
            del self.running[job.id]
            self.kept.drop(job.id)
            job.crashes += 1
            job.at = self.now
            self.waiting[job.id] = job
            if job.crashes == (job.limit or crash_limit) - 1 and job.id not in self.cancel:
                self.suspects.append(job.entry)
                fresh_suspects = True
            else:
                entering.append((job.entry, job.priority))
        for due, entry in sorted((due, entry) for entry, due in self.delayed.items() if due <= self.now):
            parts = entry.split("|")
            entering.append(("|".join(parts[:2]), int(parts[2]) if parts[2:] else 0))
            del self.delayed[entry]
            assert due <= self.now
        self.enter(entering)
        if self.kept.forget_old(self.now):
            self.note("old end")
        if self.paused:
            self.note("claim of a paused queue")
            return [b"empty", b"", []]
        taking = Taking(self, limit, lease, token, suspects, crash_limit)
        walked = taking.run()
        fresh_suspects = fresh_suspects or bool(taking.moved)
        if not self.idle or (self.suspects and (fresh_suspects or walked)):
            self.awake = True
        status = b"done" if taking.members else b"empty"
        return [status, taking.marks.encode(), taking.aside, *taking.pairs]

    def _repair(self) -> None:
        ahead = sorted((job.deadline, job.member) for job in self.running.values())
        if ahead and ahead[-1][0] > self.now + int(ahead[-1][1].rsplit("|", 1)[1]):
            self.note("clock went back")
            for job in self.running.values():
                job.deadline = min(job.deadline, self.now + int(job.member.rsplit("|", 1)[1]))

    def set_aside(self, job_id: str, reason: str, record: bytes) -> None:
        self.note("set aside")
        self.unreadable.append({b"id": job_id.encode(), b"reason": reason.encode(), b"record": record})

    def held(self, member: str) -> Job | None:
        job = self.running.get(member.partition("|")[0])
        return job if job is not None and job.member == member else None

    def settle(self, acks: list[str], others: list[tuple[str, str, str, str]]) -> str:
        idle, first, letters = self.idle, self.first_delayed, ""
        entering: list[tuple[str, int]] = []
        delayed: list[int] = []
        suspected = False
        ends: list[tuple[Job, str, str]] = []
        for verb, member, detail, kind in [*(("a", member, "", "") for member in acks), *others]:
            job = self.held(member)
            if job is None:
                self.note("stale")
                letters += "s"
                continue
            assert member not in self.ended
            self.ended.add(member)
            del self.running[job.id]
            self.kept.drop(job.id)
            requested = self.cancel.pop(job.id, None) == job.inc
            letters += "c" if verb == "r" and requested else "d"
            ends += ended(job, verb, detail, kind, requested=requested)
            if verb == "s":
                self.set_aside(job.id, detail, job.record)
            elif verb in "fe":
                job.at = self.now
                self.failed[job.id] = job, detail.encode(), self.now
            elif verb == "r" and not requested:
                job.free += kind == "free"
                job.crashes += kind == "crashed"
                job.at = self.now + int(detail)
                self.waiting[job.id] = job
                if int(detail):
                    self.delayed[job.delayed_entry] = job.at
                    delayed.append(job.at)
                elif kind == "crashed" and job.crashes == job.limit - 1:
                    self.suspects.append(job.entry)
                    suspected = True
                else:
                    entering.append((job.entry, job.priority))
        self.kept.end(ends, self.now)
        self.enter(entering)
        if (entering and idle) or suspected or min(delayed, default=float("inf")) < first:
            self.awake = True
        return "" if set(letters) == {"d"} else letters

    def renew(self, members: list[str]) -> str:
        letters = ""
        for member in members:
            job = self.held(member)
            if job is None:
                letters += "l"
            else:
                job.deadline = self.now + int(member.rsplit("|", 1)[1])
                letters += "c" if self.cancel.get(job.id) == job.inc else "h"
        return "" if set(letters) == {"h"} else letters

    def cancel_jobs(self, ids: list[str]) -> str:
        letters = ""
        ends: list[tuple[Job, str, str]] = []
        for job_id in ids:
            if job_id in self.running:
                self.cancel[job_id] = self.running[job_id].inc
                letters += "q"
            elif job_id in self.waiting:
                job = self.waiting.pop(job_id)
                self.delayed.pop(job.delayed_entry, None)
                ends.append((job, "c", ""))
                self.cancel.pop(job_id, None)
                letters += "r"
            else:
                letters += "n"
        self.kept.end(ends, self.now)
        return letters

    def clear(self, leftover: str) -> int:
        number = len(self.waiting) + len(self.planted)
        if number:
            self.gone.append(leftover)
            self.leftovers[leftover] = {**{i: job.stored() for i, job in self.waiting.items()}, **self.planted}
        if self.ready or self.suspects:
            self.taken = {name: self.taken.get(name, 0) + len(getattr(self, name)) for name in ("suspects", "ready")}
        for line in (self.waiting, self.planted, self.ready, self.prio, self.delayed, self.suspects):
            line.clear()
        return number

    def sweep(self) -> int:
        records = self.leftovers.pop(self.gone.pop(0))
        for job_id, record in records.items():
            if record.startswith(b"%d|" % self.cancel.get(job_id, 0)):
                self.note("request of a job that was cleared")
                del self.cancel[job_id]
        return len(records)

    def retry(self, jobs: list[tuple[str, int]]) -> str:
        idle, letters = self.idle, ""
        entering: list[tuple[str, int]] = []
        for job_id, inc in jobs:
            if job_id not in self.failed or self.failed[job_id][0].inc != inc:
                letters += "n"
                continue
            letters += "y"
            old = self.failed.pop(job_id)[0]
            expiry = 0 if old.expiry <= self.now else old.expiry
            job = Job(job_id, self.next(), old.envelope, old.limit, expiry, self.now, old.priority, rest=old.rest)
            self.kept.drop(job_id)
            self.waiting[job_id] = job
            entering.append((job.entry, job.priority))
        self.enter(entering)
        if entering and idle:
            self.awake = True
        return letters

    def forget(self, jobs: list[tuple[str, int]]) -> str:
        letters = ""
        for job_id, inc in jobs:
            there = job_id in self.failed and self.failed[job_id][0].inc == inc
            letters += "y" if there else "n"
            if there:
                del self.failed[job_id]
        return letters

    def prune(self, age: int) -> str:
        old = [job_id for job_id, (_, _, at) in self.failed.items() if at <= self.now - age]
        for job_id in old:
            self.note("pruned")
            del self.failed[job_id]
        return f"{len(old)}|{len(old)}|{self.now - (age or 1)}"

    def pause(self) -> str:
        was, self.paused = self.paused, True
        return "n" if was else "y"

    def resume(self) -> str:
        was, self.paused = self.paused, False
        self.awake = self.awake or was
        return "y" if was else "n"

    # --------------------------------------------------------------------------------------------------- the whole

    def listed(self, state: str) -> list[str]:
        """Return ids as a listing must tell them."""
        if state == "running":
            return [member.split("|")[0] for _, member in sorted((j.deadline, j.member) for j in self.running.values())]
        if state == "delayed":
            return [entry.split("|")[0] for _, entry in sorted((due, entry) for entry, due in self.delayed.items())]
        ranked = sorted(self.prio)
        line = [*self.suspects, *(entry[17:] for score, entry in ranked if score < 0), *self.ready]
        line += [entry[17:] for score, entry in ranked if score > 0]
        there = {job.entry for job in self.waiting.values()}
        # A record that is none has no incarnation: each of its entries may be the one at which a claim meets it.
        return [entry.split("|")[0] for entry in line if entry in there or entry.split("|")[0] in self.planted]

    def states(self, ids: list[str]) -> str:
        def state(job_id: str) -> str:
            if job_id in self.running:
                return "l"
            if job_id in self.waiting:
                return "d" if self.waiting[job_id].delayed_entry in self.delayed else "r"
            if job_id in self.failed:
                return "e" if self.failed[job_id][1].startswith(b'{"reason":"expired"') else "f"
            return "r" if job_id in self.planted else self.kept.state(job_id, self.now)

        return "".join(map(state, ids))

    def counts(self) -> list[int]:
        lapsed = sum(job.deadline <= self.now for job in self.running.values())
        waiting = len(self.waiting) + len(self.planted)
        delayed = len(self.delayed)
        return [waiting - delayed, delayed, len(self.running), lapsed, len(self.failed), len(self.unreadable)]

    def dump(self) -> dict[str, Any]:
        """Return all that the queue's keys must hold, by name."""
        held: dict[str, Any] = {
            "jobs": {**{i: job.stored() for i, job in self.waiting.items()}, **self.planted},
            "running": {i: job.record for i, job in self.running.items()},
            "leased": sorted((job.deadline, job.member) for job in self.running.values()),
            "ready": self.ready,
            "ready:prio": sorted(self.prio),
            "delayed": sorted((due, entry) for entry, due in self.delayed.items()),
            "suspects": self.suspects,
            "failed": {i: _failed(job, line) for i, (job, line, _) in self.failed.items()},
            "failed:at": sorted((at, i) for i, (_, _, at) in self.failed.items()),
            "unreadable": self.unreadable,
            "cancel": {i: str(inc).encode() for i, inc in self.cancel.items()},
            "kept": self.kept.values,
            "kept:at": sorted((until, i) for i, until in self.kept.until.items()),
            "gone": self.gone,
            "seq": str(self.seq).encode() if self.seq else None,
            "fence": str(self.fence).encode() if self.fence else None,
            "wake": ["1"] if self.awake else [],
            "paused": b"1" if self.paused else None,
            "taken": {name: str(number).encode() for name, number in self.taken.items()},
            **{f"client:{client}": answer.encode() for client, answer in self.clients.items()},
            **self.leftovers,
        }
        return {name: as_told(value) for name, value in held.items() if value}


def _failed(job: Job, line: bytes) -> bytes:
    header, _, envelope = job.stored().partition(b"\n")
    return header + b"\n" + line + b"\n" + envelope

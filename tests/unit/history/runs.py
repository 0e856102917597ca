"""Recorded runs, made by hand."""

from itertools import count
from typing import Any

import msgspec

from tenure.testing.history import Audit, Call, Dump, Effect, Event, Fault, Flow, Subject, Terms, Verdict, Worker, check

Q = "q"
SECOND = 1_000_000


class Run:
    """Writes a run down. A method is one thing that happened; time goes on by a millisecond with each."""

    def __init__(self, **terms: Any) -> None:
        self.events: list[Event] = []
        self.now = 1_000_000_000
        self.terms = Terms(**{"margin": 2.0, **terms})
        self._audited = count(1)
        self._called = count(1)
        self._incarnations = count(1)
        self._fences = count(100)
        self._deliveries: dict[str, int] = {}
        self._tokens: dict[str, str] = {}
        self._incarnation: dict[str, int] = {}
        self._fresh = count(1)

    def wait(self, seconds: float) -> "Run":
        self.now += int(seconds * SECOND)
        return self

    def audit(self, what: Any, job_id: str = "", **more: Any) -> "Run":
        self.wait(0.001)
        more = {"incarnation": self._incarnation.get(job_id, 0), **more}
        self.events.append(Audit(next(self._audited), self.now, what, Q, job_id, **more))
        return self

    def told(self, operation: Any, outcome: str, *job_ids: str, phase: Any = "ok", by: str = "w", **more: Any) -> "Run":
        """A call and its answer."""
        number = next(self._called)
        subjects = tuple(Subject(Q, job_id, **more) for job_id in job_ids)
        self.events.append(Call(by, number, operation, "invoke", self.now, subjects))
        self.wait(0.001)
        if phase != "invoke":
            answered = tuple(msgspec.structs.replace(one, outcome=outcome) for one in subjects)
            self.events.append(Call(by, number, operation, phase, self.now, answered))
        return self

    def made(self, job_id: str, **more: Any) -> "Run":
        """The store has a new job."""
        self._incarnation[job_id] = next(self._incarnations)
        self._deliveries[job_id] = 0
        return self.audit("push", job_id, **more)

    def pushed(self, *job_ids: str, by: str = "p", **more: Any) -> "Run":
        """Somebody pushed them, was told so, and the store has them."""
        for job_id in job_ids:
            self.made(job_id, **more)
        return self.told("push", "stored", *job_ids, by=by)

    def granted(self, job_id: str, lease: float = 1.0, **more: Any) -> "Run":
        self._deliveries[job_id] = self._deliveries.get(job_id, 0) + 1
        self._tokens[job_id] = f"t{next(self._fresh)}"
        known = {
            "token": self._tokens[job_id],
            "fence": next(self._fences),
            "deliveries": self._deliveries[job_id],
            "until": self.now + int(lease * SECOND),
        }
        return self.audit("grant", job_id, **{**known, **more})

    def token(self, job_id: str) -> str:
        return self._tokens[job_id]

    def taken(self, verb: Any, job_id: str, outcome: str = "done", **more: Any) -> "Run":
        """A settlement that the store took, and its caller's answer."""
        token = more.pop("token", None) or self.token(job_id)
        self.audit(verb, job_id, token=token, **more)
        return self.told("settle", outcome, job_id, token=token, verb=verb)

    def ran(self, job_id: str) -> "Run":
        """Pushed, granted, acknowledged."""
        return self.pushed(job_id).granted(job_id).taken("ack", job_id)

    def effect(self, job_id: str) -> "Run":
        self.events.append(Effect("w", self.now, "start", Q, job_id, 1, 1))
        return self

    def fault(self, seconds: float = 1.0, proof: str = "seen", overlap: int | None = 5) -> "Run":
        began = self.now
        self.wait(seconds)
        self.events.append(Fault("fault", began, self.now, proof, overlap))
        return self

    def worker(self, process: str, since: int, until: int) -> "Run":
        self.events.append(Worker(process, since, until))
        return self

    def composed(self, flow: Flow) -> "Run":
        """A composition was made, of which something may have run before this is said."""
        self.events.append(flow)
        return self

    def at_rest(self, records: dict[str, str] | None = None, **more: Any) -> Verdict:
        self.events.append(Dump(Q, records or {}, **more))
        return self.judged()

    def judged(self) -> Verdict:
        return check(self.events, self.terms)


def broken(verdict: Verdict) -> set[str]:
    """Return the invariants that are broken."""
    return {one.invariant for one in verdict.violations}

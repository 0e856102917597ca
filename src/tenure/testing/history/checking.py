"""The check: one pass over what was recorded, every job by itself, and a verdict."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from tenure.testing.history.clients import Clients
from tenure.testing.history.coming_back import coming_back, doubts
from tenure.testing.history.events import Audit, Call, Dump, Effect, Event, Fault, Flow, Worker
from tenure.testing.history.flows import check_flows
from tenure.testing.history.forgetting import believed, forgotten
from tenure.testing.history.job import JobModel
from tenure.testing.history.resting import check_rest
from tenure.testing.history.timelines import timeline
from tenure.testing.history.uniqueness import Uniqueness
from tenure.testing.history.verdict import Decision, Verdict, Violation

SHOWN: Final = 3
"""Offending jobs whose timelines are told."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was to keep to, and what makes it count."""

    margin: float = 10.0
    """Seconds after a fault within which every worker must make progress: lease, sweep, and some more."""
    overlap: int = 1
    """Calls that a fault must have met."""
    faults: int = 0
    """How many faults there must have been."""
    tolerance: float = 0.0
    """Seconds by which the store's clock may differ between two lines of its audit."""
    crash_limit: int | None = None
    """Crashes after which a job is leased no more than once."""
    apart: float | None = 1.0
    """Seconds by which the callers' clock and the store's may differ; None: nothing is decided from both."""
    around: float = 2.0
    """Seconds before and after a fault that forgets within which answers may be among what is forgotten."""
    losses: bool = False
    """The run's durability class allows that the last acknowledged pushes of each writer are lost."""


class History:
    """Everything that was recorded of a run, taken in any order; the audit must be in the store's."""

    def __init__(self, terms: Terms | None = None) -> None:
        self.terms: Terms = terms or Terms()
        self.violations: list[Violation] = []
        self.jobs: dict[tuple[str, str], JobModel] = {}
        self._clients = Clients()
        self._unique = Uniqueness()
        self._audit: list[Audit] = []
        self._effects: list[Effect] = []
        self._faults: list[Fault] = []
        self._workers: list[Worker] = []
        self._flows: list[Flow] = []
        self._dumps: list[Dump] = []
        self._waiting: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._begun: dict[tuple[str, str], int] = {}
        self._calls: list[Call] = []

    def add(self, events: Iterable[Event]) -> None:
        """Take some of what was recorded."""
        for event in events:
            match event:
                case Audit():
                    self._audit.append(event)
                case Call():
                    self._calls.append(event)
                case Effect():
                    self._effects.append(event)
                case Fault():
                    self._faults.append(event)
                case Worker():
                    self._workers.append(event)
                case Flow():
                    self._flows.append(event)
                    self._clients.compose(event)
                case Dump():
                    self._dumps.append(event)

    def verdict(self) -> Verdict:
        """Decide. Takes time in proportion to what was recorded."""
        self._audit.sort(key=lambda event: event.number)
        for call in believed(self._calls, self._faults, self.terms.around):
            self._clients.add(call)
        self._unique.learn(self._clients.uniques)
        for event in self._audit:
            self._replay(event)
        found = list(self.violations)
        losses, about_pushes = self._clients.pushes(self.jobs, self._dumps, allowed=self.terms.losses)
        found += about_pushes
        found += self._clients.answers(self.jobs)
        found += self._effects_of_nobody()
        found += check_rest(self.jobs, self._dumps)
        found += check_flows(self._flows, self.jobs, self._clients, self._dumps)
        found += self._held_by_nobody()
        found += coming_back(self._workers, self._faults, self._calls, self.terms.margin)
        unsure = doubts(self._faults, self._calls, self._dumps, self.terms.overlap, self.terms.faults)
        if not self.jobs:
            unsure.append("nothing was recorded")
        decision: Decision = "invalid" if found else "unknown" if unsure else "valid"
        offending = list(dict.fromkeys((one.queue, one.id) for one in found if one.id))[:SHOWN]
        shown = [timeline(*job, self._audit, self._calls, self._effects) for job in offending]
        return Verdict(decision, found, unsure, losses, self._figures(), shown)

    def _replay(self, event: Audit) -> None:
        if event.what == "clear":
            for job_id in list(self._waiting[event.queue]):
                self._step(self.jobs[event.queue, job_id], msgspec.structs.replace(event, id=job_id))
            return
        job = self.jobs.get((event.queue, event.id))
        if job is None:
            tolerance = int(self.terms.tolerance * 1e6)
            job = self.jobs[event.queue, event.id] = JobModel(tolerance, self.terms.crash_limit)
        if event.what == "grant":
            self._begun.setdefault((event.queue, event.id), event.number)
        self._step(job, event)

    def _step(self, job: JobModel, event: Audit) -> None:
        for invariant, text in job.apply(event):
            self.violations.append(Violation(invariant, text, event.queue, event.id))
        if job.state == "waiting":
            self._waiting[event.queue][event.id] = None
        else:
            self._waiting[event.queue].pop(event.id, None)
        taken = self._unique.follow(event, there=job.state in {"waiting", "leased"})
        if taken is not None:
            text = f"it waits or runs together with {taken}, which has the same unique text"
            self.violations.append(Violation("I9", text, event.queue, event.id))

    def _held_by_nobody(self) -> list[Violation]:
        if self.terms.apart is None:
            return []
        told = self._unique.held_by_nobody(self._clients.holds, int(self.terms.apart * 1e6))
        return [Violation("I9", text, one.queue, one.id) for one, text in told]

    def _effects_of_nobody(self) -> list[Violation]:
        """A handler ran for a job that no lease was ever given for."""
        return [
            Violation("I2", "a handler ran it, and it was never leased", effect.queue, effect.id)
            for effect in self._effects
            if effect.what == "start"
            and self._audit
            and (effect.queue, effect.id) not in self._begun
            and not forgotten(effect.at, self._faults, self.terms.around)
        ]

    def _figures(self) -> dict[str, int]:
        figures: defaultdict[str, int] = defaultdict(int)
        for event in self._audit:
            figures[f"{event.what}"] += 1
        return {
            "jobs": len(self.jobs),
            "calls": self._clients.count,
            "transitions": len(self._audit),
            "grants": figures["grant"],
            "settled": sum(figures[what] for what in ("ack", "drop", "fail", "release", "aside")),
            "lapsed": sum(job.lapses for job in self.jobs.values()),
            "effects": len(self._effects),
            "compositions": len(self._flows),
            "held": len(self._clients.holds),
            "faults": len(self._faults),
            "recovered unknowns": self._clients.recovered,
        }


def check(events: Iterable[Event], terms: Terms | None = None) -> Verdict:
    """Judge a recorded run."""
    history = History(terms)
    history.add(events)
    return history.verdict()

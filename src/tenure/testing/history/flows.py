"""Compositions are exact (I8): none of their jobs before its time, each that is to run once, and every end counted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple

from tenure.testing.history.clients import Clients
from tenure.testing.history.events import Dump, Flow, Tally
from tenure.testing.history.job import JobModel
from tenure.testing.history.verdict import Violation

Jobs = Mapping[tuple[str, str], JobModel]


class End(NamedTuple):
    """How a job of a composition ended, and by which line of the audit; one that never ran ended by others' ends."""

    how: str
    """``succeeded failed cancelled``."""
    number: int


def check_flows(flows: Sequence[Flow], jobs: Jobs, clients: Clients, dumps: Sequence[Dump]) -> list[Violation]:
    """Return what compositions contradict."""
    there = {dump.queue: dump.compositions for dump in dumps if dump.compositions is not None}
    found: list[Violation] = []
    for flow in flows:
        known = there.get(flow.queue)
        found += FlowCheck(flow, jobs, clients).run(None if known is None else known.get(flow.composition), known)
    return found


class FlowCheck:
    """Goes through one composition, what others wait for first."""

    def __init__(self, flow: Flow, jobs: Jobs, clients: Clients) -> None:
        self._flow = flow
        self._jobs = jobs
        self._clients = clients
        self._ends: dict[str, End | None] = {}
        self._halted = (flow.queue, flow.composition) in clients.halted

    def run(self, tally: Tally | None, known: Mapping[str, Tally] | None) -> Iterator[Violation]:
        """Yield what it breaks; ``tally`` is what the store says of it at rest."""
        flow = self._flow
        told = self._clients.started.get((flow.queue, flow.composition))
        if told == "ok" and known is not None and tally is None:
            text = f"the composition {flow.composition} was told to be started, and is nowhere"
            yield Violation("I1", text, flow.queue)
        begun = told == "ok" or tally is not None or any(self._made(job_id) for job_id in flow.jobs)
        for job_id in TopologicalSorter(flow.after).static_order():
            job = self._made(job_id)
            broken = self._ran(job_id, job) if job is not None else self._did_not_run(job_id) if begun else iter(())
            yield from (Violation("I8", text, flow.queue, job_id) for text in broken)
        if tally is not None:
            yield from (Violation("I8", f"{flow.composition} {text}", flow.queue) for text in self._counted(tally))

    def _made(self, job_id: str) -> JobModel | None:
        job = self._jobs.get((self._flow.queue, job_id))
        return job if job is not None and job.pushes else None

    def _ran(self, job_id: str, job: JobModel) -> Iterator[str]:
        if job.pushes > 1:
            yield f"{self._flow.composition} made it {job.pushes} times"
        made = job.made_at or 0
        before = {parent: self._ends.get(parent) for parent in self._flow.after.get(job_id, ())}
        early = [parent for parent, end in before.items() if end is None or end.number > made]
        if early:
            yield f"it began before {early[0]} had ended"
        elif not self._runs(job_id):
            yield f"it began, and what it waits for ended otherwise: {self._told(job_id)}"
        self._ends[job_id] = self._end(job_id, job)

    def _did_not_run(self, job_id: str) -> Iterator[str]:
        before = [self._ends.get(parent) for parent in self._flow.after.get(job_id, ())]
        ended = [end for end in before if end is not None]
        self._ends[job_id] = None
        if len(ended) == len(before):
            if self._runs(job_id) and not self._halted:
                yield f"it never began, and what it waits for has ended: {self._told(job_id)}"
            self._ends[job_id] = End("cancelled", max((end.number for end in ended), default=0))

    def _end(self, job_id: str, job: JobModel) -> End | None:
        # What comes after a failure is a job of its own: somebody retried it by hand.
        last = job.ends[0] if job.ends else None
        if last is None:
            return None
        if last.what in {"fail", "aside"}:
            return End("failed", last.number)
        well = last.what == "ack" and self._clients.succeeded(self._flow.queue, job_id, last.token)
        return End("succeeded" if well else "cancelled", last.number)

    def _runs(self, job_id: str) -> bool:
        """Whether it is to run, by how those ended that it waits for."""
        when = self._flow.when.get(job_id, "success")
        ends = [self._ends.get(parent) for parent in self._flow.after.get(job_id, ())]
        well = all(end is not None and end.how == "succeeded" for end in ends)
        return when == "any" or well == (when == "success")

    def _told(self, job_id: str) -> str:
        ends = [self._ends.get(parent) for parent in self._flow.after.get(job_id, ())]
        told = Counter(end.how for end in ends if end is not None)
        return ", ".join(f"{number} {how}" for how, number in told.items()) or "nothing"

    def _counted(self, tally: Tally) -> Iterator[str]:
        ends = [self._ends.get(job_id) for job_id in self._flow.jobs - set(self._flow.callbacks)]
        told = Counter("open" if end is None else end.how for end in ends)
        if tally.total != len(ends):
            yield f"has {tally.total} jobs by its own count, and {len(ends)} were stored"
        for how in ("succeeded", "failed", "cancelled"):
            if getattr(tally, how) != told[how]:
                yield f"counts {getattr(tally, how)} of {len(ends)} as {how}, and {told[how]} were"
        if tally.over != (not told["open"]):
            yield f"is {'over' if tally.over else 'not over'}, and {told['open']} of {len(ends)} jobs have not ended"

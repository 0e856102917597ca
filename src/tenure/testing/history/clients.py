"""What callers were told, held against what the store did."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tenure.testing.history.events import Call, Dump, Flow, Subject
from tenure.testing.history.job import JobModel
from tenure.testing.history.verdict import Losses, Violation

Jobs = Mapping[tuple[str, str], JobModel]
HELD: Final = {"held", "cancel_requested"}
MEANS: Final[Mapping[str, set[str]]] = {
    "ack": {"ack", "aside"},
    "drop": {"drop", "ack", "aside"},
    "release": {"release", "aside"},
    "fail": {"fail", "aside"},
    "aside": {"aside", "ack"},
}
"""What a store may have done that says that it did what was asked: a record that it can not read it sets aside, and it
need not tell ways of removing a job apart."""
DONE: Final = {"done", "repeated", "cancelled"}


class _Pushed:
    """All pushes of one id."""

    def __init__(self) -> None:
        self.tried: int = 0
        self.stored: int = 0
        self.unknown = 0
        self.refused = 0


class _Settlement(NamedTuple):
    process: str
    number: int
    verb: str


class Clients:
    """The clients' logs, by job."""

    def __init__(self) -> None:
        self.count: int = 0
        self.recovered: int = 0
        """Pushes of unknown outcome that had happened."""
        self.uniques: dict[tuple[str, str], str] = {}
        self.holds: list[tuple[Subject, int, int]] = []
        """Pushes that another job with the same text held, and between which times that must have been there."""
        self.started: dict[tuple[str, str], str] = {}
        """How the start of each composition ended."""
        self.halted: set[tuple[str, str]] = set()
        """The compositions that somebody cancelled."""
        self._begun: dict[tuple[str, int], int] = {}
        self._composed: set[tuple[str, str]] = set()
        self._pushes: defaultdict[tuple[str, str], _Pushed] = defaultdict(_Pushed)
        self._acknowledged: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        self._asked: defaultdict[tuple[str, str, str], list[_Settlement]] = defaultdict(list)
        self._extended: Counter[tuple[str, str, str]] = Counter()
        self._answered: dict[tuple[str, str, str, str, int], str] = {}

    def add(self, call: Call) -> None:
        """Take one line."""
        self.count += call.phase == "invoke"
        if call.operation == "push":
            self._push(call)
        elif call.operation in {"start", "halt"}:
            self._compose(call)
        elif call.operation == "renew" and call.phase == "ok":
            for one in call.subjects:
                self._extended[one.queue, one.id, one.token] += one.outcome in HELD
        elif call.operation == "settle":
            for one in call.subjects:
                key = (one.queue, one.id, one.token)
                if call.phase == "invoke":
                    self._asked[key].append(_Settlement(call.process, call.number, one.verb))
                elif call.phase in {"ok", "fail"}:
                    outcome = one.outcome if call.phase == "ok" else "refused"
                    self._answered[*key, call.process, call.number] = outcome

    def compose(self, flow: Flow) -> None:
        """Take a composition: what it is made of may be there."""
        for job_id in flow.jobs:
            self._composed.add((flow.queue, job_id))

    def succeeded(self, queue: str, job_id: str, token: str) -> bool:
        """Tell whether a lease that ended the job was acknowledged, and not dropped, or released after a cancel."""
        asked = self._asked.get((queue, job_id, token), ())
        return not asked or any(one.verb == "ack" for one in asked)

    def _compose(self, call: Call) -> None:
        for one in call.subjects:
            if call.operation == "halt":
                self.halted.add((one.queue, one.id))
            elif self.started.get((one.queue, one.id)) != "ok":
                self.started[one.queue, one.id] = call.phase

    def _push(self, call: Call) -> None:
        if call.phase == "invoke":
            self._begun[call.process, call.number] = call.at
        for one in call.subjects:
            pushed = self._pushes[one.queue, one.id]
            if call.phase == "invoke":
                pushed.tried += 1
                if one.unique:
                    self.uniques[one.queue, one.id] = one.unique
            elif call.phase == "info" or one.outcome == "unknown":
                pushed.unknown += 1
            elif call.phase == "fail" or one.outcome == "refused":
                pushed.refused += 1
            elif one.outcome in {"", "stored"}:
                pushed.stored += 1
                self._acknowledged[call.process].append((one.queue, one.id))
            else:
                # Held: it is there, unless another job with the same unique text is what held it.
                pushed.unknown += 1
                if one.holder and one.holder != one.id:
                    self.holds.append((one, self._begun.get((call.process, call.number), call.at), call.at))
                if not one.unique:
                    self._acknowledged[call.process].append((one.queue, one.id))

    def pushes(self, jobs: Jobs, dumps: Sequence[Dump], *, allowed: bool) -> tuple[list[Losses], list[Violation]]:
        """Return what was lost of acknowledged pushes, and what they and the others break (I1, I2)."""
        found: list[Violation] = []
        there = {(dump.queue, job_id) for dump in dumps for job_id in dump.records}
        dumped = {dump.queue for dump in dumps}
        losses: list[Losses] = []
        for writer, keys in self._acknowledged.items():
            gone = [key not in jobs or _vanished(jobs[key], key, there, dumped) for key in keys]
            if any(gone):
                losses.append(_split(writer, [key[1] for key in keys], gone))
                excused = len(losses[-1].suffix) if allowed else 0
                bad = [key for key, lost in zip(keys, gone, strict=True) if lost]
                found += [
                    Violation("I1", f"{writer} was told that it is stored, and it is nowhere", *key)
                    for key in bad[: len(bad) - excused]
                ]
        found += self._of_nobody(jobs)
        return losses, found

    def _of_nobody(self, jobs: Jobs) -> list[Violation]:
        found: list[Violation] = []
        for key, job in jobs.items():
            pushed = self._pushes.get(key)
            if pushed is None:
                if job.pushes and key not in self._composed:
                    found.append(Violation("I2", "nobody pushed it", *key))
                continue
            if job.pushes and pushed.tried == pushed.refused:
                found.append(Violation("I2", "every push of it was refused, and it is there", *key))
            if job.pushes > pushed.tried:
                found.append(Violation("I2", f"{pushed.tried} pushes made {job.pushes} jobs", *key))
            if pushed.stored > job.pushes:
                found.append(Violation("I1", f"{pushed.stored} pushes were acknowledged, {job.pushes} made", *key))
            self.recovered += bool(job.pushes and not pushed.stored)
        return found

    def answers(self, jobs: Jobs) -> list[Violation]:
        """Return the answers to settlements and renewals that are not true (I4)."""
        found: list[Violation] = []
        for (queue, job_id, token), calls in self._asked.items():
            job = jobs.get((queue, job_id))
            taken = "" if job is None else job.taken.get(token, "")
            found += [Violation("I4", text, queue, job_id) for text in self._untrue(queue, job_id, token, taken, calls)]
        for (queue, job_id, token), told in self._extended.items():
            job = jobs.get((queue, job_id))
            done = 0 if job is None else job.renewals[token]
            if told > done:
                text = f"{told} renewals of {token} were told to be made, and the store made {done}"
                found.append(Violation("I4", text, queue, job_id))
        return found + self._unasked(jobs)

    def _untrue(self, queue: str, job_id: str, token: str, taken: str, calls: Sequence[_Settlement]) -> Iterator[str]:
        outcomes = [self._answered.get((queue, job_id, token, call.process, call.number), "unknown") for call in calls]
        if not taken and any(outcome in DONE for outcome in outcomes):
            yield f"a settlement by {token} was told to be taken, and the store has taken none"
        if outcomes.count("done") > 1:
            yield f"two settlements by {token} were told to be taken"
        if taken and "unknown" not in outcomes and not any(outcome in DONE for outcome in outcomes):
            yield f"all settlements by {token} were told to be refused, and the store has taken one ({taken})"
        for call, outcome in zip(calls, outcomes, strict=True):
            if taken and outcome == "done" and taken not in MEANS.get(call.verb, {taken}):
                yield f"a {call.verb} by {token} was told to be taken, and the store made it a {taken}"

    def _unasked(self, jobs: Jobs) -> list[Violation]:
        """What a cancelled claim brought, a driver gives back by itself, free of charge; nothing else ends unasked."""
        return [
            Violation("I4", f"nobody asked for the {taken} of the lease {token}", queue, job_id)
            for (queue, job_id), job in jobs.items()
            for token, taken in job.taken.items()
            if self._asked and token not in job.free and (queue, job_id, token) not in self._asked
        ]


def _vanished(job: JobModel, key: tuple[str, str], there: set[tuple[str, str]], dumped: set[str]) -> bool:
    """Not ended, and not there at rest."""
    return job.state in {"waiting", "leased", "failed"} and key[0] in dumped and key not in there


def _split(writer: str, ids: Sequence[str], gone: Sequence[bool]) -> Losses:
    first = next((place for place, lost in enumerate(gone) if not lost), len(gone))
    last = next((place for place, lost in enumerate(reversed(gone)) if not lost), 0)
    end = max(first, len(gone) - last)
    middle = tuple(job_id for job_id, lost in zip(ids[first:end], gone[first:end], strict=True) if lost)
    return Losses(writer, tuple(ids[:first]), middle, tuple(ids[end:]))

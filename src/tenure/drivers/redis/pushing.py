"""Bulk pushes: split into calls, and put together again from their answers. Does no I/O."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from tenure import naming
from tenure.drivers.redis import record
from tenure.errors import DurabilityNotReached, NotSupported, OutcomeUnknown, StoreError
from tenure.queue import Capabilities, Push, Pushed

MOST_JOBS = 500
MOST_BYTES = 1 << 20
"""What one call carries at most (P1); a single larger job goes alone."""


class Answer(NamedTuple):
    """What became of jobs that were sent together."""

    letters: str
    """'' when all are stored, else one a job: s stored, h held by its id, u by another job with the same text."""
    holders: Sequence[str] = ()
    """The ids of those others, in order."""

    @classmethod
    def told(cls, answer: bytes) -> "Answer":
        """Take the answer of the script."""
        letters, *holders = answer.decode().split(" ")
        return cls(letters, holders)

    def parts(self, lengths: Iterable[int]) -> "list[Answer]":
        """Return the answers for the first so many jobs, for so many behind them, and so on."""
        found: list[Answer] = []
        letters, holders = iter(self.letters), iter(self.holders)
        for length in lengths:
            own = "".join(islice(letters, length))
            found.append(Answer(own, list(islice(holders, own.count("u")))))
        return found


class Part:
    """Jobs of one queue and one class of durability that go in one call, in order."""

    __slots__ = ("arguments", "durability", "places", "queue", "size")

    def __init__(self, queue: str, durability: int = 1) -> None:
        self.queue: str = queue
        self.durability: int = durability
        self.places: list[int] = []
        """Where each job stands in the bulk."""
        self.arguments: list[bytes | str] = []
        self.size: int = 0

    def __len__(self) -> int:
        return len(self.places)

    def fits(self, jobs: int, size: int) -> bool:
        """Tell whether so many jobs of so many bytes may join."""
        return not self.places or (len(self.places) + jobs <= MOST_JOBS and self.size + size <= MOST_BYTES)

    def add(self, place: int, job: Push) -> None:
        """Let a job join."""
        self.places.append(place)
        self.arguments += (naming.check_job_id(job.id), record.push_options(job), job.envelope)
        self.size += len(job.envelope)


class Bulk:
    """One call of ``push``: its parts in order, and the outcomes as they come in."""

    def __init__(self, jobs: Sequence[Push], capabilities: Capabilities) -> None:
        self._jobs = jobs
        self._outcomes: list[Pushed | None] = [None] * len(jobs)
        self._error: StoreError | NotSupported | None = None
        self._any_stored = False
        self.parts: list[Part] = []
        open_parts: dict[str, Part] = {}
        for place, job in enumerate(jobs):
            check(job, capabilities)
            part = open_parts.get(job.queue)
            if part is None or part.durability != job.durability or not part.fits(1, len(job.envelope)):
                part = open_parts[job.queue] = Part(naming.check_queue(job.queue), job.durability)
                self.parts.append(part)
            part.add(place, job)

    def answered(self, part: Part, answer: Answer) -> None:
        """Take a part's answer."""
        jobs, outcomes, letters = self._jobs, self._outcomes, answer.letters
        if not letters:
            self._any_stored = True
            for place in part.places:
                outcomes[place] = Pushed(jobs[place].id, "stored")
            return
        self._any_stored = self._any_stored or "s" in letters
        holders = iter(answer.holders)
        for place, letter in zip(part.places, letters, strict=True):
            named = next(holders) if letter == "u" else jobs[place].id
            outcomes[place] = Pushed(named, "stored" if letter == "s" else "held")

    def unconfirmed(self, part: Part, answer: Answer, error: DurabilityNotReached) -> None:
        """Take a part's answer that did not reach its class; the parts behind it are not to be sent."""
        self.answered(part, answer)
        jobs, outcomes = self._jobs, self._outcomes
        told = DurabilityNotReached(error.durability, error.problem, [jobs[place].id for place in part.places])
        for place in part.places:
            outcome = outcomes[place]
            if outcome is not None:
                outcomes[place] = Pushed(outcome.id, outcome.outcome, told)
        self._error = StoreError("not sent: the jobs before it were not confirmed; nothing of it was stored")
        self._any_stored = True  # or held: either way there is more to tell than an error

    def failed(self, part: Part, error: StoreError | NotSupported) -> None:
        """Take a part's failure; the parts behind it are not to be sent."""
        self._error = error
        if isinstance(error, OutcomeUnknown):
            for place in part.places:
                self._outcomes[place] = Pushed(self._jobs[place].id, "unknown", error)

    def result(self) -> list[Pushed]:
        """Return every job's outcome, or raise the failure if no job was stored and no outcome is unknown."""
        error = self._error
        if error is not None and not self._any_stored and not isinstance(error, OutcomeUnknown):
            raise error
        return [
            outcome or Pushed(job.id, "refused", error) for job, outcome in zip(self._jobs, self._outcomes, strict=True)
        ]


def check(job: Push, able: Capabilities) -> None:
    """Raise ``NotSupported`` for a job that asks for what the driver cannot do."""
    if job.durability not in able.durability:
        raise NotSupported(able.driver, f"durability {job.durability}")
    if job.priority and not able.priorities:
        raise NotSupported(able.driver, "priorities")

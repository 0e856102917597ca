"""What a claim asks for, what it finds, and which of the jobs that stand first it takes: the same on every database."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from tenure.drivers.sql.nodes import ALWAYS, GIVES, composition_of
from tenure.drivers.sql.units import SECOND
from tenure.queue import MAX_DELIVERIES, Claimed, Doom, Lease

DOOMED: Final = 2
"""Cancelled with its composition: nobody has asked for the job itself to be cancelled yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is asked for; see ``Queue.claim``."""

    queues: Sequence[str]
    limit: int
    length: float
    crash_limit: int
    suspects: bool
    holder: str | None
    sent: float
    """This process's monotonic time from before the call (P8)."""


class Sight(NamedTuple):
    """What a claim would find in one queue."""

    ready: int
    suspects: int
    due: int | None
    deadline: int | None
    farthest_start: int | None
    """When the lease with the farthest deadline was last extended, by what its deadline says."""

    def asks_for_work(self, now: int, *, suspects: bool, paused: bool) -> bool:
        """Tell whether a claim would change anything."""
        return bool(
            (self.ready and not paused)
            or (self.suspects and suspects and not paused)
            or (self.due is not None and self.due <= now)
            or (self.deadline is not None and self.deadline <= now)
            or (self.farthest_start is not None and self.farthest_start > now)
        )

    @property
    def next_time(self) -> int | None:
        """When the next delayed job or lease falls due."""
        return min((time for time in (self.due, self.deadline) if time is not None), default=None)


class Looked(NamedTuple):
    """What one step of a claim brought."""

    claimed: Claimed
    more: bool = False
    """Compositions have more to be done, which another step may make jobs of: nothing now is not nothing at all."""


class Candidate(NamedTuple):
    """A job that stands in a line."""

    rank: int
    entry: int
    incarnation: int
    id: str
    crash_limit: int | None
    expires: int | None
    deliveries: int
    free: int
    crashes: int
    cancel_requested: int
    since: int
    envelope: bytes
    keep: int
    composition: int | None
    node: int | None
    flags: int
    input: bytes | None
    fence: int = 0
    """Its last one, where each job has its own."""

    def __repr__(self) -> str:
        return f"Candidate({self.id!r}, incarnation={self.incarnation})"  # never its envelope (P12)

    def doom(self, crash_limit: int, now: int) -> Doom | None:
        """Tell why the job must not run any more, if it must not (P4)."""
        if self.cancel_requested:
            return Doom.CANCELLED
        if self.crashes >= (crash_limit if self.crash_limit is None else self.crash_limit):
            return Doom.CRASHED
        if self.expires is not None and self.expires <= now:
            return Doom.EXPIRED
        return Doom.DELIVERIES if self.deliveries >= MAX_DELIVERIES else None


def members(candidates: Iterable[Candidate]) -> list[int]:
    """Return the numbers of the compositions that these jobs belong to."""
    return sorted({candidate.composition for candidate in candidates if candidate.composition is not None})


def doomed_by(cancelling: Container[int], candidate: Candidate) -> Candidate:
    """Return a job as its composition lets it be: one that was cancelled lets only callbacks run, those of any case."""
    if candidate.composition is None or candidate.composition not in cancelling:
        return candidate
    may_run = bool(candidate.flags & ALWAYS) and (candidate.node or 0) < 0
    return candidate if may_run else candidate._replace(cancel_requested=DOOMED)


def is_suspect(own_limit: int | None, crashes: int, default: int) -> bool:
    """Tell whether a job is one crash short of its limit. One that never crashed is no suspect, whatever its limit."""
    return crashes >= 1 and crashes == (default if own_limit is None else own_limit) - 1


class Choice(NamedTuple):
    """What becomes of the jobs at the head of the lines."""

    leased: list[Candidate]
    aside: list[Candidate]
    suspects: bool
    """Whether a suspect may still be leased."""


def choose(
    ready: Sequence[Candidate], others: Sequence[Candidate], claim: Claim, window: int, now: int, *, suspects: bool
) -> Choice:
    """Choose at most ``window`` jobs from the heads of both lines, at most one suspect among them.

    Who is a suspect may depend on who claims, by the crash limit that it gives to jobs without one. A ready job that
    this claim must leave to others steps aside, into the line of the suspects, which ``others`` come from.
    """
    apart = {candidate.incarnation for candidate in others}
    leased: list[Candidate] = []
    aside: list[Candidate] = []
    for candidate in sorted([*ready, *others]) if others else ready:
        if len(leased) == window:
            break
        suspect = candidate.doom(claim.crash_limit, now) is None and is_suspect(
            candidate.crash_limit, candidate.crashes, claim.crash_limit
        )
        if suspects:
            leased.append(candidate)
            suspects = not suspect
        elif candidate.incarnation in apart:
            continue
        elif suspect:
            aside.append(candidate)
        else:
            leased.append(candidate)
    return Choice(leased, aside, suspects)


def leased(candidate: Candidate, claim: Claim, queue: str, *, token: str, fence: int, now: int) -> Lease:
    """Return the lease of a job that was chosen."""
    doomed = candidate.doom(claim.crash_limit, now)
    lease = Lease(
        queue=queue,
        id=candidate.id,
        incarnation=candidate.incarnation,
        token=token,
        fence=fence,
        deliveries=candidate.deliveries + 1,
        free=candidate.free,
        crashes=candidate.crashes,
        length=claim.length,
        deadline=claim.sent + claim.length,
        envelope=candidate.envelope,
        doomed=doomed,
        suspect=doomed is None and is_suspect(candidate.crash_limit, candidate.crashes, claim.crash_limit),
        waited=max(0, now - candidate.since) / SECOND,
        keep=candidate.keep / SECOND,
    )
    if candidate.composition is None and candidate.input is None:
        return lease  # as nearly all are: for them it costs nothing
    composition = "" if candidate.composition is None else composition_of(candidate.id)
    gives = bool(candidate.flags & GIVES)
    return msgspec.structs.replace(lease, composition=composition, input=candidate.input, gives=gives)

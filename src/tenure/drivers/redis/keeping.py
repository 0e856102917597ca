"""What is kept of jobs: how those ended that asked for it, and how far the running ones have come."""

from collections.abc import Sequence

import msgspec

from tenure.drivers.redis import record
from tenure.drivers.redis.session import Session
from tenure.queue import Doom, Failure, JobState
from tenure.results import Ending, Progress, ProgressReport

MOST = 100
"""How many jobs one call asks about at most: a result may be as long as an envelope."""
MOST_REPORTS = 500

_STATES = {
    b"s": JobState.SUCCEEDED,
    b"n": JobState.SUCCEEDED,
    b"f": JobState.FAILED,
    b"e": JobState.EXPIRED,
    b"c": JobState.CANCELLED,
}
_FOREIGN = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)
"""What reading raises for what somebody else has put there: then nothing is kept."""
_reasons = msgspec.json.Decoder(tuple[str, str])


class Keeping:
    """What one event loop reads and reports of what is kept."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def endings(self, queue: str, ids: Sequence[str]) -> list[Ending | None]:
        """Return the kept end of each job, in order."""
        found: list[Ending | None] = []
        for start in range(0, len(ids), MOST):
            now, *values = await self._session.run(queue, "kept", ids[start : start + MOST])
            found += [_ending(value, int(now)) for value in values]
        return found

    async def progress(self, queue: str, ids: Sequence[str]) -> list[Progress | None]:
        """Return the last progress of each job's current attempt, in order."""
        found: list[Progress | None] = []
        for start in range(0, len(ids), MOST):
            _, *values = await self._session.run(queue, "kept", ids[start : start + MOST])
            found += map(_progress, values)
        return found

    async def report(self, reports: Sequence[ProgressReport]) -> list[bool]:
        """Replace the progress of each job whose lease is current."""
        answers = [False] * len(reports)
        by_queue: dict[str, list[int]] = {}
        for place, report in enumerate(reports):
            if report.lease.keep > 0:
                by_queue.setdefault(report.lease.queue, []).append(place)
        for queue, places in by_queue.items():
            for start in range(0, len(places), MOST_REPORTS):
                part = places[start : start + MOST_REPORTS]
                arguments = [text for place in part for text in _reported(reports[place])]
                letters = await self._session.run(queue, "report", arguments)
                for place, letter in zip(part, letters.decode(), strict=True):
                    answers[place] = letter == "y"
        return answers


def failed_letter(failure: Failure) -> str:
    """Return the verb that settles a failure."""
    return "e" if failure.reason == Doom.EXPIRED else "f"


def reason(failure: Failure) -> bytes:
    """Return what is kept of a failure when its job's end is."""
    return msgspec.json.encode((failure.reason, failure.type))


def _reported(report: ProgressReport) -> tuple[str, str]:
    lease, progress = report.lease, report.progress
    return record.member(lease), f"p|{lease.incarnation}|{progress.fraction!r}|{progress.note}"


def _ending(value: bytes, now: int) -> Ending | None:
    letter, _, rest = value.partition(b"|")
    if letter not in _STATES:
        return None
    try:
        incarnation, ended, until, result = rest.split(b"|", 3)
        if int(until) <= now:
            return None
        why, kind = _reasons.decode(result) if letter in b"fe" else ("", "")
        return Ending(
            state=_STATES[letter],
            incarnation=int(incarnation),
            ended_at=int(ended) / 1000,
            result=result if letter == b"s" else None,
            reason=why,
            type=kind,
        )
    except _FOREIGN:
        return None


def _progress(value: bytes) -> Progress | None:
    if not value.startswith(b"p|"):
        return None
    try:
        _, _, fraction, note = value.split(b"|", 3)
        return Progress(float(fraction), note.decode())
    except _FOREIGN:
        return None

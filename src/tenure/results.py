"""What a store keeps of a job that was pushed with a time to live: its end, and its progress while it runs.

``Push.keep`` asks for it. The settlement that ends such a job writes the end in the same atomic step, so it is fenced
as the settlement is (P3): succeeded with its result, failed, expired, or cancelled (dropped by its handler, cancelled
while it waited or ran). Only a clear, and a job that is set aside as unreadable, leave none. From then on the end is
read for as long as ``keep`` says, by the store's clock, and is gone after that. It does not count as an existing job:
a push of the same id, or the retry of a failed job, makes a new job and removes what was kept of the old one.

Results are bytes that no store reads or changes (P13).
"""

import math
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from tenure.errors import InvalidOption
from tenure.queue import Doom, JobState, Lease
from tenure.sensitive import Discreet

LONGEST_NOTE: Final = 500
"""Characters of a note; longer ones are cut."""


class Progress(msgspec.Struct, frozen=True, gc=False):
    """How far a running attempt has come, in its own words."""

    fraction: float
    """From 0 to 1."""
    note: str = ""
    """A short text for people; it is shown, so it must hold no secret."""


class ProgressReport(Discreet, frozen=True, gc=False):
    """The progress of the attempt that holds a lease."""

    lease: Lease
    progress: Progress


class Ending(Discreet, frozen=True, kw_only=True, gc=False):
    """How a job ended."""

    state: JobState
    """``succeeded``, ``failed``, ``cancelled`` or ``expired``."""
    incarnation: int
    ended_at: float
    """Seconds since 1970 by the store's clock."""
    result: bytes | None = None
    """What was handed in with the acknowledgement, byte for byte; None: there is none that could be kept."""
    reason: str = ""
    type: str = ""
    """Of a failure: why, and the class of the exception (see ``tenure.queue.Failure``)."""


class Results(Protocol):
    """Reads what is kept of jobs, and writes their progress. For drivers whose ``capabilities.results`` is True."""

    async def endings(self, queue: str, ids: Sequence[str]) -> Sequence[Ending | None]:
        """Return the kept end of each job, in order; None for one that has not ended, or of which none is kept."""
        ...

    async def progress(self, queue: str, ids: Sequence[str]) -> Sequence[Progress | None]:
        """Return the last progress of each job's current attempt, in order; None where there is none."""
        ...

    async def report(self, reports: Sequence[ProgressReport]) -> Sequence[bool]:
        """Replace the progress of each job, and answer for each in order; False when nothing was written.

        Written only while the lease is the job's current one, and only for jobs with ``keep``. It ends with the lease:
        the next attempt begins without. Reporting again does no harm.
        """
        ...


def checked(fraction: float, note: str = "") -> Progress:
    """Return a progress; raises ``InvalidOption`` for a fraction that is none, and cuts a note that is too long."""
    number: object = fraction
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:  # nor NaN
        raise InvalidOption("a progress is a number from 0 to 1")
    text: object = note
    if not isinstance(text, str):
        raise InvalidOption("the note of a progress is a text")
    # A lone surrogate has no UTF-8 form.
    return Progress(math.fabs(number), text[:LONGEST_NOTE].encode(errors="replace").decode())


def failed_state(reason: str) -> JobState:
    """Return the state of a job that failed for this reason."""
    return JobState.EXPIRED if reason == Doom.EXPIRED else JobState.FAILED

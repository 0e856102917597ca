"""How a long push is split, and what its callers learn when a part of it fails."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from tenure.errors import OutcomeUnknown, StoreError
from tenure.queue import Push, Pushed

T = TypeVar("T")

Part = Sequence[Push]

MOST_JOBS: Final = 500
MOST_BYTES: Final = 1024 * 1024


def parts(jobs: Sequence[Push]) -> Iterator[Part]:
    """Yield the jobs in order, in parts that one transaction takes."""
    return split(jobs, lambda job: len(job.envelope))


def split(items: Sequence[T], length: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Yield what is to be stored in order, in parts that one transaction takes; ``length`` tells the bytes of each."""
    part: list[T] = []
    size = 0
    for item in items:
        more = length(item)
        if part and (len(part) == MOST_JOBS or size + more > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += more
    if part:
        yield part


def outcomes(jobs: Sequence[Push], pushed: Sequence[Pushed], part: Part, error: StoreError) -> list[Pushed]:
    """Return the outcomes of a push of which ``part`` failed after ``pushed``; later parts were not sent.

    Raises the error when nothing is known of any job but that it was not stored.
    """
    unknown = isinstance(error, OutcomeUnknown)
    if not pushed and not unknown:
        raise error
    failed = [Pushed(job.id, "unknown" if unknown else "refused", error) for job in part]
    unsent = [Pushed(job.id, "refused", error) for job in jobs[len(pushed) + len(part) :]]
    return [*pushed, *failed, *unsent]

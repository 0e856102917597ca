"""At most one job with a unique text waits or runs, and only such a one holds others (I9)."""

from collections.abc import Iterator, Mapping, Sequence

from tenure.testing.history.events import Audit, Subject

Times = list[tuple[int, int | None]]


class Uniqueness:
    """Follows who holds each text."""

    def __init__(self) -> None:
        self._texts: Mapping[tuple[str, str], str] = {}
        self._holders: dict[tuple[str, str], set[str]] = {}
        self._times: dict[tuple[str, str], Times] = {}

    def learn(self, texts: Mapping[tuple[str, str], str]) -> None:
        """Take the texts of jobs, by queue and id."""
        self._texts = texts

    def follow(self, event: Audit, *, there: bool) -> str | None:
        """Note whether a job waits or runs; return another that does, and has the same text, when this one joins it."""
        job = (event.queue, event.id)
        text = self._texts.get(job)
        if text is None:
            return None
        holders = self._holders.setdefault((event.queue, text), set())
        times = self._times.setdefault(job, [])
        if not there:
            if event.id in holders:
                holders.discard(event.id)
                times[-1] = (times[-1][0], event.at)
            return None
        if event.id in holders:
            return None
        other = next(iter(holders), None)
        holders.add(event.id)
        times.append((event.at, None))
        return other

    def held_by_nobody(
        self, holds: Sequence[tuple[Subject, int, int]], tolerance: int
    ) -> Iterator[tuple[Subject, str]]:
        """Yield the pushes that were held by a job that neither waited nor ran while they were made.

        The callers' clock and the store's may differ by the tolerance, in microseconds.
        """
        for one, begun, answered in holds:
            times = self._times.get((one.queue, one.holder), ())
            if not any(
                since <= answered + tolerance and (until is None or until >= begun - tolerance)
                for since, until in times
            ):
                yield one, f"it was held by {one.holder}, which neither waited nor ran"

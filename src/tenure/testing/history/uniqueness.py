"""At most one job with a unique text waits or runs (I9)."""

from collections.abc import Mapping


class Uniqueness:
    """Follows who holds each text."""

    def __init__(self) -> None:
        self._texts: Mapping[tuple[str, str], str] = {}
        self._holders: dict[tuple[str, str], set[str]] = {}

    def learn(self, texts: Mapping[tuple[str, str], str]) -> None:
        """Take the texts of jobs, by queue and id."""
        self._texts = texts

    def follow(self, queue: str, job_id: str, *, there: bool) -> str | None:
        """Note whether a job waits or runs; return another that does, and has the same text, when this one joins it."""
        text = self._texts.get((queue, job_id))
        if text is None:
            return None
        holders = self._holders.setdefault((queue, text), set())
        if not there:
            holders.discard(job_id)
            return None
        if job_id in holders:
            return None
        other = next(iter(holders), None)
        holders.add(job_id)
        return other

"""The unique jobs of one queue in memory: which job has which text while it waits or runs."""

from collections.abc import Callable

from tenure.drivers.memory.line import Job


class Locks:
    """Holders by their texts. A job has its text from when it is pushed until it neither waits nor runs."""

    def __init__(self) -> None:
        self._holders: dict[str, Job] = {}

    def holder(self, unique: str) -> Job | None:
        """Return the job that has this text; an empty one is nobody's."""
        return self._holders.get(unique) if unique else None

    def take(self, job: Job) -> None:
        """Give the job its text, which nobody has."""
        if job.unique:
            self._holders[job.unique] = job

    def free(self, job: Job) -> None:
        """Take the job's text back."""
        if job.unique:
            self._holders.pop(job.unique, None)

    def keep(self, held: Callable[[Job], bool]) -> None:
        """Leave only what these jobs have."""
        self._holders = {unique: job for unique, job in self._holders.items() if held(job)}

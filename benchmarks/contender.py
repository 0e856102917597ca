"""What is measured: a job library on a store, behind the few verbs that a measurement needs.

``benchmarks.ours`` has tenure's, ``benchmarks.peer`` those of other libraries, ``benchmarks.field`` all of them.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

ROOT: Final = Path(__file__).parents[1]
Job = Literal["noop", "threaded"]


class Contender(Protocol):
    """A library on a store. All durations are seconds; the jobs do nothing but report that they ran."""

    name: str
    store: str
    """The kind of store it runs on: see ``benchmarks.stores``."""
    offers: frozenset[str]
    """The measures that it can take part in, by their names."""
    rival: str
    """The contender that it is compared with; '' for one that others are compared with."""
    most: int
    """The highest concurrency that one worker has on a small machine."""
    fill: int
    """Jobs that a drained queue holds at most: what is worked off in some seconds, and pushed in not many more."""
    patience: float
    """Seconds after a crash in which it has recovered, if it does."""

    def available(self) -> bool:
        """Tell whether the library is installed."""
        ...

    def environment(self, url: str) -> Mapping[str, str]:
        """Return the environment of its producer and its worker."""
        ...

    def prepare(self) -> None:
        """Make what must be in the store before anything else."""
        ...

    def worker(self, concurrency: int) -> Sequence[str]:
        """Return the command of one worker process."""
        ...

    def push_many(self, jobs: int, job: Job = "noop") -> float:
        """Push jobs by the fastest call there is for many, and return how long it took."""
        ...

    def push_awaited(self, jobs: int) -> float:
        """Push jobs one after the other from a coroutine, and return how long it took."""
        ...

    def push_gathered(self, jobs: int) -> float:
        """Push jobs from fifty tasks at once, each one after the other, and return how long it took."""
        ...

    def push_blocking(self, jobs: int) -> float:
        """Push jobs one after the other from plain code, and return how long it took."""
        ...

    def push_timed(self) -> None:
        """Push one job that records when it was sent and when it started."""
        ...

    def push_paced(self, jobs: int, rate: float) -> float:
        """Push such jobs at so many a second, each due at its own moment, and return how long it took."""
        ...

    def push_slow(self, jobs: int) -> float:
        """Push jobs of 50 ms that record when they begin and end."""
        ...

    def close(self) -> None:
        """End what the pushes opened."""
        ...


def clean_environment(directory: Path) -> dict[str, str]:
    """Return this process's environment without what configures a library, for ``directory``'s children."""
    prefixes = ("TENURE_", "QUEUE_", "REDIS_", "DATABASE_", "PEER_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes)}
    return {**kept, "TMPDIR": str(directory), "PYTHONPATH": str(ROOT)}

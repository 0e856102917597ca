"""Whether the loops of a worker get on (rule 7): claims, settlements, renewals.

Each counts its steps. One that has something to do and has made none for a set time is stalled, and ends the worker:
alive and deaf is worse than dead, for a dead worker is replaced by its supervisor. Whoever waits for a good reason, or
is told again and again that the store is away, is not stalled.
"""

from collections.abc import Callable


class Stalled(Exception):
    """A loop has made no progress although it had something to do."""


class Judged:
    """One loop, judged at each tick of the watch."""

    def __init__(self, failing: str, *, steps: Callable[[], int], rests: Callable[[], bool], limit: float) -> None:
        self.failing: str = failing
        """What it does not do, for messages."""
        self._steps = steps
        self._rests = rests
        self._limit = limit
        self._seen = 0
        self.still: float = 0.0
        """Seconds for which it has made no step although it had something to do; safe to read from any thread."""

    @property
    def doubtful(self) -> bool:
        """Whether half of the time is over after which it is stalled. Safe from any thread."""
        return self.still > self._limit / 2

    def tick(self, seconds: float) -> None:
        """Look after so many seconds; raises ``Stalled``.

        Ticks are added up, not the time between them: a handler that blocks the event loop, or a process that is
        stopped, stops the ticks as well, and is no defect of the loop that is judged.
        """
        steps = self._steps()
        if steps != self._seen or self._rests():
            self._seen, self.still = steps, 0.0
            return
        self.still += seconds
        if self.still > self._limit:
            raise Stalled(f"{self.failing} for {self.still:.0f} s although something was to be done")

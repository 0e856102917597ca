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
        self._failing = failing
        """What it does not do, for the message."""
        self._steps = steps
        self._rests = rests
        self._limit = limit
        self._seen = 0
        self._still = 0.0

    def tick(self, seconds: float) -> None:
        """Look after so many seconds; raises ``Stalled``.

        Ticks are added up, not the time between them: a handler that blocks the event loop, or a process that is
        stopped, stops the ticks as well, and is no defect of the loop that is judged.
        """
        steps = self._steps()
        if steps != self._seen or self._rests():
            self._seen, self._still = steps, 0.0
            return
        self._still += seconds
        if self._still > self._limit:
            raise Stalled(f"{self._failing} for {self._still:.0f} s although something was to be done")

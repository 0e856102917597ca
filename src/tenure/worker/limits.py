"""When a worker has done enough: ``once``, ``stop_when_empty`` and ``max_jobs``; ``max_time`` is a timer.

A limit ends the claiming. What runs is finished first, and only its own timeout bounds that: the drain time is for
signals.
"""

from tenure.worker.options import ExitReason, WorkerOptions

WATCHING = 0.1
"""Seconds that a claim waits while running jobs may still push more, before the worker counts as empty."""


class Limits:
    """The limits of one worker."""

    def __init__(self, options: WorkerOptions) -> None:
        self._once = options.once
        self._stop_when_empty = options.stop_when_empty
        self._max_jobs = 1 if options.once else options.max_jobs
        self.taken: int = 0
        """Leases that were claimed."""

    def allowed(self, room: int) -> int:
        """Return how many of so many the next claim may bring."""
        return room if self._max_jobs is None else min(room, self._max_jobs - self.taken)

    def wait(self, longest: float, *, idle: bool) -> float:
        """Return the seconds that the next claim may wait."""
        if not self._stop_when_empty:
            return longest
        return 0.0 if idle else min(longest, WATCHING)

    def after_claim(self, brought: int, *, idle: bool) -> ExitReason | None:
        """Take note of what a claim brought, and return why to stop, if so.

        ``idle``: when the claim was sent, this worker held nothing whose outcome was open.
        """
        self.taken += brought
        if self._max_jobs is not None and self.taken >= self._max_jobs:
            return ExitReason.COMPLETED if self._once else ExitReason.MAX_JOBS
        if not brought and ((self._stop_when_empty and idle) or self._once):
            return ExitReason.EMPTY
        return None

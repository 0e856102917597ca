"""Time as an argument: what depends on time takes a clock, so that tests can move it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where a part of tenure reads the time."""

    def monotonic(self) -> float:
        """Return seconds that never go back; for deadlines within one process."""
        ...

    def time(self) -> float:
        """Return seconds since 1970 in UTC; for times that people read."""
        ...


class SystemClock:
    """The clock of this machine."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def time(self) -> float:
        """Return seconds since 1970 in UTC."""
        return time.time()

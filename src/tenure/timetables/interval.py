"""Every so many seconds."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from tenure.errors import InvalidOption
from tenure.naming import shown

SHORTEST: Final = 1.0
LONGEST: Final = 366 * 86_400.0


class Interval:
    """The multiples of so many seconds since 1970: every process finds the same, whenever it started."""

    def __init__(self, every: float | timedelta) -> None:
        """Check the length: 1 second to 366 days, in whole milliseconds; raises ``InvalidOption``."""
        seconds: Any = every.total_seconds() if isinstance(every, timedelta) else every
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not number or not SHORTEST <= seconds <= LONGEST:
            raise InvalidOption(
                f"every must be seconds (or a timedelta) from {SHORTEST:g} to {LONGEST:.0f}, not {shown(every)}"
            )
        self._length: int = round(seconds * 1000)
        if abs(self._length - seconds * 1000) > 1e-6:
            raise InvalidOption(f"every must be whole milliseconds, not {shown(every)}")

    @property
    def seconds(self) -> float:
        """Its length."""
        return self._length / 1000

    @property
    def text(self) -> str:
        """What it is, for people."""
        return f"every {self.seconds:g} s"

    def next(self, after: float) -> float:
        """Return the first slot behind an instant."""
        # In milliseconds: a cursor is a slot to the millisecond, and nothing is finer.
        return (int(after * 1000 + 0.01) // self._length + 1) * self._length / 1000

    def slots(self, after: float) -> Iterator[float]:
        """Yield the slots behind an instant, in order."""
        number = int(after * 1000 + 0.01) // self._length
        while True:
            number += 1
            yield number * self._length / 1000

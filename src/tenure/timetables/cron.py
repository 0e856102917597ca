"""Cron expressions in a time zone. The fields are cronsim's; what happens when clocks jump is decided here.

An expression whose minute or hour begins with ``*``, or one with seconds, **follows the clock**: it is due whenever
the clocks show a time that matches. A time that they leap over does not come; one that they show twice comes twice.
Any other expression names **fixed times**: a time that the clocks leap over is due as they have leapt, once for all
that they leapt over, and one that they show twice is due the first time only. (What Debian's cron does.)
"""

import copy
from collections.abc import Iterator
from datetime import timedelta
from math import floor
from typing import Any, Final

from tenure.errors import InvalidOption
from tenure.naming import shown
from tenure.timetables.zone import EPOCH, Zone

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
LONGEST: Final = 256
"""Characters of an expression."""
END: Final = 253_000_000_000
"""In the year 9987: nothing is due behind it."""


class Cron:
    """A cron expression of five fields, or of six with the second first, or one of ``ALIASES``."""

    def __init__(self, expression: str, tz: str = "UTC") -> None:
        """Check the expression and the zone; raises ``InvalidOption``, also for a date that never comes."""
        self.text: str = _text(expression)
        """The expression."""
        self.zone: Zone = Zone(tz)
        spelled = ALIASES.get(self.text.lower(), self.text)
        self._matcher = _matcher(self.text, spelled)
        fields = spelled.split()
        self.follows_the_clock: bool = len(fields) == 6 or fields[0].startswith("*") or fields[1].startswith("*")
        """Rather than naming fixed times."""
        if next(self._matches(0), None) is None:
            raise InvalidOption(f"cron {shown(self.text)} is never due")

    def next(self, after: float) -> float | None:
        """Return the first slot behind an instant, or None if there is none any more."""
        return next(self.slots(after), None)

    def slots(self, after: float) -> Iterator[float]:
        """Yield the slots behind an instant, in order."""
        start = floor(after)
        if start >= END:
            return iter(())
        return self._following(start) if self.follows_the_clock else self._fixed(start)

    def explain(self) -> str:
        """Say it in English."""
        return str(self._matcher.explain())

    def _following(self, after: int) -> Iterator[float]:
        # From one jump of the clocks to the next, they and UTC run side by side.
        jump: int | None = after + 1
        while jump is not None:
            offset = self.zone.offset(jump)
            start, jump = jump, None
            for wall in self._matches(start - 1 + offset):
                jump = self.zone.jump(start, wall - offset)
                if jump is not None:
                    break
                yield float(wall - offset)
                start = wall - offset

    def _fixed(self, after: int) -> Iterator[float]:
        for wall in self._matches(after + self.zone.offset(after)):
            slot = self.zone.first(wall)
            # Not what was due already: as the clocks showed it first, or with others that they leapt over.
            if slot > after:
                yield float(slot)
                after = slot

    def _matches(self, after: int) -> Iterator[int]:
        """Yield the wall times behind one that match, as if no clock ever jumped."""
        matcher = copy.copy(self._matcher)
        matcher.dt = EPOCH + timedelta(seconds=after)
        for found in matcher:
            wall = round((found - EPOCH).total_seconds())
            if wall > END:
                return
            yield wall


def _text(expression: Any) -> str:
    if not isinstance(expression, str) or len(expression) > LONGEST:
        raise InvalidOption(f"cron must be a text of at most {LONGEST} characters, not {shown(expression)}")
    return " ".join(expression.split())


def _matcher(given: str, spelled: str) -> Any:
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - keeps `import tenure` light

    try:
        return CronSim(spelled, EPOCH)
    except (CronSimError, ValueError, AssertionError) as error:
        why = str(error) or "it cannot be read"
        raise InvalidOption(
            f"cron {shown(given)} is not a cron expression: {why} (minute hour day month weekday; six fields begin "
            f"with the second; or {', '.join(ALIASES)})"
        ) from None

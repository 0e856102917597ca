"""A time zone as segments: stretches of time in which its clocks do not jump."""

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tenure.errors import InvalidOption
from tenure.naming import shown

EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock on the wall shows has no zone
DAY: Final = 86_400


class Zone:
    """A zone of the system's database. Instants are seconds since 1970; so are wall times, read as if they were UTC."""

    def __init__(self, key: str) -> None:
        """Find a zone by its name; raises ``InvalidOption``."""
        try:
            self._info = ZoneInfo(key)
        except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
            raise InvalidOption(
                f"tz {shown(key)} is not a time zone that is known here, such as 'Europe/Berlin' (a system without "
                "such a database takes the package tzdata)"
            ) from None
        self.key: str = key
        self._jumps: dict[int, tuple[int, ...]] = {}

    def offset(self, instant: int) -> int:
        """Return how far the clocks are ahead of UTC."""
        offset = datetime.fromtimestamp(instant, self._info).utcoffset()
        return 0 if offset is None else round(offset.total_seconds())

    def jump(self, after: int, until: int) -> int | None:
        """Return the first instant, ``after`` < it <= ``until``, at which the clocks show another offset, or None."""
        for year in range(_year(after), _year(until) + 1):
            for found in self._jumps_of(year):
                if after < found <= until:
                    return found
        return None

    def last_jump(self, until: int) -> int | None:
        """Return the last instant, in the two days before ``until``, at which the clocks jumped, or None."""
        found = [jump for year in {_year(until - 2 * DAY), _year(until)} for jump in self._jumps_of(year)]
        return max((jump for jump in found if until - 2 * DAY < jump <= until), default=None)

    def first(self, wall: int) -> int:
        """Return the instant at which the clocks first show this, or, if they leap over it, show something later."""
        naive = EPOCH + timedelta(seconds=wall)
        offset = naive.replace(tzinfo=self._info, fold=0).utcoffset()
        instant = wall - (0 if offset is None else round(offset.total_seconds()))
        if instant + self.offset(instant) == wall:
            return instant
        jump = self.last_jump(instant)
        return instant if jump is None else jump

    def at(self, instant: float) -> datetime:
        """Return an instant as the clocks of the zone show it."""
        return datetime.fromtimestamp(instant, self._info)

    def _jumps_of(self, year: int) -> tuple[int, ...]:
        found = self._jumps.get(year)
        if found is None:
            start, end = _new_year(year), _new_year(year + 1)
            # No zone's clocks jump twice within a day.
            days = [(day, min(day + DAY, end)) for day in range(start, end, DAY)]
            found = tuple(self._between(*day) for day in days if self.offset(day[0]) != self.offset(day[1]))
            self._jumps[year] = found
        return found

    def _between(self, before: int, after: int) -> int:
        old = self.offset(before)
        while after - before > 1:
            middle = (before + after) // 2
            if self.offset(middle) == old:
                before = middle
            else:
                after = middle
        return after


def _year(instant: int) -> int:
    return datetime.fromtimestamp(instant, UTC).year


def _new_year(year: int) -> int:
    return round(datetime(year, 1, 1, tzinfo=UTC).timestamp())

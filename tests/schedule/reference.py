"""Slow and simple: what a clock on the wall shows, minute by minute, and which of it a cron expression names.

Nothing of it is shared with what it judges: the fields are read here once more.
"""

import calendar
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE = 60
NAMES = {
    **{name.upper(): str(number % 7) for number, name in enumerate(calendar.day_abbr, 1)},
    **{name.upper(): str(number) for number, name in enumerate(calendar.month_abbr) if name},
}


class Wall(NamedTuple):
    """What the clock shows at a minute."""

    instant: int
    """Seconds since 1970."""
    shown: datetime


def walls(zone: str, start: int, end: int) -> list[Wall]:
    """Return every minute, ``start`` < it <= ``end``."""
    info = ZoneInfo(zone)
    first = start - start % MINUTE + MINUTE
    return [
        Wall(instant, datetime.fromtimestamp(instant, info).replace(tzinfo=None))
        for instant in range(first, end + 1, MINUTE)
    ]


class Expression:
    """One cron expression."""

    def __init__(self, text: str) -> None:
        fields = text.upper().split()
        self.six = len(fields) == 6
        second, minute, hour, day, month, weekday = fields if self.six else ["0", *fields]
        self.seconds = _numbers(second, 0, 59)
        self._minutes, self._hours = _numbers(minute, 0, 59), _numbers(hour, 0, 23)
        self._months = _numbers(month, 1, 12)
        self._day, self._weekday = day, weekday
        self._both = day.startswith("*") or weekday.startswith("*")
        self.follows = self.six or minute.startswith("*") or hour.startswith("*")
        self._days: dict[date, bool] = {}

    def names(self, shown: datetime) -> bool:
        """Tell whether it names this minute."""
        return shown.minute in self._minutes and shown.hour in self._hours and self._names_day(shown.date())

    def _names_day(self, day: date) -> bool:
        if day not in self._days:
            of_month = any(self._in_month(part, day) for part in self._day.split(","))
            of_week = any(self._in_week(part, day) for part in self._weekday.split(","))
            chosen = (of_month and of_week) if self._both else (of_month or of_week)
            self._days[day] = chosen and day.month in self._months
        return self._days[day]

    @staticmethod
    def _in_month(part: str, day: date) -> bool:
        last = calendar.monthrange(day.year, day.month)[1]
        if part == "L":
            return day.day == last
        if part == "LW":
            working = [n for n in range(1, last + 1) if day.replace(day=n).weekday() < 5]
            return day.day == working[-1]
        return day.day in _numbers(part, 1, 31)

    @staticmethod
    def _in_week(part: str, day: date) -> bool:
        weekday = (day.weekday() + 1) % 7
        if part.endswith("L"):
            name = part[:-1]
            return weekday == int(NAMES.get(name, name)) % 7 and (day + timedelta(days=7)).month != day.month
        if "#" in part:
            name, nth = part.split("#")
            return weekday == int(NAMES.get(name, name)) % 7 and (day.day - 1) // 7 + 1 == int(nth)
        return weekday in {number % 7 for number in _numbers(part, 0, 7)}


def fires(expression: Expression, minutes: Sequence[Wall]) -> list[float]:
    """Return when it is due within these minutes, which begin well before any jump of the clock."""
    return list(_following(expression, minutes) if expression.follows else _fixed(expression, minutes))


def _following(expression: Expression, minutes: Sequence[Wall]) -> Iterator[float]:
    for wall in minutes:
        if expression.names(wall.shown):
            yield from (float(wall.instant + second) for second in sorted(expression.seconds))


def _fixed(expression: Expression, minutes: Sequence[Wall]) -> Iterator[float]:
    # A clock that is never put back, only stopped: what its hand passes over is due, once.
    farthest = minutes[0].shown - timedelta(minutes=1)
    for wall in minutes:
        due = False
        while farthest < wall.shown:
            farthest += timedelta(minutes=1)
            due = due or expression.names(farthest)
        if due:
            yield float(wall.instant)


def _numbers(field: str, least: int, most: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = least, most
        elif "-" in span:
            first, last = (int(NAMES.get(end, end)) for end in span.split("-"))
        else:
            first = int(NAMES.get(span, span))
            last = most if step else first
        found.update(range(first, last + 1, int(step or 1)))
    return found


def instant(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    """Return a time in UTC in seconds since 1970."""
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp())

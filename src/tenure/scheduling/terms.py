"""What a schedule may say besides its timetable, and how it is checked."""

from datetime import timedelta
from typing import Any, Final, TypedDict
from zoneinfo import ZoneInfo

from tenure.errors import InvalidOption
from tenure.naming import shown
from tenure.timetables import CatchUp, When

POLICIES: Final = ("skip", "last", "all")
MOST_JITTER: Final = 86_400.0


class Terms(TypedDict, total=False):
    """What a schedule may say besides its timetable."""

    catch_up: CatchUp
    """What becomes of slots that no process was there to fire: ``skip`` them, fire the ``last`` one (the default), or
    ``all``, a thousand at most."""
    overlap: bool
    """False: nothing is pushed while the last job that the schedule pushed waits or runs."""
    jitter: float | timedelta
    """The longest delay of a job behind its slot, in seconds: each slot has its own, so that schedules with the same
    timetable do not all start at once."""


def given(cron: str | None, tz: str | ZoneInfo, every: float | timedelta | None) -> When:
    """Return a timetable as it was given; raises ``InvalidOption``."""
    if (cron is None) == (every is None):
        raise InvalidOption("a schedule has cron= or every=, and not both")
    zone: Any = tz.key if isinstance(tz, ZoneInfo) else tz
    if not isinstance(zone, str) or not zone:
        raise InvalidOption("tz must be the name of a time zone, or a ZoneInfo that has one")
    if every is not None:
        if zone != "UTC":
            raise InvalidOption("every= has no tz=: an interval is the same in each zone")
        return When(None, zone, seconds(every))
    return When(cron, zone, None)


def check_terms(when: When, terms: Terms) -> None:
    """Raise ``InvalidOption`` for what cannot be."""
    unknown = set(terms) - set(Terms.__annotations__)
    if unknown:
        raise InvalidOption(
            f"a schedule has no option {shown(min(unknown))}; it has {', '.join(Terms.__annotations__)}"
        )
    catch_up, overlap = terms.get("catch_up", "last"), terms.get("overlap", True)
    if catch_up not in POLICIES:
        raise InvalidOption(f"catch_up must be one of {', '.join(POLICIES)}, not {shown(catch_up)}")
    if not isinstance(overlap, bool):
        raise InvalidOption(f"overlap must be True or False, not {shown(overlap)}")
    if catch_up == "all" and not overlap:
        raise InvalidOption("catch_up='all' pushes several jobs at once, which overlap=False would skip: choose one")
    jitter = seconds(terms.get("jitter", 0.0))
    if not 0 <= jitter <= MOST_JITTER:
        raise InvalidOption(f"jitter must be seconds (or a timedelta) from 0 to {MOST_JITTER:.0f}, not {shown(jitter)}")
    _ = when.timetable


def seconds(value: object) -> float:
    """Return a duration in seconds; raises ``InvalidOption``."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InvalidOption(f"{shown(value)} is not a number of seconds, or a timedelta")
    return float(number)

"""Numbers that operators give, checked."""

import math
from datetime import timedelta

from tenure.errors import InvalidOption
from tenure.naming import shown


def age(older_than: float | timedelta | None, hours: float | None) -> float:
    """Return the one of both that is given, in seconds; raises ``InvalidOption``."""
    given: object = older_than if hours is None else hours
    if given is None or (older_than is not None and hours is not None):
        raise InvalidOption("prune needs older_than or hours, and not both")
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:  # nor NaN
        raise InvalidOption(f"{shown(given)} is not a finite length of time from 0 up")
    return float(seconds) * (1.0 if hours is None else 3600.0)


def at_least(name: str, value: object, least: int) -> None:
    """Raise ``InvalidOption`` for what is no whole number, or one below the least."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidOption(f"{name} must be a whole number of at least {least}")

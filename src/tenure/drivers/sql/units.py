"""Time as the databases hold it: microseconds, in 64 bits."""

from typing import Final

SECOND: Final = 1_000_000
"""Microseconds."""

_FAR: Final = 2**61
"""About 73,000 years: what a longer duration is cut to, so that adding it to a time still fits into 64 bits."""


def micros(seconds: float) -> int:
    """Return a duration in microseconds, rounded up: a floor stays a floor (P10)."""
    return _FAR if seconds >= _FAR / SECOND else int(seconds * SECOND) + 1


def nearest_micros(seconds: float) -> int:
    """Return a duration to the nearest microsecond, so that it can be told again; at least one, but for 0."""
    return min(_FAR, max(1, round(min(seconds, _FAR) * SECOND))) if seconds > 0 else 0

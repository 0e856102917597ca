"""How soon a child that died is replaced."""

import random
from collections.abc import Callable
from typing import Final

FIRST: Final = 0.5
LONGEST: Final = 30.0
HEALTHY: Final = 60.0
"""Seconds of life after which a death is the first one again."""


class Backoff:
    """The deaths in one seat: the first is followed at once, the others after 0.5 s doubling to 30 s, with jitter."""

    def __init__(self, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._uniform = uniform
        self._deaths = 0

    def after(self, lived: float) -> float:
        """Return the seconds to wait after one that lived so long."""
        if lived >= HEALTHY:
            self._deaths = 0
        self._deaths += 1
        if self._deaths == 1:
            return 0.0
        # The exponent is capped before it is used: a crash loop may last for days.
        ceiling = min(LONGEST, FIRST * 2.0 ** min(self._deaths - 2, 10))
        return self._uniform(ceiling / 2, ceiling)

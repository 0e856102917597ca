"""How long to wait before the next attempt."""

import math
import random
from collections.abc import Callable

import msgspec

from tenure.errors import InvalidOption


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential delays with full jitter: between 0 and ``min(cap, base * factor ** (attempt - 1))`` seconds.

    Full jitter spreads the retries of jobs that failed together (AWS architecture blog, "Exponential Backoff And
    Jitter"). Without jitter the delay is that upper bound.
    """

    base: float = 1.0
    factor: float = 2.0
    cap: float = 3600.0
    jitter: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be a delay."""
        for name, least in (("base", 0.0), ("factor", 1.0), ("cap", 0.0)):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not least <= value < math.inf:  # NaN fails this too
                raise InvalidOption(f"backoff {name} must be a finite number of at least {least:g}")

    def ceiling(self, attempt: int) -> float:
        """Return the longest delay after this attempt, in seconds; never raises, however high the attempt."""
        if self.base == 0.0 or self.base >= self.cap:
            return min(self.base, self.cap)
        if self.factor == 1.0:
            return self.base
        # Capped before multiplying: factor ** attempt overflows at some attempt, and the job would be lost with it.
        # The quotient of logarithms, not the logarithm of the quotient: that may overflow too.
        if attempt - 1 >= (math.log(self.cap) - math.log(self.base)) / math.log(self.factor):
            return float(self.cap)
        try:
            return min(float(self.cap), self.base * float(self.factor) ** (attempt - 1))
        except OverflowError:  # a tiny base under a huge cap: the power alone is too large, the product is not
            return min(float(self.cap), math.exp(math.log(self.base) + (attempt - 1) * math.log(self.factor)))

    def delay(self, attempt: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
        """Return the delay after this attempt (1 is the first), in seconds."""
        ceiling = self.ceiling(attempt)
        return uniform(0.0, ceiling) if self.jitter else ceiling


def fixed(seconds: float) -> Backoff:
    """Return a backoff that always waits the same time."""
    return Backoff(base=seconds, factor=1.0, cap=seconds, jitter=False)

"""A store that does not answer: how long to wait before asking again, and how often to speak of it."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Final

from tenure.errors import TenureError

WORKER: Final = logging.getLogger("tenure.worker")

FIRST_DELAY = 0.1
LONGEST_DELAY = 2.0
"""A delayed job that falls due in an outage starts no later than this after its end."""


class Outage:
    """The failures of one loop's store calls: one log line when they begin, one when they end.

    Not safe from several threads: each loop has its own.
    """

    def __init__(
        self,
        doing: str,
        uniform: Callable[[float, float], float] = random.uniform,
        logger: logging.Logger = WORKER,
    ) -> None:
        self._doing = doing
        self._uniform = uniform
        self._logger = logger
        self._failures = 0
        self._since = 0.0
        self.failed_calls: int = 0
        """Calls that failed, ever."""
        self.begun: int = 0
        """Outages, ever."""

    @property
    def going_on(self) -> bool:
        """Whether the last call failed."""
        return self._failures > 0

    def failed(self, error: TenureError) -> float:
        """Note a failure, and return the seconds to wait: 0.1 doubling to 2, jittered by half."""
        if self._failures == 0:
            self._since = time.monotonic()
            self.begun += 1
            self._logger.warning("%s failed, and is tried again until it succeeds: %s", self._doing, _line(error))
        self._failures += 1
        self.failed_calls += 1
        return delay_after(self._failures, self._uniform)

    def succeeded(self) -> None:
        """Note a success."""
        if self._failures:
            seconds = time.monotonic() - self._since
            self._logger.warning("%s works again after %.1f s and %d failures", self._doing, seconds, self._failures)
            self._failures = 0


def delay_after(failures: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
    """Return the seconds to wait after so many failures in a row: 0.1 doubling to 2, jittered by half."""
    # The exponent is capped before it is used: an outage may last for days.
    ceiling = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 10))
    return uniform(ceiling / 2, ceiling)


async def pause(seconds: float, until: asyncio.Event) -> None:
    """Sleep, but no longer than until the event is set."""
    if not until.is_set():
        try:
            async with asyncio.timeout(seconds):
                await until.wait()
        except TimeoutError:
            return


def _line(error: TenureError) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"

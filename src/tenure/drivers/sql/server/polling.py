"""Looking for jobs that other processes push, where nobody tells of them."""

from concurrent.futures import Future
from typing import Final

from tenure.drivers.sql.calls import nothing_to_end

POLL: Final = 0.1
"""Seconds between two looks."""


class Polling:
    """Nobody tells: a waiting claim looks by itself."""

    def longest_sleep(self) -> float:
        """Return the seconds after which it looks again."""
        return POLL

    def stop(self) -> "Future[None]":
        """Return what is done already: nothing is to be ended."""
        return nothing_to_end()

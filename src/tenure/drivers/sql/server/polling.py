"""Looking for jobs that other processes push, where nobody tells of them."""

from typing import Final

POLL: Final = 0.1
"""Seconds between two looks."""


class Polling:
    """Nobody tells: a waiting claim looks by itself."""

    def longest_sleep(self) -> float:
        """Return the seconds after which it looks again."""
        return POLL

    def stop(self) -> None:
        """Nothing is to be ended."""

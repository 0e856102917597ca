"""Loops that run beside a worker's own, supervised as they are (rule 7): one that dies or stands still ends it."""

from typing import Protocol


class Beside(Protocol):
    """Such a loop."""

    @property
    def failing(self) -> str:
        """What it does not do when it stands still, for messages."""
        ...

    @property
    def rounds(self) -> int:
        """How often it did what it is for, or tried to."""
        ...

    async def run(self) -> None:
        """Go on until ``stop`` is called; waits for a store that does not answer."""
        ...

    def stop(self) -> None:
        """Begin nothing more."""
        ...

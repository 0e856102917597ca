"""What has happened to a supervisor's children so far, counted."""

from collections import Counter


class Tally:
    """The counts of one supervisor."""

    def __init__(self) -> None:
        self.started: Counter[int] = Counter()
        """Children that were started, by seat: each but the first of a seat has replaced another."""
        self.ended: Counter[str] = Counter()
        """Children that ended, by how: the reason that they gave, or the signal or exit code that they died with."""
        self.given_back: int = 0
        """Leases of theirs that were given back."""
        self.silent: int = 0
        """How often one did not tell in time what it counts."""

"""Time that a test moves, for what runs in its own process."""


class ManualClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

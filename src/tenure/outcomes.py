"""What a handler may raise to say how its attempt ends. These are decisions, not errors."""

from datetime import timedelta


def _seconds(value: float | timedelta | None) -> float | None:
    return value.total_seconds() if isinstance(value, timedelta) else value


class Outcome(Exception):
    """The root of what a handler may raise to decide its outcome."""


class Retry(Outcome):
    """Try again, after the job's backoff or ``after`` seconds; the attempt counts, and ``max_attempts`` holds."""

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        self.after: float | None = _seconds(after)
        self.reason: str = reason
        super().__init__(reason)


class Snooze(Outcome):
    """Not now: again after ``for_`` seconds, and this attempt does not count."""

    def __init__(self, for_: float | timedelta, reason: str = "") -> None:
        self.for_: float = _seconds(for_) or 0.0
        self.reason: str = reason
        super().__init__(reason)


class Discard(Outcome):
    """Nothing to do any more: the job ends without a failure; compositions count it as cancelled."""

    def __init__(self, reason: str = "") -> None:
        self.reason: str = reason
        super().__init__(reason)


class GiveUp(Outcome):
    """Hopeless: the job fails at once, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        self.reason: str = reason
        super().__init__(reason)

"""What a failed attempt becomes: another attempt, or an entry in the failed store."""

import math

from tenure.outcomes import Discard, GiveUp, Outcome, Retry, Snooze
from tenure.policies import NO_POLICIES, Policies
from tenure.queue import Drop, Fail, Failure, Lease, Release, Settlement
from tenure.retry import Backoff
from tenure.worker import failures

LONGEST_DELAY = 10 * 365 * 86400.0
"""Seconds; what a handler asks for beyond this is a mistake, and no store has to hold it."""


def after_error(
    lease: Lease, error: BaseException, *, max_attempts: int, backoff: Backoff, policies: Policies = NO_POLICIES
) -> tuple[Settlement, Failure | None]:
    """Return how an attempt ends whose handler raised. Never raises."""
    match error:
        case Discard():
            return Drop(lease), None
        case Snooze():
            return Release(lease, delay=_asked(getattr(error, "for_", None)) or 0.0, free=True), None
        case GiveUp():
            return after_failure(lease, failures.describe(error, "gave-up"), max_attempts=1, backoff=backoff)
        case Retry():
            return after_failure(
                lease,
                failures.describe(error),
                max_attempts=max_attempts,
                backoff=backoff,
                after=_asked(getattr(error, "after", None)),
            )
        case _:
            verdict = policies.judge(error)
            failure = failures.describe(error, "gave-up" if verdict.final else "exception")
            return after_failure(lease, failure, max_attempts=max_attempts, backoff=verdict.backoff or backoff)


def after_failure(
    lease: Lease, failure: Failure, *, max_attempts: int, backoff: Backoff, after: float | None = None
) -> tuple[Settlement, Failure]:
    """Return how a failed attempt ends: released while attempts are left (0 is no limit), failed otherwise."""
    if failure.reason == "gave-up" or 0 < max_attempts <= lease.attempt:
        return Fail(lease, failure), failure
    delay = backoff.delay(max(1, lease.attempt)) if after is None else after
    return Release(lease, delay=min(delay, LONGEST_DELAY)), failure


def is_decision(error: BaseException | None) -> bool:
    """Tell whether a handler raised this to say how its attempt ends."""
    return isinstance(error, Outcome)


def _asked(value: object) -> float | None:
    """Return the delay that a handler asked for, or None where it is none: then the job's own backoff holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return LONGEST_DELAY
    if math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_DELAY)

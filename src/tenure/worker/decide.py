"""What a failed attempt becomes: another attempt, or an entry in the failed store."""

import math

from tenure.outcomes import Discard, GiveUp, Outcome, Retry, Snooze
from tenure.policies import NO_POLICIES, Policies
from tenure.queue import Drop, Fail, Failure, Lease, Release, Settlement
from tenure.retry import Backoff
from tenure.worker import failures
from tenure.worker.judgement import HandlerRaised, Judgement, ProcessDied, ProcessNotStarted

LONGEST_DELAY = 10 * 365 * 86400.0
"""Seconds; what a handler asks for beyond this is a mistake, and no store has to hold it."""

UNSTARTED_DELAY = 5.0
"""Seconds until a job is tried again for which no process could be started."""


def after_error(
    lease: Lease, error: BaseException, *, max_attempts: int, backoff: Backoff, policies: Policies = NO_POLICIES
) -> tuple[Settlement, Failure | None]:
    """Return how an attempt ends whose handler raised. Never raises."""
    match error:
        case ProcessDied(how=how):
            return after_crash(lease, how)
        case ProcessNotStarted():
            return Release(lease, delay=UNSTARTED_DELAY, free=True), None
    judgement = judge(error, policies)
    match judgement.action:
        case "discard":
            return Drop(lease), None
        case "snooze":
            return Release(lease, delay=judgement.after or 0.0, free=True), None
    failure = judgement.failure or Failure(reason="exception")
    if judgement.action == "give-up":
        return Fail(lease, failure), failure
    backoff = judgement.backoff or backoff
    return after_failure(lease, failure, max_attempts=max_attempts, backoff=backoff, after=judgement.after)


def judge(error: BaseException, policies: Policies = NO_POLICIES) -> Judgement:
    """Return what a handler's exception says about its job. Never raises.

    It is the one place that looks at the exception itself: for a job with a process of its own, this runs there.
    """
    # Exactly these classes, and by identity, as they come out of a process: a handler's own may do what they like.
    own = any(type(error) is kind for kind in (Discard, Snooze, GiveUp, Retry))
    told = error.__cause__ if own else error
    if isinstance(told, HandlerRaised) and (told is error or told.judgement.decision):
        return told.judgement
    match error:
        case Discard():
            return Judgement("discard", decision=True)
        case Snooze():
            return Judgement("snooze", after=_asked(getattr(error, "for_", None)), decision=True)
        case GiveUp():
            return Judgement("give-up", failures.describe(error, "gave-up"), decision=True)
        case Retry():
            after = _asked(getattr(error, "after", None))
            return Judgement("again", failures.describe(error), after, decision=True)
        case _:
            final, backoff = policies.judge(error)
            failure = failures.describe(error, "gave-up" if final else "exception")
            return Judgement("give-up" if final else "again", failure, backoff=backoff)


def after_crash(lease: Lease, how: str) -> tuple[Settlement, Failure]:
    """Return how an attempt ends whose process died: as with a worker that died, the crash limit decides (P4)."""
    if not lease.suspect:
        return Release(lease, crashed=True), Failure(reason="crashed", message=f"its process {how}")
    message = f"its process {how}; it has crashed {lease.crashes + 1} times, which is its limit"
    failure = Failure(reason="crashed", message=message)
    return Fail(lease, failure), failure


def after_failure(
    lease: Lease, failure: Failure, *, max_attempts: int, backoff: Backoff, after: float | None = None
) -> tuple[Settlement, Failure]:
    """Return how a failed attempt ends: released while attempts are left (0 is no limit), failed otherwise."""
    if 0 < max_attempts <= lease.attempt:
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

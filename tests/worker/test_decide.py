"""Which outcome a failed attempt has."""

import math
from typing import Any

import pytest

from tenure.outcomes import Discard, GiveUp, Retry, Snooze
from tenure.queue import Drop, Fail, Release
from tenure.retry import Backoff, fixed
from tenure.worker.decide import LONGEST_DELAY, after_error
from tests.worker.leases import lease

BACKOFF = Backoff(base=1.0, cap=60.0)


def decided(error: BaseException, *, deliveries: int = 1, tries: int = 3, backoff: Backoff = BACKOFF) -> Any:
    settlement, _ = after_error(lease(deliveries=deliveries), error, max_attempts=tries, backoff=backoff)
    return settlement


def test_an_attempt_that_fails_is_tried_again_while_attempts_are_left() -> None:
    again = decided(ValueError(), deliveries=2, backoff=fixed(7))
    assert isinstance(again, Release)
    assert (again.delay, again.free) == (7.0, False)


def test_the_last_attempt_fails_for_good() -> None:
    failed = decided(ValueError("gone"), deliveries=3)
    assert isinstance(failed, Fail)
    assert (failed.failure.reason, failed.failure.type, failed.failure.message) == ("exception", "ValueError", "gone")


def test_an_attempt_given_back_free_does_not_count() -> None:
    settlement, _ = after_error(lease(deliveries=9, free=7), ValueError(), max_attempts=3, backoff=BACKOFF)
    assert isinstance(settlement, Release)


@pytest.mark.parametrize("jitter", [True, False])
@pytest.mark.parametrize("factor", [2, 2.0, 10.0])
def test_a_job_without_a_limit_is_tried_again_after_thousands_of_attempts(factor: float, jitter: bool) -> None:
    backoff = Backoff(base=1.0, factor=factor, cap=60.0, jitter=jitter)
    delays = []
    for attempt in range(1, 5_001):
        settlement = decided(ValueError(), deliveries=attempt, tries=0, backoff=backoff)
        assert isinstance(settlement, Release)
        delays.append(settlement.delay)
    assert all(0 <= delay <= 60 for delay in delays)
    assert jitter or delays == sorted(delays)


def test_retry_takes_its_own_delay_and_counts() -> None:
    assert decided(Retry(after=11)).delay == 11.0
    assert 0 <= decided(Retry()).delay <= 1.0
    assert isinstance(decided(Retry("no more", after=11), deliveries=3), Fail)


def test_snooze_is_free_of_charge() -> None:
    snoozed = decided(Snooze(30), deliveries=3)
    assert isinstance(snoozed, Release)
    assert (snoozed.delay, snoozed.free) == (30.0, True)


def test_discard_ends_the_job_without_a_failure() -> None:
    assert isinstance(decided(Discard()), Drop)


def test_give_up_fails_at_once() -> None:
    failed = decided(GiveUp("pointless"), tries=0)
    assert isinstance(failed, Fail)
    assert (failed.failure.reason, failed.failure.message) == ("gave-up", "pointless")


@pytest.mark.parametrize(
    ("asked", "delay"),
    [
        (-5, 0.0),
        (-math.inf, 0.0),
        (math.inf, LONGEST_DELAY),
        (10**400, LONGEST_DELAY),
        (True, 9.0),
        ("7", 9.0),
        (math.nan, 9.0),
    ],
)
def test_a_delay_that_is_none_is_bounded_or_replaced_by_the_jobs_own(asked: Any, delay: float) -> None:
    error = Retry()
    error.after = asked
    assert decided(error, backoff=fixed(9)).delay == delay


def test_a_backoff_of_any_size_is_a_delay_that_a_store_can_hold() -> None:
    assert decided(ValueError(), backoff=fixed(1e300)).delay == LONGEST_DELAY


def test_an_outcome_whose_constructor_was_not_called_is_no_accident() -> None:
    class Bare(Snooze):
        def __init__(self) -> None:
            pass

    assert decided(Bare()).free

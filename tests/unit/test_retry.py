"""How long to wait before the next attempt."""

import math
import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.errors import InvalidOption
from tenure.retry import Backoff, fixed

finite = st.floats(0, allow_nan=False, allow_infinity=False)
factors = st.floats(1, allow_nan=False, allow_infinity=False) | st.integers(1, 100)
backoffs = st.builds(Backoff, base=finite, factor=factors, cap=finite, jitter=st.booleans())
ATTEMPTS = range(1, 5001)


@pytest.mark.parametrize("factor", [2, 2.0, 10.0])
@pytest.mark.parametrize("jitter", [False, True])
def test_ob_10_five_thousand_attempts_stay_under_the_ceiling_of_a_minute(factor: float, jitter: bool) -> None:
    backoff = Backoff(base=1, factor=factor, cap=60, jitter=jitter)
    delays = [backoff.delay(attempt) for attempt in ATTEMPTS]
    assert all(0 <= delay <= 60 for delay in delays)
    assert all(type(delay) is float for delay in delays)
    if not jitter:
        assert delays == sorted(delays)
        assert delays[0] == 1
        assert delays[1] == factor
        assert set(delays[6:]) == {60}


def test_without_jitter_the_delay_doubles_up_to_the_cap() -> None:
    backoff = Backoff(base=1.0, factor=2.0, cap=10.0, jitter=False)
    assert [backoff.delay(attempt) for attempt in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_with_jitter_the_whole_band_from_nothing_to_the_ceiling_is_used() -> None:
    backoff = Backoff(base=4.0, factor=2.0, cap=100.0)
    bounds: list[tuple[float, float]] = []

    def lowest(least: float, most: float) -> float:
        bounds.append((least, most))
        return least

    assert backoff.delay(3, lowest) == 0
    assert bounds == [(0.0, 16.0)]
    dice = random.Random(1)
    delays = [backoff.delay(3, dice.uniform) for _ in range(1000)]
    assert min(delays) < 1
    assert max(delays) > 15


@given(backoff=backoffs, attempt=st.integers(1, 5000) | st.integers(1, 10**400))
def test_a_delay_is_always_a_finite_number_between_nothing_and_the_cap(backoff: Backoff, attempt: int) -> None:
    for number in (attempt, attempt + 1):
        delay = backoff.delay(number)
        assert math.isfinite(delay)
        assert 0 <= delay <= backoff.cap


@given(backoff=backoffs, attempt=st.integers(1, 5000))
def test_the_ceiling_never_falls_from_one_attempt_to_the_next(backoff: Backoff, attempt: int) -> None:
    assert backoff.ceiling(attempt) <= backoff.ceiling(attempt + 1)


# K11
@given(
    base=st.floats(1e-6, 1e6),
    factor=st.floats(1, 100),
    cap=st.floats(1e-6, 1e6),
    attempt=st.integers(1, 60),
)
def test_the_ceiling_is_the_smaller_of_the_cap_and_the_power(
    base: float, factor: float, cap: float, attempt: int
) -> None:
    power = base * factor ** (attempt - 1)
    assume(math.isfinite(power))
    ceiling = Backoff(base=base, factor=factor, cap=cap).ceiling(attempt)
    assert math.isclose(ceiling, min(cap, power), rel_tol=1e-9)


def test_a_power_that_no_float_holds_is_capped_too() -> None:
    backoff = Backoff(base=1e-300, factor=2.0, cap=1e300, jitter=False)
    assert math.isclose(backoff.ceiling(1501), 1e-300 * 2.0**1000 * 2.0**500, rel_tol=1e-9)
    assert Backoff(base=5e-324, factor=1.7e308, cap=1.7e308, jitter=False).ceiling(5000) == 1.7e308


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": -1.0},
        {"base": math.nan},
        {"base": math.inf},
        {"base": "1"},
        {"base": None},
        {"base": True},
        {"factor": 0.5},
        {"factor": math.nan},
        {"factor": math.inf},
        {"cap": -0.1},
        {"cap": math.nan},
        {"cap": math.inf},
    ],
)
def test_numbers_that_cannot_be_a_backoff_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=f"backoff {next(iter(wrong))} must be a finite number of at least"):
        Backoff(**wrong)


@given(seconds=finite, attempt=st.integers(1, 5000))
def test_a_fixed_backoff_always_waits_the_same(seconds: float, attempt: int) -> None:
    assert fixed(seconds).delay(attempt) == seconds

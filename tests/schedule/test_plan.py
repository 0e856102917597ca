"""What is done about slots that were missed."""

from typing import Any

import pytest

from tenure.envelope import Envelope
from tenure.schedule.plan import GRACE, MOST_CAUGHT_UP, plan
from tenure.schedules import MOST_FIRED
from tenure.timetables import Definition, When
from tests.schedule.reference import instant

NOON = float(instant(2026, 5, 4, 12))
JOB = Envelope(v=1, id="schedule", name="job", queue="default")


def every(seconds: float, **more: Any) -> Definition:
    return Definition(envelope=JOB, when=When(every=seconds), **more)


@pytest.mark.parametrize("policy", ["skip", "last", "all"])
def test_nothing_is_done_before_a_slot_and_the_slot_fires_at_its_time(policy: Any) -> None:
    definition = every(60, catch_up=policy)
    assert plan(definition, NOON, NOON + 59.999) is None
    step = plan(definition, NOON, NOON + 60)
    assert step is not None
    assert step == ((NOON + 60,), NOON + 60, False)


def test_last_fires_the_last_one_that_was_missed() -> None:
    step = plan(every(60), NOON, NOON + 3601)
    assert step == ((NOON + 3600,), NOON + 3600, True)


def test_skip_fires_what_is_hardly_late_and_nothing_else() -> None:
    definition = every(4, catch_up="skip")
    step = plan(definition, NOON, NOON + 3601)
    assert step == ((NOON + 3592, NOON + 3596, NOON + 3600), NOON + 3600, True)
    seldom = every(600, catch_up="skip")
    assert plan(seldom, NOON, NOON + 3600 + GRACE + 1) == ((), NOON + 3600, True)
    assert plan(seldom, NOON, NOON + 3600 + GRACE - 1) == ((NOON + 3600,), NOON + 3600, True)


def test_all_fires_a_hundred_a_step_and_a_thousand_at_most() -> None:
    definition = every(1, catch_up="all")
    cursor, fired, steps = NOON, list[float](), 0
    while step := plan(definition, cursor, NOON + 1500):
        assert len(step.slots) <= MOST_FIRED
        assert step.passed_over == (steps == 0)
        fired += step.slots
        cursor, steps = step.upto, steps + 1
    assert fired == [NOON + 500 + number for number in range(1, MOST_CAUGHT_UP + 1)]
    assert steps == MOST_CAUGHT_UP / MOST_FIRED


def test_one_fires_at_most_when_none_may_overlap() -> None:
    for policy in ("skip", "last"):
        step = plan(every(2, catch_up=policy, overlap=False), NOON, NOON + 9)
        assert step is not None
        assert step.slots == (NOON + 8,)


def test_what_another_timetable_would_have_had_due_is_not_caught_up_with() -> None:
    definition = every(60, catch_up="all", since=NOON + 3000)
    step = plan(definition, NOON, NOON + 3120)
    assert step == ((NOON + 3060, NOON + 3120), NOON + 3120, False)

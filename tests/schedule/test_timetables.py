"""What may be a timetable, and what follows from one."""

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tenure.errors import InvalidOption
from tenure.timetables import Cron, Interval, last_slot, newest_slots
from tests.schedule.reference import instant

MORNING = float(instant(2026, 5, 4, 7))


def up_to(end: float, slots: Iterator[float]) -> list[float]:
    return list(itertools.takewhile(lambda slot: slot <= end, slots))


def shown(cron: Cron, after: float, count: int) -> list[str]:
    return [cron.zone.at(slot).isoformat() for slot in itertools.islice(cron.slots(after), count)]


@pytest.mark.parametrize(
    ("alias", "spelled"),
    [
        ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"), ("@monthly", "0 0 1 * *"), ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"), ("@hourly", "0 * * * *"), ("@DAILY", "0 0 * * *"),
    ],
)  # fmt: skip
def test_an_alias_is_its_expression(alias: str, spelled: str) -> None:
    assert shown(Cron(alias), MORNING, 3) == shown(Cron(spelled), MORNING, 3)
    assert Cron(alias).text == alias


def test_six_fields_begin_with_the_second() -> None:
    assert shown(Cron("*/20 30 9 * * *", "Europe/Berlin"), MORNING, 4) == [
        "2026-05-04T09:30:00+02:00",
        "2026-05-04T09:30:20+02:00",
        "2026-05-04T09:30:40+02:00",
        "2026-05-05T09:30:00+02:00",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "", "* * * *", "* * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 9", "a * * * *",
        "*/0 * * * *", "5-1 * * * *", "@reboot", "@every 5m", "0 0 31 2 *", "0 0 30 2 *", "1,,2 * * * *", "- * * * *",
        "²  * * * *", "* * L/2 * *x", "x" * 300, "0 0 31 4,6 *",
    ],
)  # fmt: skip
def test_what_is_no_expression_or_never_due_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption):
        Cron(text)


@pytest.mark.parametrize("tz", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "Europe", "a" * 300, "\0"])
def test_what_is_no_zone_is_refused(tz: str) -> None:
    with pytest.raises(InvalidOption, match="time zone"):
        Cron("@daily", tz)


def test_a_refusal_is_one_short_line() -> None:
    with pytest.raises(InvalidOption) as refused:
        Cron("1\n2\x1b[31m" + "x" * 200)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_an_expression_says_what_it_means() -> None:
    assert Cron("*/15 9-17 * * MON-FRI").explain() == (
        "Every 15th minute from 09:00 through 17:59 on Monday through Friday"
    )


def test_leap_days_come() -> None:
    assert shown(Cron("0 12 29 2 *"), instant(2025, 1, 1), 2) == [
        "2028-02-29T12:00:00+00:00",
        "2032-02-29T12:00:00+00:00",
    ]


def test_nothing_is_due_at_the_end_of_time() -> None:
    for after in (253_000_000_000.0, 1e12, 1e15):
        assert Cron("* * * * *").next(after) is None


@pytest.mark.parametrize("every", [0, -1, 0.5, 1.0005, float("nan"), float("inf"), True, 1e9, "5"])
def test_what_is_no_interval_is_refused(every: float) -> None:
    with pytest.raises(InvalidOption):
        Interval(every)


@pytest.mark.parametrize("every", [1, 1.5, 30, 0.3 * 10, 86_400, timedelta(minutes=5)])
def test_an_interval_is_due_at_its_multiples(every: float | timedelta) -> None:
    interval = Interval(every)
    slots = list(itertools.islice(interval.slots(MORNING), 200))
    assert slots == sorted(set(slots))
    for before, slot in itertools.pairwise([MORNING, *slots]):
        assert interval.next(before) == slot
        assert interval.next(slot - 0.001) == slot
        assert round(slot * 1000) % round(interval.seconds * 1000) == 0


@pytest.mark.parametrize("timetable", [Cron("*/7 3-5 * * *", "Europe/Berlin"), Interval(90), Cron("0 0 1 * *")])
def test_the_last_and_the_newest_slots_are_those_that_counting_finds(timetable: Cron | Interval) -> None:
    rng = random.Random(3)
    for _ in range(20):
        after = MORNING + rng.uniform(0, 40 * 86_400)
        until = after + rng.choice([0.0, 5.0, 3600.0, 86_400.0, 5 * 86_400.0])
        slots = up_to(until, timetable.slots(after))
        assert last_slot(timetable, after, until) == (slots[-1] if slots else None)
        for most in (1, 7, 1000):
            assert newest_slots(timetable, after, until, most) == slots[-most:]


def test_looking_back_costs_what_it_brings() -> None:
    year = 366 * 86_400.0
    assert last_slot(Cron("* * * * * *"), MORNING - year, MORNING) == MORNING
    newest = newest_slots(Cron("* * * * * *"), MORNING - year, MORNING, 1000)
    assert newest == [MORNING - number for number in reversed(range(1000))]


def test_a_zone_shows_an_instant_as_its_clocks_do() -> None:
    assert Cron("@daily", "Asia/Kathmandu").zone.at(MORNING) == datetime(
        2026, 5, 4, 12, 45, tzinfo=ZoneInfo("Asia/Kathmandu")
    )
    assert Cron("@daily").zone.at(MORNING).astimezone(UTC) == datetime(2026, 5, 4, 7, tzinfo=UTC)

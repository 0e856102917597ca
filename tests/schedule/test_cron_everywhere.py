"""Cron expressions in every zone, across the days on which its clocks jump: the same as minute by minute."""

import itertools
import os
import random
import zoneinfo
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache

import pytest

from tenure.timetables import Cron
from tests.schedule.reference import Expression, Wall, fires, instant, walls

LONG = int(os.environ.get("TENURE_TORTURE_SCALE") or 1) > 1
DAY = 86_400
EXPRESSIONS = (
    "* * * * *", "*/5 * * * *", "*/15 * * * *", "7-59/13 * * * *", "0 * * * *", "30 * * * *", "45 * * * *",
    "0 */2 * * *", "15 */3 * * *", "*/30 */6 * * *", "*/15 1 * * *", "*/15 2 * * *", "*/10 0 * * *", "*/20 3 * * *",
    "0 0 * * *", "30 0 * * *", "59 23 * * *", "0 1 * * *", "30 1 * * *", "15 2 * * *", "30 2 * * *", "0 3 * * *",
    "10 2 * * *", "0,30 2 * * *", "0 2,3 * * *", "30 1-3 * * *", "0 0-23 * * *", "15,45 0-4 * * *",
    "5 4 * * SUN", "30 2 * * SUN", "30 2 * 3 *", "0 2 * 10,11 SUN", "0 9-17 * * MON-FRI", "0 12 * * 1-5",
    "30 1 1 * *", "0 0 1 * *", "0 0 1,15 * MON", "30 2 L * *", "0 2 * * 0L", "30 2 * * SUN#2", "0 1 * * 7#1",
    "0 22 LW * *", "*/7 1,2 * * *", "1-10/3 2 * * *", "*/45 2-3 8-14 3 *",
    "0 * * * * *", "*/20 */10 1-2 * * *", "30 30 2 * * *", "15 0 0 * * *", "0 0,30 1,2,3 * * SUN",
)  # fmt: skip
START, END = instant(2026, 1, 1), instant(2028, 1, 1)


def jumps(zone: str) -> list[int]:
    """Return the beginnings of the days in 2026 and 2027 within which the zone's clocks jump."""
    info = zoneinfo.ZoneInfo(zone)
    days = range(START, END, DAY)
    offsets = [datetime.fromtimestamp(at, info).utcoffset() for at in days]
    return [at for at, (before, after) in zip(days, itertools.pairwise(offsets), strict=False) if before != after]


@cache
def groups() -> dict[tuple[object, ...], list[str]]:
    """Return the zones of the system's database; those whose clocks show the same in these two years, together."""
    found: dict[tuple[object, ...], list[str]] = {}
    for zone in sorted(zoneinfo.available_timezones()):
        if zone in {"localtime", "Factory"}:
            continue
        info = zoneinfo.ZoneInfo(zone)
        offset = datetime.fromtimestamp(START, info).utcoffset()
        shown = tuple((at, datetime.fromtimestamp(at + DAY, info).utcoffset()) for at in jumps(zone))
        found.setdefault((offset, *shown), []).append(zone)
    return found


def windows(zone: str) -> list[Sequence[Wall]]:
    """Return the minutes around each jump: from a day before to two days after; of others those around a new year."""
    around = jumps(zone) or [instant(2027, 1, 1)]
    return [walls(zone, at - DAY, at + 3 * DAY) for at in around]


def check(zone: str, expressions: Iterable[str], rng: random.Random) -> int:
    """Compare a zone's fire times with the reference; return how many there were."""
    compared = 0
    for minutes in windows(zone):
        start, end = minutes[0].instant - 1, minutes[-1].instant
        for text in expressions:
            expected = [due for due in fires(Expression(text), minutes) if due <= end]
            cron = Cron(text, zone)
            got = up_to(end, cron.slots(start))
            assert got == expected, f"{text} in {zone}"
            # Whoever starts in the middle finds the same ones, in the hour that comes twice too.
            for after in [rng.uniform(start, end) for _ in range(8)] + rng.sample(got, min(len(got), 4)):
                later = [due for due in expected if due > after]
                if later:
                    assert cron.next(after) == later[0], f"{text} in {zone} after {after}"
            compared += len(got)
    return compared


def up_to(end: float, slots: Iterable[float]) -> list[float]:
    return list(itertools.takewhile(lambda due: due <= end, slots))


def chosen(seed: int, number: int) -> list[str]:
    known = ["America/New_York", "Australia/Lord_Howe", "Europe/Berlin", "Africa/Casablanca", "America/Havana"]
    others = [zones[0] for zones in groups().values()]
    return [*known, *random.Random(seed).sample(others, number)]


def test_there_are_fifty_different_expressions() -> None:
    assert len(set(EXPRESSIONS)) == len(EXPRESSIONS) == 50


@pytest.mark.parametrize("part", range(5))
def test_expressions_are_due_as_minute_by_minute_in_some_zones(part: int) -> None:
    rng = random.Random(part)
    assert all(check(zone, rng.sample(EXPRESSIONS, 10), rng) for zone in chosen(part, 3))


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not LONG, reason="takes minutes: make torture")
@pytest.mark.parametrize("part", range(8))
def test_all_expressions_are_due_as_minute_by_minute_in_all_zones(part: int) -> None:
    zones = [zones[0] for zones in groups().values()][part::8]
    assert all(check(zone, EXPRESSIONS, random.Random(part)) for zone in zones)

"""The hour that clocks show twice: OB-08. In every zone: tests/schedule/test_cron_everywhere.py."""

import asyncio
import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from tenure import Tenure
from tenure.drivers.memory import MemoryQueue
from tenure.envelope import decode
from tenure.queue import Ack
from tenure.schedule import Ticker
from tenure.timetables import Cron
from tests.schedule import jobs
from tests.schedule.jobs import MovedClock
from tests.schedule.ticking import rounds

ZONE = "America/Los_Angeles"
BEGIN, FOLD, END = (datetime(2026, 11, 1, hour, tzinfo=UTC).timestamp() for hour in (7, 9, 12))
HOURLY, MINUTELY, QUARTERS, FIXED = "0 * * * *", "* * * * *", "*/15 1 * * *", "30 1 * * *"


def utc(*times: str) -> list[float]:
    return [datetime.fromisoformat(f"2026-11-01T{time}+00:00").timestamp() for time in times]


EXPECTED = {
    HOURLY: utc("08:00", "09:00", "10:00", "11:00", "12:00"),
    MINUTELY: [BEGIN + 60 * number for number in range(1, 301)],
    # It follows the clock: each time that it shows a quarter of one o'clock.
    QUARTERS: utc("08:00", "08:15", "08:30", "08:45", "09:00", "09:15", "09:30", "09:45"),
    FIXED: utc("08:30"),
}


class SteppedClock(MovedClock):
    """A clock that stands still but for what a test moves it by."""

    def __init__(self, now: float) -> None:
        super().__init__()
        self.now = now

    def time(self) -> float:
        return self.now


@pytest.mark.parametrize("started", [BEGIN, FOLD + 600], ids=["before", "in-the-middle"])
def test_ob_08_every_hour_of_utc_has_its_fires_and_the_fixed_time_comes_once(started: float) -> None:
    for text, expected in EXPECTED.items():
        slots = list(itertools.takewhile(lambda slot: slot <= END, Cron(text, ZONE).slots(started)))
        assert slots == [slot for slot in expected if slot > started], text


@pytest.mark.parametrize("restarted", [False, True], ids=["one-process", "another-in-the-middle"])
async def test_ob_08_a_process_fires_the_repeated_hour_as_it_is_written(restarted: bool) -> None:
    app = Tenure("memory://")
    clock = SteppedClock(BEGIN)
    queue = app.queue()
    assert isinstance(queue, MemoryQueue)
    MemoryQueue.__init__(queue, clock=clock)
    call = app.job(name="plain")(jobs.plain).bind()
    names = {f"s{number}": text for number, text in enumerate(EXPECTED)}
    for name, text in names.items():
        await app.schedules.add(name, call, cron=text, tz=ZONE, catch_up="all")
    fired: dict[str, list[float]] = {text: [] for text in EXPECTED}

    async def take() -> None:
        while leases := (await queue.claim(["default"], limit=100, lease=60, wait=0)).leases:
            for lease in leases:
                meta = decode(lease.envelope).meta
                fired[names[meta["schedule"]]].append(datetime.fromisoformat(meta["slot"]).timestamp())
            await queue.settle([Ack(lease) for lease in leases])

    async def go_on(until: float) -> None:
        """Let a process of its own live to a time, a few minutes at each of its looks."""
        ticker = Ticker(app)
        running = asyncio.create_task(ticker.run())
        while clock.now < until:
            before = ticker.rounds
            clock.now = min(until, clock.now + timedelta(minutes=160).total_seconds())
            await rounds(ticker, before + 2)
        ticker.stop()
        await running

    if restarted:
        await go_on(FOLD + 600)
    await go_on(END)
    await take()
    assert {text: sorted(slots) for text, slots in fired.items()} == EXPECTED
    assert Counter(int(slot // 3600) for slot in fired[MINUTELY] if slot < END) == {
        int(BEGIN // 3600) + hour: 59 if hour == 0 else 60 for hour in range(5)
    }

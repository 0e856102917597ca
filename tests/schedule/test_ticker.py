"""The loop that fires: catching up, leaving alone what it cannot read, waiting for a store, running beside a worker."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from tenure import Tenure
from tenure.envelope import decode as decode_envelope
from tenure.errors import ConnectionFailed, NotSupported, Refused
from tenure.events import JobPushed
from tenure.queue import Lease
from tenure.schedule import Ticker
from tenure.worker import ExitReason, Worker, WorkerOptions
from tests.schedule import jobs
from tests.schedule.jobs import application, on_clock, taken
from tests.support.processes import eventually_async


@contextlib.asynccontextmanager
async def ticking(app: Tenure) -> AsyncIterator[Ticker]:
    ticker = Ticker(app)
    task = asyncio.create_task(ticker.run())
    try:
        yield ticker
    finally:
        ticker.stop()
        async with asyncio.timeout(10):
            await task


def slots(leases: list[Lease]) -> list[float]:
    return [datetime.fromisoformat(decode_envelope(lease.envelope).meta["slot"]).timestamp() for lease in leases]


async def fired(app: Tenure, queue: str = "default") -> list[float]:
    return slots(await taken(app.queue(), queue))


async def looked(ticker: Ticker, rounds: int = 1) -> None:
    """Return when it has looked at everything so often again."""
    goal = ticker.rounds + rounds + 1

    async def there() -> bool:
        return ticker.rounds >= goal

    await eventually_async(there)


@pytest.mark.parametrize(("policy", "expected"), [("skip", 0), ("last", 1), ("all", 60)])
async def test_an_hour_in_which_nobody_was_there_is_caught_up_with(policy: Any, expected: int) -> None:
    app = application()
    clock = on_clock(app)
    await app.schedules.add("x", app.job(name="a")(jobs.plain).bind(), every=60, catch_up=policy)
    cursor = (await app.schedules.find("x")).cursor
    # Half a minute behind a slot, so that none falls due meanwhile and none is hardly late.
    clock.ahead = (90 - cursor % 60) + 3540
    async with ticking(app) as ticker:
        await looked(ticker)
    times = await fired(app)
    assert len(times) == expected
    last = cursor - cursor % 60 + 3600
    assert times == [last - 60 * number for number in reversed(range(expected))]
    assert (await app.schedules.find("x")).cursor == last


async def test_more_than_a_thousand_are_not_caught_up_with_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    app = application()
    clock = on_clock(app)
    await app.schedules.add("x", app.job(name="a")(jobs.plain).bind(), every=60, catch_up="all")
    clock.ahead = 60 * 5000.0
    async with ticking(app) as ticker:

        async def all_of_them() -> bool:
            return ticker.fired >= 1000

        await eventually_async(all_of_them)
        await looked(ticker)
    assert len(await fired(app)) in {1000, 1001}
    assert "passes it over" in caplog.text


async def test_nothing_is_pushed_while_the_last_job_has_not_ended() -> None:
    app = application()
    clock = on_clock(app)
    await app.schedules.add("x", app.job(name="a")(jobs.plain).bind(), every=60, overlap=False)
    async with ticking(app) as ticker:
        for hours in (1, 2, 3):
            clock.ahead = hours * 3600.0
            await looked(ticker, 3)
    [lease] = await taken(app.queue())
    [info] = await app.schedules.list()
    assert (info.busy, info.last_job) == (True, lease.id)


async def test_changes_at_run_time_are_seen_and_a_paused_schedule_fires_nothing() -> None:
    app = application()
    job = app.job(name="a", queue="new")(jobs.plain)
    async with ticking(app) as ticker:
        await looked(ticker)
        await app.schedules.add("x", job.bind(), every=1)

        async def some() -> bool:
            return bool(await fired(app, "new"))

        await eventually_async(some)
        await app.schedules.pause("x")
        await looked(ticker, 3)
        await fired(app, "new")
        before = (await app.schedules.find("x")).cursor
        await looked(ticker, 3)
        assert (await app.schedules.find("x")).cursor == before


async def test_many_that_tick_fire_each_slot_once() -> None:
    app = application()
    call = app.job(name="a")(jobs.plain).bind()
    for number in range(5):
        await app.schedules.add(f"s{number}", call, every=1, catch_up="all")
    async with contextlib.AsyncExitStack() as stack:
        tickers = [await stack.enter_async_context(ticking(app)) for _ in range(3)]

        async def enough() -> bool:
            return sum(ticker.fired for ticker in tickers) >= 10

        await eventually_async(enough)
    leases = await taken(app.queue())
    counted = Counter(
        (decode_envelope(lease.envelope).meta["schedule"], slot)
        for lease, slot in zip(leases, slots(leases), strict=True)
    )
    assert set(counted.values()) == {1}
    assert len(counted) == sum(ticker.fired for ticker in tickers)


async def test_a_definition_that_cannot_be_read_is_left_alone_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = application()
    store = app.schedules.store()
    await store.put_schedule("default", "newer", b'{"v":2,"secret":"hush"}')
    await app.schedules.add("x", app.job(name="a")(jobs.plain).bind(), every=1)
    async with ticking(app) as ticker:
        await looked(ticker, 4)
    assert caplog.text.count("newer version") == 1
    assert "hush" not in caplog.text
    assert (await app.schedules.find("newer")).definition == b'{"v":2,"secret":"hush"}'


async def test_a_store_that_fails_is_waited_for_and_told_of_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "tenure.schedule")
    app = application()
    app.every(1)(app.job(name="a")(jobs.plain))
    queue: Any = app.queue()
    real, failures = queue.schedules, 3

    async def fails_first(name: str) -> Any:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise ConnectionFailed("away")
        return await real(name)

    monkeypatch.setattr(queue, "schedules", fails_first)
    async with ticking(app) as ticker:

        async def some() -> bool:
            return ticker.fired > 0

        await eventually_async(some)
    assert caplog.text.count("firing schedules failed") == 1
    assert "firing schedules works again" in caplog.text


async def test_pushes_are_told_of() -> None:
    app = application()
    told: list[JobPushed] = []
    app.events.on(JobPushed, told.append)
    app.every(1)(app.job(name="a")(jobs.plain))
    async with ticking(app):

        async def some() -> bool:
            return bool(told)

        await eventually_async(some)
    assert (told[0].name, told[0].queue, told[0].held) == ("a", "default", False)


def test_a_store_without_schedules_is_refused_at_once() -> None:
    with pytest.raises(NotSupported, match="schedules"):
        Ticker(Tenure("sync://"))


async def test_a_schedule_of_the_code_that_cannot_be_stored_ends_it() -> None:
    app = application()
    app.every(60, jitter=60)(app.job(name="a", expires_in=5)(jobs.plain))
    with pytest.raises(Refused, match="jitter"):
        await Ticker(app).run()


# ------------------------------------------------------------------------------------------------------ beside a worker


async def test_a_worker_fires_and_runs() -> None:
    app = application()
    app.every(1)(app.job(name="a")(jobs.plain))
    worker = Worker(app, WorkerOptions(max_jobs=2), beside=[Ticker(app)])
    async with asyncio.timeout(20):
        assert await worker.run() is ExitReason.MAX_JOBS


async def test_a_worker_whose_ticker_dies_ends_with_an_error() -> None:
    app = application()
    app.every(60, jitter=60)(app.job(name="a", expires_in=5)(jobs.plain))
    async with asyncio.timeout(20):
        assert await Worker(app, beside=[Ticker(app)]).run() is ExitReason.ERROR


async def test_a_worker_whose_ticker_stands_still_ends_with_an_error() -> None:
    class Still:
        failing = "nothing was looked at"
        rounds = 0

        async def run(self) -> None:
            await asyncio.Event().wait()

        def stop(self) -> None:
            """Do not obey either."""

    app = application()
    async with asyncio.timeout(20):
        assert await Worker(app, WorkerOptions(stall_timeout=0.5), beside=[Still()]).run() is ExitReason.ERROR

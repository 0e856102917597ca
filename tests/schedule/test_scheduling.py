"""Schedules in code and at run time, as an application has them."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tenure import Tenure
from tenure.envelope import decode as decode_envelope
from tenure.errors import InvalidOption, NotSupported
from tenure.scheduling import ScheduleInfo
from tenure.timetables.definition import decode
from tests.schedule import jobs
from tests.schedule.jobs import application, on_clock


@dataclass(frozen=True)
class Report:
    """A class job."""

    number: int = 5

    def handle(self) -> None:
        """Do nothing."""


async def stored(app: Tenure, **where: Any) -> dict[str, ScheduleInfo]:
    return {info.name: info for info in await app.schedules.list(**where)}


async def definition(app: Tenure, name: str) -> Any:
    return decode((await app.schedules.find(name)).definition)


# ------------------------------------------------------------------------------------------------------------- in code


async def test_a_schedule_stands_above_a_job_or_instead_of_it() -> None:
    app = application()
    over = app.cron("*/5 * * * *", tz="Europe/Berlin")(app.job(name="over", queue="mail")(jobs.plain))
    alone = app.every(30, name="alone")(jobs.waits)
    assert app.cron("@daily", kwargs={"number": 7})(app.job(name="report")(Report)) is Report
    assert (over.name, alone.name) == ("over", "tests.schedule.jobs.waits")
    assert [schedule.name for schedule in app.schedules.in_code] == ["over", "alone", "report"]
    assert await app.schedules.list() == []  # nothing was sent
    assert sorted(await app.schedules.put_code()) == ["alone", "over", "report"]
    found = await stored(app)
    assert (found["over"].queue, found["over"].when, found["over"].tz) == ("mail", "*/5 * * * *", "Europe/Berlin")
    assert found["over"].next is not None
    assert found["over"].next.tzinfo == ZoneInfo("Europe/Berlin")
    assert (found["alone"].when, found["alone"].job) == ("every 30 s", "tests.schedule.jobs.waits")
    assert {info.source for info in found.values()} == {"code"}
    assert bytes((await definition(app, "report")).envelope.kwargs) == b'{"number":7}'


async def test_one_job_may_have_several_schedules_with_arguments_and_options() -> None:
    app = application()
    job = app.job(name="greet", max_attempts=7, timeout=9)(jobs.greet)
    app.every(60, name="ana", args=["Ana"])(job)
    app.every(timedelta(minutes=5), name="bob", args=["Bob"], kwargs={"times": 2})(
        job.options(priority=4, queue="slow", meta={"a": 1}, expires_in=90)
    )
    await app.schedules.put_code()
    bob = await definition(app, "bob")
    assert (bytes(bob.envelope.args), bytes(bob.envelope.kwargs)) == (b'["Bob"]', b'{"times":2}')
    assert (bob.envelope.queue, bob.envelope.priority, bob.envelope.meta) == ("slow", 4, {"a": 1})
    assert (bob.envelope.max_attempts, bob.envelope.timeout, bob.crash_limit, bob.expires_in) == (7, 9.0, 7, 90.0)
    push = bob.push("bob", 1_793_520_000.0, 1_793_520_000.0)
    assert decode_envelope(push.envelope).meta["a"] == 1


@pytest.mark.parametrize(
    "terms",
    [
        {"catch_up": "some"}, {"overlap": "no"}, {"jitter": -1}, {"jitter": "5"}, {"jitter": 90_000},
        {"catch_up": "all", "overlap": False}, {"color": "red"},
    ],
    ids=str,
)  # fmt: skip
async def test_wrong_terms_are_refused_where_they_are_written(terms: Any) -> None:
    app = application()
    with pytest.raises(InvalidOption):
        app.every(5, **terms)(app.job(name="a")(jobs.plain))
    with pytest.raises(InvalidOption):
        await app.schedules.add("x", app.job(name="b")(jobs.waits).bind(), every=5, **terms)
    assert await app.schedules.list() == []


@pytest.mark.parametrize(
    "when",
    [
        {}, {"cron": "* * * * *", "every": 5}, {"cron": "no"}, {"cron": "@daily", "tz": "Nowhere"}, {"every": 0},
        {"every": 5, "tz": "Europe/Berlin"}, {"cron": "@daily", "tz": 5}, {"every": "5"},
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_no_timetable_is_refused(when: Any) -> None:
    app = application()
    with pytest.raises(InvalidOption):
        await app.schedules.add("x", app.job(name="b")(jobs.waits).bind(), **when)


def test_arguments_that_are_missing_are_told_where_the_schedule_is_written() -> None:
    app = application()
    job = app.job(name="greet")(jobs.greet)
    with pytest.raises(InvalidOption, match="'name'"):
        app.every(5)(job)
    app.every(5, args=["Ana"])(job)
    with pytest.raises(InvalidOption, match="twice"):
        app.every(5, args=["Bob"])(job)


@pytest.mark.parametrize("options", [{"id": "x"}, {"delay": 5}, {"durability": 2}], ids=str)
async def test_options_of_one_push_are_refused(options: Any) -> None:
    app = application()
    call = app.job(name="b")(jobs.waits).options(**options).bind()
    with pytest.raises((InvalidOption, NotSupported)):
        await app.schedules.add("x", call, every=5)


async def test_jobs_may_not_expire_within_their_jitter() -> None:
    app = application()
    call = app.job(name="b", expires_in=5)(jobs.waits).bind()
    with pytest.raises(InvalidOption, match="jitter"):
        await app.schedules.add("x", call, every=60, jitter=5)


async def test_a_store_without_schedules_says_so() -> None:
    app = Tenure("sync://")
    with pytest.raises(NotSupported, match="schedules"):
        await app.schedules.list()


async def test_storing_the_codes_schedules_again_changes_nothing() -> None:
    app = application()
    app.every(60)(app.job(name="a")(jobs.plain))
    await app.schedules.put_code()
    before = await app.schedules.find("a")
    assert await app.schedules.put_code() == []
    assert await app.schedules.find("a") == before


async def test_another_timetable_counts_from_now_on_and_other_arguments_lose_no_slot() -> None:
    app = application()
    clock = on_clock(app)
    job = app.job(name="greet")(jobs.greet)
    await app.schedules.add("x", job.bind("Ana"), every=60)
    began = (await app.schedules.find("x")).cursor
    clock.ahead = 3600.0
    assert not await app.schedules.add("x", job.bind("Bob"), every=60)
    changed = await definition(app, "x")
    assert (bytes(changed.envelope.args), changed.since) == (b'["Bob"]', 0.0)
    assert not await app.schedules.add("x", job.bind("Bob"), every=120)
    assert (await definition(app, "x")).since >= began + 3600
    assert (await app.schedules.find("x")).cursor == began


async def test_a_definition_of_a_newer_version_is_left_alone_by_the_code_and_not_by_hand() -> None:
    app = application()
    job = app.every(60, name="x")(app.job(name="a")(jobs.plain))
    await app.schedules.store().put_schedule("default", "x", b'{"v":2}')
    assert await app.schedules.put_code() == []
    [info] = await app.schedules.list()
    assert (info.job, info.next, info.source) == ("", None, "")
    assert "newer" in info.when
    assert not await app.schedules.add("x", job.bind(), every=60)
    assert (await definition(app, "x")).source == "api"


# --------------------------------------------------------------------------------------------------------- at run time


async def test_schedules_are_added_paused_resumed_and_removed() -> None:
    app = application()
    job = app.job(name="greet", queue="mail")(jobs.greet)
    assert await app.schedules.add("x", job.bind("Ana"), cron="0 3 * * *", tz=ZoneInfo("Europe/Berlin"))
    assert await app.schedules.add("y", Report_of(app), every=2.5)
    found = await stored(app)
    assert {name: (info.queue, info.source, info.paused) for name, info in found.items()} == {
        "x": ("mail", "api", False), "y": ("default", "api", False),
    }  # fmt: skip
    assert await app.schedules.pause("x")
    assert not await app.schedules.pause("x", queue="mail")
    assert (await stored(app, queue="mail"))["x"].next is None
    upcoming = await app.schedules.upcoming("x", count=3)
    assert [(time.hour, time.minute) for time in upcoming] == [(3, 0)] * 3
    assert await app.schedules.resume("x")
    assert not await app.schedules.resume("x")
    assert await app.schedules.remove("x")
    assert list(await stored(app)) == ["y"]
    for change in (app.schedules.pause, app.schedules.resume, app.schedules.remove, app.schedules.upcoming):
        with pytest.raises(InvalidOption, match="no schedule"):
            await change("x")


def Report_of(app: Tenure) -> Report:  # noqa: N802 - it makes one
    app.job(name="report")(Report)
    return Report(8)


async def test_a_name_in_several_queues_needs_its_queue() -> None:
    app = application()
    job = app.job(name="a")(jobs.plain)
    await app.schedules.add("x", job.bind(), every=5)
    await app.schedules.add("x", job.options(queue="other").bind(), every=5)
    with pytest.raises(InvalidOption, match="default, other"):
        await app.schedules.pause("x")
    assert await app.schedules.pause("x", queue="other")
    assert [info.paused for info in await app.schedules.list()] == [False, True]


async def test_what_the_code_defines_no_more_is_marked() -> None:
    app = application()
    app.every(60, name="kept")(app.job(name="a")(jobs.plain))
    await app.schedules.put_code()
    await app.schedules.add("by-hand", app.job(name="b")(jobs.waits).bind(), every=5)
    record = await app.schedules.find("kept")
    await app.schedules.store().put_schedule("default", "gone", record.definition)
    assert {name: info.orphaned for name, info in (await stored(app)).items()} == {
        "kept": False, "gone": True, "by-hand": False,
    }  # fmt: skip


def test_everything_has_a_blocking_form() -> None:
    app = application()
    job = app.job(name="a")(jobs.plain)
    assert app.schedules.add_sync("x", job.bind(), every=60)
    assert [info.name for info in app.schedules.list_sync()] == ["x"]
    assert len(app.schedules.upcoming_sync("x", count=2)) == 2
    assert app.schedules.pause_sync("x")
    assert app.schedules.resume_sync("x")
    assert app.schedules.remove_sync("x")


async def test_an_unknown_thing_is_no_call() -> None:
    app = application()
    with pytest.raises(InvalidOption):
        await app.schedules.add("x", jobs.plain, every=5)
    with pytest.raises(InvalidOption):
        await app.schedules.add("not a name", app.job(name="a")(jobs.plain).bind(), every=5)

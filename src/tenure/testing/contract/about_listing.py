"""Waiting and running jobs are listed in the order of their line, a page at a time, without their payloads."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import pytest

from tenure.errors import InvalidOption
from tenure.queue import Ack, Cancelled, Fail, JobState, Release
from tenure.testing.contract.operators import listed, lister, written
from tenure.testing.contract.steps import (
    LONG,
    SHORT,
    WHY,
    Q,
    claim,
    claim_one,
    crashed,
    done,
    ids,
    inspector,
    job,
    jobs,
    lapsed,
    numbered,
    pass_time,
    push,
    pushed_and_claimed,
    suspected,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

CANARY = "c4n4ry-5ecret"


async def test_ready_jobs_are_listed_in_the_order_in_which_they_will_be_claimed(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a", "b", "c"))
    if store.queue.capabilities.priorities:
        await push(store.queue, job("low", priority=-5), job("high", priority=7), job("higher", priority=100))
    await push(store.queue, job("d"))
    await done(store.queue, Release(await claim_one(store.queue)))
    names = [summary.id for summary in await listed(store.queue, JobState.READY)]
    assert names == ids(await claim(store.queue, 10))
    assert len(names) == len(set(names)) == (7 if store.queue.capabilities.priorities else 4)


async def test_delayed_jobs_are_listed_by_when_they_fall_due(store: StoreUnderTest) -> None:
    await push(store.queue, *(job(f"in-{n}", delay=n) for n in (300, 100, 200)))
    found = await listed(store.queue, JobState.DELAYED)
    assert [summary.id for summary in found] == ["in-100", "in-200", "in-300"]
    for summary, seconds in zip(found, (100, 200, 300), strict=True):
        assert summary.state is JobState.DELAYED
        assert summary.seconds is not None
        assert seconds - 60 < summary.seconds <= seconds + 0.01


async def test_running_jobs_are_listed_by_when_their_leases_end(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("long", "short", "middle"))
    for length in (300, 100, 200):
        await claim_one(store.queue, lease=length)
    found = await listed(store.queue, JobState.RUNNING)
    assert [summary.id for summary in found] == ["short", "middle", "long"]
    assert {summary.state for summary in found} == {JobState.RUNNING}
    assert [summary.attempts for summary in found] == [1, 1, 1]
    assert found[0].seconds is not None
    assert 40 < found[0].seconds <= 100.01


async def test_a_lapsed_lease_is_listed_as_running_and_overdue(store: StoreUnderTest) -> None:
    await pushed_and_claimed(store.queue, job("x"), lease=SHORT)
    await lapsed(store.queue)
    (summary,) = await listed(store.another(), JobState.RUNNING)
    assert summary.id == "x"
    assert summary.seconds is not None
    assert summary.seconds <= 0
    assert await where(store.queue) == {"leased": 1, "lapsed": 1}, "a listing recovers nothing"


async def test_a_ready_job_is_listed_with_its_age(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"))
    await pass_time(store.queue, 0.2)
    (summary,) = await listed(store.queue, JobState.READY)
    assert summary.seconds is not None
    assert 0.19 <= summary.seconds < 60


async def test_a_summary_tells_name_priority_attempts_and_crashes(store: StoreUnderTest) -> None:
    priority = 9 if store.queue.capabilities.priorities else 0
    await push(store.queue, job("x", envelope=written("emails.welcome"), priority=priority, crash_limit=50))
    await done(store.queue, Release(await claim_one(store.queue), free=True))
    await done(store.queue, Release(await claim_one(store.queue)))
    await crashed(store.queue, 2, crash_limit=50)
    (summary,) = await listed(store.queue, JobState.READY)
    assert (summary.queue, summary.id, summary.state) == (Q, "x", JobState.READY)
    assert (summary.name, summary.priority, summary.attempts, summary.crashes) == ("emails.welcome", priority, 3, 2)


async def test_a_summary_says_nothing_of_the_payload(store: StoreUnderTest) -> None:
    body = written("mail", args=f'["{CANARY}",{{"{CANARY}":1}}]'.encode())
    await push(store.queue, job("a", envelope=body), job("b", envelope=body, delay=60))
    await claim_one(store.queue)
    await push(store.queue, job("c", envelope=body))
    for state in (JobState.READY, JobState.DELAYED, JobState.RUNNING):
        page = await lister(store.queue).jobs(Q, state)
        assert [summary.name for summary in page.jobs] == ["mail"]
        assert CANARY not in repr(page)


async def test_a_job_whose_envelope_cannot_be_read_is_listed_without_a_name(store: StoreUnderTest) -> None:
    await push(store.queue, job("broken", envelope=b"\xff not an envelope"), job("newer", envelope=b'{"v":99}'))
    await push(store.queue, job("sound", envelope=written("fine")))
    found = {summary.id: summary.name for summary in await listed(store.queue, JobState.READY)}
    assert found == {"broken": "", "newer": "", "sound": "fine"}


@pytest.mark.parametrize("limit", [1, 7, 40, 41, 100])
async def test_reading_page_by_page_to_the_end_gives_each_job_once(store: StoreUnderTest, limit: int) -> None:
    await push(store.queue, *numbered(41))
    found = await listed(store.queue, JobState.READY, limit=limit)
    assert [summary.id for summary in found] == [f"j{number:05}" for number in range(41)]


@pytest.mark.parametrize("state", [JobState.DELAYED, JobState.RUNNING])
async def test_delayed_and_running_jobs_are_paged_too(store: StoreUnderTest, state: JobState) -> None:
    # All of them fall due at about the same moment, many at the very same one.
    await push(store.queue, *numbered(130, delay=60 if state is JobState.DELAYED else 0))
    if state is JobState.RUNNING:
        await claim(store.queue, 130)
    found = await listed(store.queue, state, limit=25)
    assert sorted(summary.id for summary in found) == [f"j{number:05}" for number in range(130)]
    times = [summary.seconds or 0.0 for summary in found]
    assert max(times) <= 60.01


async def test_pages_of_jobs_of_several_priorities_miss_and_repeat_none(store: StoreUnderTest) -> None:
    if not store.queue.capabilities.priorities:
        pytest.skip(f"the driver {store.queue.capabilities.driver!r} has no priorities")
    await push(store.queue, *(job(f"j{n}", priority=(n * 7) % 5 - 2) for n in range(60)))
    found = [summary.id for summary in await listed(store.queue, JobState.READY, limit=11)]
    assert found == ids(await claim(store.queue, 60))


async def test_a_job_that_stays_is_listed_though_others_come_and_go_between_two_pages(store: StoreUnderTest) -> None:
    await push(store.queue, *numbered(20))
    first = await lister(store.queue).jobs(Q, JobState.READY, limit=10)
    assert [one.value for one in await store.queue.cancel(Q, ["j00003", "j00012"])] == [Cancelled.REMOVED.value] * 2
    await push(store.queue, job("late"))
    rest = []
    page = first
    while page.cursor is not None:
        page = await lister(store.queue).jobs(Q, JobState.READY, limit=10, cursor=page.cursor)
        rest += [summary.id for summary in page.jobs]
    stayed = {f"j{number:05}" for number in range(20)} - {"j00003", "j00012"}
    assert stayed - {summary.id for summary in first.jobs} - set(rest) == set()
    assert "j00012" not in rest


async def test_a_suspect_is_listed_among_the_ready(store: StoreUnderTest) -> None:
    await suspected(store.queue, "suspect")
    await push(store.queue, *jobs("a", "b"))
    # A claim that leaves it to others may move it to where suspects wait; it is ready there too.
    await done(store.queue, Release(await claim_one(store.queue, suspects=False)))
    found = {summary.id: summary for summary in await listed(store.queue, JobState.READY, limit=2)}
    assert set(found) == {"suspect", "a", "b"}
    assert (found["suspect"].crashes, found["suspect"].state) == (1, JobState.READY)


async def test_only_the_asked_state_and_queue_are_listed(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("done", "fails", "runs"))
    ended, fails, _ = await claim(store.queue, 3)
    await done(store.queue, Ack(ended), Fail(fails, WHY))
    await push(store.queue, job("ready"), job("delayed", delay=60), job("elsewhere", queue="other"))
    for state, expected in {JobState.READY: "ready", JobState.DELAYED: "delayed", JobState.RUNNING: "runs"}.items():
        assert [summary.id for summary in await listed(store.another(), state)] == [expected]
        assert await listed(store.elsewhere(), state) == []
    assert [summary.id for summary in await listed(store.queue, JobState.READY, name="other")] == ["elsewhere"]


async def test_what_was_cancelled_or_cleared_is_listed_no_more(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("a", "b", "c"), job("d", delay=60))
    await store.queue.cancel(Q, ["b", "d"])
    assert [summary.id for summary in await listed(store.queue, JobState.READY)] == ["a", "c"]
    assert await listed(store.queue, JobState.DELAYED) == []
    await store.queue.clear(Q)
    assert await listed(store.queue, JobState.READY) == []
    await push(store.queue, job("b"))
    assert [summary.id for summary in await listed(store.queue, JobState.READY)] == ["b"]


async def test_listing_changes_nothing_and_makes_no_queue(store: StoreUnderTest) -> None:
    reader = inspector(store.queue)
    for state in (JobState.READY, JobState.DELAYED, JobState.RUNNING):
        page = await lister(store.queue).jobs("never", state)
        assert (list(page.jobs), page.cursor) == ([], None)
    assert list(await reader.queues()) == []
    await push(store.queue, job("x"), job("y", delay=60))
    await listed(store.queue, JobState.READY)
    assert await where(store.queue) == {"ready": 1, "delayed": 1}
    assert (await claim_one(store.queue, lease=LONG)).deliveries == 1


@pytest.mark.parametrize("state", [JobState.READY, JobState.DELAYED, JobState.RUNNING])
async def test_a_cursor_that_no_listing_gave_is_refused(store: StoreUnderTest, state: JobState) -> None:
    await push(store.queue, *numbered(3))
    for garbage in ("", " ", "x", "-1", "ff" * 40, "|", "\x00", "9" * 500, "' OR 1=1 --", "ünïcode", "0 0"):
        with pytest.raises(InvalidOption):
            await lister(store.queue).jobs(Q, state, cursor=garbage)


async def test_a_listing_that_cannot_be_is_refused(store: StoreUnderTest) -> None:
    for state in (JobState.FAILED, JobState.SUCCEEDED, JobState.GONE):
        with pytest.raises(InvalidOption):
            await lister(store.queue).jobs(Q, state)
    for limit in (0, -1):
        with pytest.raises(InvalidOption):
            await lister(store.queue).jobs(Q, JobState.READY, limit=limit)

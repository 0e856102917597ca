"""A slot fires once, whoever tries, and is remembered; the store's clock decides (``tenure.schedules``)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import math
from typing import Any, cast

import pytest

from tenure.errors import InvalidOption
from tenure.queue import Ack, Fail, Push, Release, feature
from tenure.schedules import MOST_FIRED, Fired, ScheduleRecord, Schedules
from tenure.testing.contract.steps import (
    NOTHING,
    SHORT,
    WHY,
    Q,
    claim,
    claim_one,
    done,
    drained,
    eventually,
    ids,
    inspector,
    job,
    lapsed,
    numbered,
    pass_time,
    push,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

NAME = "nightly"
SAYS = b'{"v":1,"cron":"0 3 * * *"}'


def book(store: StoreUnderTest, queue: Any = None) -> Schedules:
    if not store.queue.capabilities.schedules:
        pytest.skip(f"the driver {store.queue.capabilities.driver!r} has no schedules")
    chosen = store.queue if queue is None else queue
    assert feature(chosen, Schedules)
    return cast("Schedules", chosen)


async def listed(schedules: Schedules, queue: str = Q) -> dict[str, ScheduleRecord]:
    found = (await schedules.schedules(queue)).schedules
    assert [record.name for record in found] == sorted(record.name for record in found)
    assert {record.queue for record in found} <= {queue}
    return {record.name: record for record in found}


async def stored(store: StoreUnderTest, name: str = NAME) -> ScheduleRecord:
    """Store a schedule, and return it as it is read when something is due: some milliseconds later."""
    schedules = book(store)
    assert await schedules.put_schedule(Q, name, SAYS)
    await pass_time(store.queue, 0.01)
    return (await listed(schedules))[name]


async def fired(
    store: StoreUnderTest, seen: float, *jobs: Push, name: str = NAME, ahead: float = 0.001, overlap: bool = True
) -> tuple[Fired, float]:
    """Try to fire the slot that is so much later than what was seen; return the answer, and the slot."""
    slot = round(seen + ahead, 3)
    return await book(store).fire(Q, name, seen=seen, slot=slot, jobs=jobs, overlap=overlap), slot


async def test_a_new_schedule_begins_when_it_was_stored(store: StoreUnderTest) -> None:
    schedules = book(store)
    before = (await schedules.schedules(Q)).now
    assert await schedules.put_schedule(Q, NAME, SAYS)
    after = await schedules.schedules(Q)
    [record] = after.schedules
    assert before - 0.002 <= record.cursor <= after.now
    assert record == ScheduleRecord(queue=Q, name=NAME, definition=SAYS, cursor=record.cursor)


async def test_a_cursor_is_exact_to_the_millisecond(store: StoreUnderTest) -> None:
    record = await stored(store)
    assert round(record.cursor, 3) == record.cursor
    _, slot = await fired(store, record.cursor)
    assert (await listed(book(store)))[NAME].cursor == slot


async def test_a_queue_has_no_schedules_at_first(store: StoreUnderTest) -> None:
    read = await book(store).schedules(Q)
    assert (list(read.schedules), read.now > 1e9) == ([], True)


async def test_schedules_are_sorted_by_name_and_kept_apart_by_queue(store: StoreUnderTest) -> None:
    schedules = book(store)
    for name in ("b", "a.x:y-z", "c", "B"):
        assert await schedules.put_schedule(Q, name, name.encode())
    assert await schedules.put_schedule("other", "b", b"another")
    assert {name: record.definition for name, record in (await listed(schedules)).items()} == {
        name: name.encode() for name in ("B", "a.x:y-z", "b", "c")
    }
    assert list(await listed(schedules, "other")) == ["b"]


async def test_a_schedule_makes_its_queue_known(store: StoreUnderTest) -> None:
    assert await book(store).put_schedule("only-scheduled", NAME, SAYS)
    assert "only-scheduled" in await inspector(store.queue).queues()


async def test_another_namespace_has_schedules_of_its_own(store: StoreUnderTest) -> None:
    await stored(store)
    elsewhere = store.elsewhere()
    assert list((await book(store, elsewhere).schedules(Q)).schedules) == []
    await elsewhere.aclose()


@pytest.mark.parametrize("definition", [b"", b"\x00\xff\r\n|", bytes(range(256)) * 40], ids=["empty", "odd", "long"])
async def test_a_definition_comes_back_byte_for_byte(store: StoreUnderTest, definition: bytes) -> None:
    assert await book(store).put_schedule(Q, NAME, definition)
    assert (await listed(book(store)))[NAME].definition == definition


async def test_another_definition_moves_nothing(store: StoreUnderTest) -> None:
    record = await stored(store)
    _, slot = await fired(store, record.cursor, job("x"))
    await book(store).pause_schedule(Q, NAME, paused=True)
    assert not await book(store).put_schedule(Q, NAME, b"another")
    assert await listed(book(store)) == {
        NAME: ScheduleRecord(
            queue=Q, name=NAME, definition=b"another", cursor=slot, paused=True, last_job="x", busy=True
        )
    }


async def test_firing_pushes_the_jobs_and_remembers_the_slot(store: StoreUnderTest) -> None:
    record = await stored(store)
    answer, slot = await fired(store, record.cursor, job("a", envelope=b"first"), job("b", envelope=b"second"))
    assert answer is Fired.DONE
    leases = await claim(store.queue, 10)
    assert [(lease.id, lease.envelope) for lease in leases] == [("a", b"first"), ("b", b"second")]
    after = (await listed(book(store)))[NAME]
    assert (after.cursor, after.last_job, after.busy) == (slot, "b", True)


async def test_what_is_fired_wakes_a_waiting_claim(store: StoreUnderTest) -> None:
    record = await stored(store)
    waiting = asyncio.create_task(claim_one(store.queue, wait=20))
    await asyncio.sleep(0.05)
    await fired(store, record.cursor, job("x"))
    async with asyncio.timeout(10):
        assert (await waiting).id == "x"


async def test_fired_jobs_have_what_pushed_jobs_have(store: StoreUnderTest) -> None:
    record = await stored(store)
    high, low = (5, -5) if store.queue.capabilities.priorities else (0, 0)
    jobs = [job("high", priority=high), job("once", crash_limit=1), job("low", priority=low), job("later", delay=60)]
    await fired(store, record.cursor, *(jobs if high == 0 else [jobs[2], jobs[1], jobs[3], jobs[0]]))
    assert await where(store.queue) == {"ready": 3, "delayed": 1}
    assert ids(await claim(store.queue, 10, lease=SHORT)) == ["high", "once", "low"]
    await lapsed(store.queue, 3)
    again = {lease.id: lease.doomed for lease in await claim(store.queue, 10)}
    assert again["once"] is not None


async def test_a_fired_job_may_expire(store: StoreUnderTest) -> None:
    record = await stored(store)
    await fired(store, record.cursor, job("x", expires_in=0.05))
    await pass_time(store.queue, 0.1)
    assert (await claim_one(store.queue)).doomed is not None


async def test_a_slot_fires_once(store: StoreUnderTest) -> None:
    record = await stored(store)
    assert (await fired(store, record.cursor, job("x")))[0] is Fired.DONE
    assert (await fired(store, record.cursor, job("y")))[0] is Fired.MISSED
    assert (await fired(store, record.cursor, job("z"), ahead=0.002))[0] is Fired.MISSED
    assert ids(await drained(store.queue, 1)) == ["x"]
    # And it is remembered when its job is gone.
    assert (await fired(store, record.cursor, job("x")))[0] is Fired.MISSED
    assert await where(store.queue) == {}


async def test_one_of_many_that_try_at_once_fires(store: StoreUnderTest) -> None:
    record = await stored(store)
    others = [store.another() for _ in range(4)]
    slot = round(record.cursor + 0.001, 3)
    answers = await asyncio.gather(
        *(
            book(store, other).fire(Q, NAME, seen=record.cursor, slot=slot, jobs=[job(f"j{n}-{m}")], overlap=True)
            for n, other in enumerate(others)
            for m in range(3)
        )
    )
    assert sorted(answers) == [Fired.DONE] + [Fired.MISSED] * 11
    assert len(await drained(store.queue, 1)) == 1


async def test_a_slot_that_is_not_due_by_the_stores_clock_is_not_fired(store: StoreUnderTest) -> None:
    record = await stored(store)
    for ahead in (5.0, 86_400.0, 1e9):
        assert (await fired(store, record.cursor, job("early"), ahead=ahead))[0] is Fired.MISSED
    assert (await listed(book(store)))[NAME] == record
    assert await where(store.queue) == {}


async def test_a_slot_becomes_due(store: StoreUnderTest) -> None:
    record = await stored(store)

    async def probe() -> bool:
        answer, slot = await fired(store, record.cursor, job("x"), ahead=0.3)
        assert (answer is Fired.DONE) == ((await book(store).schedules(Q)).now >= slot) or answer is Fired.MISSED
        return answer is Fired.DONE

    await eventually(probe)
    assert (await book(store).schedules(Q)).now >= record.cursor + 0.3


async def test_a_step_fires_a_hundred_jobs_at_most(store: StoreUnderTest) -> None:
    record = await stored(store)
    with pytest.raises(InvalidOption):
        await fired(store, record.cursor, *numbered(MOST_FIRED + 1))
    assert (await fired(store, record.cursor, *numbered(MOST_FIRED)))[0] is Fired.DONE
    assert len(await drained(store.queue, MOST_FIRED)) == MOST_FIRED


async def test_slots_may_be_skipped_on_purpose(store: StoreUnderTest) -> None:
    record = await stored(store)
    answer, slot = await fired(store, record.cursor, overlap=False)
    assert answer is Fired.DONE
    after = (await listed(book(store)))[NAME]
    assert (after.cursor, after.last_job) == (slot, "")
    assert await where(store.queue) == {}


async def test_nothing_is_pushed_over_a_job_that_has_not_ended_when_none_may_overlap(store: StoreUnderTest) -> None:
    record = await stored(store)
    _, slot = await fired(store, record.cursor, job("x"), overlap=False)
    answer, slot = await fired(store, slot, job("y"), overlap=False)
    assert answer is Fired.OVERLAPPED  # it waits
    lease = await claim_one(store.queue)
    answer, slot = await fired(store, slot, job("y"), overlap=False)
    assert answer is Fired.OVERLAPPED  # it runs
    await done(store.queue, Release(lease, delay=60))
    answer, slot = await fired(store, slot, job("y"), overlap=False)
    assert answer is Fired.OVERLAPPED  # it will run again
    after = (await listed(book(store)))[NAME]
    assert (after.cursor, after.last_job, after.busy) == (slot, "x", True)
    # One that may overlap does.
    assert (await fired(store, slot, job("y")))[0] is Fired.DONE
    assert await where(store.queue) == {"delayed": 1, "ready": 1}


@pytest.mark.parametrize("end", ["acked", "failed", "cancelled", "cleared"])
async def test_what_has_ended_holds_up_nothing(store: StoreUnderTest, end: str) -> None:
    record = await stored(store)
    _, slot = await fired(store, record.cursor, job("x"), overlap=False)
    if end == "cancelled":
        await store.queue.cancel(Q, ["x"])
    elif end == "cleared":
        await store.queue.clear(Q)
    else:
        lease = await claim_one(store.queue)
        await done(store.queue, Ack(lease) if end == "acked" else Fail(lease, WHY))
    assert not (await listed(book(store)))[NAME].busy
    answer, _ = await fired(store, slot, job("y"), overlap=False)
    assert answer is Fired.DONE
    assert ids(await claim(store.queue, 10)) == ["y"]


async def test_a_job_that_exists_already_is_left_as_it_is(store: StoreUnderTest) -> None:
    record = await stored(store)
    await push(store.queue, job("x", envelope=b"older"))
    answer, _ = await fired(store, record.cursor, job("x", envelope=b"newer"), job("y"))
    assert answer is Fired.DONE
    assert {lease.id: lease.envelope for lease in await claim(store.queue, 10)} == {"x": b"older", "y": NOTHING}


async def test_a_paused_schedule_fires_nothing(store: StoreUnderTest) -> None:
    record = await stored(store)
    schedules = book(store)
    assert await schedules.pause_schedule(Q, NAME, paused=True)
    assert not await schedules.pause_schedule(Q, NAME, paused=True)
    assert (await listed(schedules))[NAME].paused
    assert (await fired(store, record.cursor, job("x")))[0] is Fired.MISSED
    assert await where(store.queue) == {}


async def test_a_resumed_schedule_begins_now(store: StoreUnderTest) -> None:
    record = await stored(store)
    schedules = book(store)
    assert not await schedules.pause_schedule(Q, NAME, paused=False)
    await schedules.pause_schedule(Q, NAME, paused=True)
    await pass_time(store.queue, 0.05)
    before = (await schedules.schedules(Q)).now
    assert await schedules.pause_schedule(Q, NAME, paused=False)
    after = (await listed(schedules))[NAME]
    assert not after.paused
    assert after.cursor >= before - 0.002
    assert (await fired(store, record.cursor, job("x")))[0] is Fired.MISSED
    await pass_time(store.queue, 0.01)
    assert (await fired(store, after.cursor, job("x")))[0] is Fired.DONE


async def test_a_removed_schedule_is_gone_and_its_jobs_stay(store: StoreUnderTest) -> None:
    record = await stored(store)
    schedules = book(store)
    await fired(store, record.cursor, job("x"))
    assert await schedules.remove_schedule(Q, NAME)
    assert not await schedules.remove_schedule(Q, NAME)
    assert await listed(schedules) == {}
    assert (await fired(store, record.cursor, job("y")))[0] is Fired.MISSED
    assert not await schedules.pause_schedule(Q, NAME, paused=True)
    assert ids(await claim(store.queue, 10)) == ["x"]
    # One of the same name begins anew.
    assert await schedules.put_schedule(Q, NAME, SAYS)
    again = (await listed(schedules))[NAME]
    assert (again.cursor > record.cursor, again.last_job, again.busy, again.paused) == (True, "", False, False)


async def test_an_unknown_schedule_fires_nothing(store: StoreUnderTest) -> None:
    now = (await book(store).schedules(Q)).now
    assert (await fired(store, round(now - 10, 3), job("x"), name="nobody"))[0] is Fired.MISSED
    assert await where(store.queue) == {}


async def test_schedules_of_one_queue_do_not_touch_one_another(store: StoreUnderTest) -> None:
    first = await stored(store, "a")
    second = await stored(store, "b")
    await fired(store, first.cursor, job("x"), name="a")
    await book(store).pause_schedule(Q, "a", paused=True)
    assert (await listed(book(store)))["b"] == second
    assert (await fired(store, second.cursor, job("y"), name="b"))[0] is Fired.DONE


async def test_clearing_and_pausing_a_queue_leave_its_schedules(store: StoreUnderTest) -> None:
    record = await stored(store)
    await store.queue.clear(Q)
    assert (await listed(book(store)))[NAME] == record
    assert (await fired(store, record.cursor, job("x")))[0] is Fired.DONE


@pytest.mark.parametrize("slot", [-1.0, 0.0, math.nan, math.inf], ids=str)
async def test_a_slot_that_cannot_be_one_is_refused(store: StoreUnderTest, slot: float) -> None:
    record = await stored(store)
    for jobs in ([job("x")], []):
        with pytest.raises(InvalidOption):
            await book(store).fire(Q, NAME, seen=record.cursor, slot=slot, jobs=jobs, overlap=True)
    assert (await listed(book(store)))[NAME] == record


async def test_jobs_of_another_queue_are_refused(store: StoreUnderTest) -> None:
    record = await stored(store)
    with pytest.raises(InvalidOption):
        await fired(store, record.cursor, job("x", queue="other"))
    assert (await listed(book(store)))[NAME] == record

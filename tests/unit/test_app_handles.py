"""Handles, and the failed store: what became of what was pushed."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from tenure import (
    Cancelled,
    InvalidOption,
    JobFailed,
    JobGone,
    JobState,
    NotSupported,
    Tenure,
)
from tenure.drivers.memory import MemoryQueue
from tenure.envelope import Envelope
from tenure.queue import Ack, Fail, Failure, Push
from tests.unit import jobs
from tests.unit.applications import bind, claimed, make_app


@pytest.fixture
def app() -> Tenure:
    return make_app()


async def test_a_handle_waits_until_the_job_has_ended(app: Tenure) -> None:
    handle = await app.push(bind(app))
    waiting = asyncio.create_task(handle.wait(timeout=10))
    [lease] = await claimed(app)
    assert await handle.status() is JobState.RUNNING
    await app.queue().settle([Ack(lease)])
    assert await waiting is JobState.GONE
    with pytest.raises(JobGone, match=handle.id):
        await handle.result(timeout=1)


async def test_a_handle_gives_up_waiting_after_its_time(app: Tenure) -> None:
    handle = app.handle((await app.push(bind(app))).id, queue="own")
    with pytest.raises(TimeoutError, match="it goes on"):
        await handle.wait(timeout=timedelta(milliseconds=20))
    for wrong in (-1, float("nan")):
        with pytest.raises(InvalidOption, match="timeout"):
            await handle.wait(timeout=wrong)


async def test_a_job_that_failed_has_no_result(app: Tenure) -> None:
    handle = await app.push(bind(app))
    [lease] = await claimed(app)
    await app.queue().settle([Fail(lease, Failure(reason="exception"))])
    with pytest.raises(JobFailed, match="failed"):
        await handle.result(timeout=1)
    assert await handle.cancel() is Cancelled.NOT_FOUND
    assert repr(handle) == f"<job {handle.id} of queue own>"


def test_a_handle_is_made_for_hostile_names_by_nobody(app: Tenure) -> None:
    for job_id, queue in (("a b", "own"), ("a", "q:a")):
        with pytest.raises(InvalidOption):
            app.handle(job_id, queue=queue)


async def test_a_store_that_takes_too_long_is_not_mistaken_for_the_handles_own_time(app: Tenure) -> None:
    handle = await app.push(bind(app))
    queue = app.queue()
    assert isinstance(queue, MemoryQueue)

    async def states(*_: object) -> Sequence[JobState]:
        raise TimeoutError("the store's own")

    queue.states = states  # type: ignore[method-assign, assignment]
    with pytest.raises(TimeoutError, match="the store's own"):
        await handle.wait(timeout=5)


# ----------------------------------------------------------------------------------------------------- the failed store


async def failing(app: Tenure, number: int) -> list[str]:
    handles = await app.push_many(bind(app, n) for n in range(number))
    leases = await claimed(app, limit=number)
    await app.queue().settle([Fail(lease, Failure(reason="exception")) for lease in leases])
    return [handle.id for handle in handles]


async def test_failed_jobs_are_listed_retried_and_forgotten(app: Tenure) -> None:
    first, second, third = await failing(app, 3)
    assert [record.id for record in await app.failed("own")] == [first, second, third]
    assert [record.id for record in await app.failed("own", limit=1, offset=1)] == [second]
    answers = await app.retry("own", [first, "none"])
    assert [(answer.id, answer.outcome) for answer in answers] == [(first, "retried"), ("none", "gone")]
    assert await app.forget("own", [second, first]) == [True, False]
    assert [record.id for record in await app.failed("own")] == [third]
    assert (await app.counts("own")).ready == 1


async def test_all_failed_jobs_are_retried_page_by_page(app: Tenure) -> None:
    ids = await failing(app, 230)
    answers = await app.retry("own")
    assert sorted(answer.id for answer in answers if answer.outcome == "retried") == sorted(ids)
    assert (await app.counts("own")).failed == 0


async def test_a_record_that_cannot_be_read_is_not_retried(app: Tenure) -> None:
    newer = Envelope(v=99, id="newer", name="n", queue="own")
    import msgspec  # noqa: PLC0415

    for job_id, data in (("newer", msgspec.json.encode(newer)), ("junk", b"\x80\x04pickle"), ("deep", b"[" * 100)):
        await app.queue().push([Push(queue="own", id=job_id, envelope=data)])
    leases = await claimed(app, limit=3)
    await app.queue().settle([Fail(lease, Failure(reason="exception")) for lease in leases])
    good = await failing(app, 150)
    answers = {answer.id: answer for answer in await app.retry("own")}
    assert [answers[name].outcome for name in ("newer", "junk", "deep")] == ["refused"] * 3
    assert "newer version" in answers["newer"].problem
    assert "cannot be read" in answers["junk"].problem
    assert {answers[job_id].outcome for job_id in good} == {"retried"}
    assert sorted(record.id for record in await app.failed("own")) == ["deep", "junk", "newer"]


async def test_what_the_sync_driver_cannot_do_is_refused_by_name() -> None:
    for operation in (jobs.inline.failed("q"), jobs.inline.queues(), jobs.inline.counts("q"), jobs.inline.clear("q")):
        with pytest.raises(NotSupported, match="'sync' driver"):
            await operation


async def test_hostile_names_reach_no_driver(app: Tenure) -> None:
    for operation in (
        app.counts("q:a"), app.clear("*"), app.cancel("q", ["a b"]), app.states("q", [""]), app.failed("{x}"),
        app.retry("q", ["a\n"]), app.forget("q", ["*"]),
    ):  # fmt: skip
        with pytest.raises(InvalidOption):
            await operation

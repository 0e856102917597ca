"""Handlers that raise what should end a process, or what cannot be stored: each is a counted failure, no more."""

import asyncio
from typing import Any

import pytest

from tenure import Tenure
from tests.worker.support import drain, nothing_left, only_failure, until, working
from tests.worker.toxic import ERRORS

ran: list[str] = []


async def raise_async(kind: str) -> None:
    ran.append(kind)
    raise ERRORS[kind]()


def raise_in_thread(kind: str) -> None:
    ran.append(kind)
    raise ERRORS[kind]()


async def plain(number: int) -> None:
    ran.append(f"plain {number}")


async def leaves_a_task_behind() -> None:
    async def ends_the_process() -> None:
        raise ValueError("nobody awaits this one")

    task = asyncio.create_task(ends_the_process())
    await asyncio.sleep(0)
    task.add_done_callback(lambda done: done.exception())


async def recurses(levels: int = 0) -> None:
    await recurses(levels + 1)


@pytest.mark.parametrize("raises", [raise_async, raise_in_thread])
@pytest.mark.parametrize("kind", ERRORS)
async def test_it_is_a_counted_failure_and_the_worker_goes_on(quick: Tenure, kind: str, raises: Any) -> None:
    ran.clear()
    job, ordinary = quick.job(raises), quick.job(plain)
    await job.push(kind)
    await drain(quick, tries=2)
    assert ran == [kind, kind]
    record = await only_failure(quick)
    assert (record.attempts, record.failure.reason) == (2, "exception")
    assert record.failure.type
    assert len(record.failure.message) <= 1_000
    await ordinary.push(1)
    await drain(quick)
    assert ran[-1] == "plain 1"


async def test_the_failures_can_be_stored_and_read_back_on_every_store(app: Tenure) -> None:
    ran.clear()
    job = app.job(raise_async)
    await app.push_many(job.bind(kind) for kind in ERRORS)
    await drain(app, tries=1)
    assert sorted(ran) == sorted(ERRORS)
    assert len(await app.failed("default")) == len(ERRORS)


async def test_none_of_them_stops_its_neighbours(app: Tenure) -> None:
    ran.clear()
    toxic, ordinary = app.job(raise_async), app.job(plain)
    for number, kind in enumerate(ERRORS):
        await toxic.options(max_attempts=1).push(kind)
        await ordinary.push(number)
    async with working(app, concurrency=8):
        await until(lambda: len(ran) == 2 * len(ERRORS), what="all ran")
    assert len(await app.failed("default")) == len(ERRORS)


async def test_a_handler_that_recurses_without_end_fails(quick: Tenure) -> None:
    await quick.job(recurses).push()
    await drain(quick, tries=1)
    assert (await only_failure(quick)).failure.type == "RecursionError"


async def test_what_a_handler_leaves_behind_does_not_concern_the_next_one(quick: Tenure) -> None:
    ran.clear()
    await quick.job(leaves_a_task_behind).push()
    await quick.job(plain).push(2)
    await drain(quick, concurrency=1)
    assert ran == ["plain 2"]
    assert await nothing_left(quick)


async def test_a_message_is_kept_in_the_failed_store_and_never_logged(
    quick: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    await quick.job(raise_async).push("two required arguments")
    await drain(quick, tries=2)
    assert "1: x" in (await only_failure(quick)).failure.message
    assert "1: x" not in caplog.text
    assert "two required arguments" not in caplog.text
    assert all("\n" not in record.getMessage() for record in caplog.records)

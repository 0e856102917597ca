"""What a handle tells of a job's result and progress, whatever ran it."""

import asyncio
from datetime import timedelta

import pytest

from tenure import (
    InvalidOption,
    JobFailed,
    JobGone,
    JobState,
    Progress,
    PushOptions,
    ResultUnavailable,
    Tenure,
    Undecodable,
)
from tenure.drivers.memory import MemoryQueue
from tenure.queue import Ack, Drop, Fail, Failure, Lease, Settlement
from tenure.results import ProgressReport
from tests.unit import jobs


@pytest.fixture
def app() -> Tenure:
    app = Tenure("memory://", namespace="tests")
    app.job(name="report", queue="own", result_ttl=60)(jobs.asynchronous)
    return app


async def lease(app: Tenure) -> Lease:
    [found] = (await app.queue().claim(["own"], limit=1, lease=60, wait=0)).leases
    return found


async def settled(app: Tenure, settlement: Settlement) -> None:
    await app.queue().settle([settlement])


async def test_a_result_is_kept_for_as_long_as_the_decorator_or_the_push_says(app: Tenure) -> None:
    given: list[tuple[PushOptions, float]] = [
        ({}, 60),
        ({"result_ttl": 5}, 5),
        ({"result_ttl": timedelta(hours=1)}, 3600),
    ]
    for options, seconds in given:
        await app.push(app.call("report", [1]).options(**options))
        held = await lease(app)
        assert held.keep == seconds
        await settled(app, Ack(held))


async def test_how_a_job_ended_is_told_by_its_handle(app: Tenure) -> None:
    failure = Failure(reason="exception", type="ValueError", message="secret")
    handle = await app.push(app.call("report", [1]))
    await settled(app, Fail(await lease(app), failure))
    assert await handle.wait(timeout=1) is JobState.FAILED
    with pytest.raises(JobFailed, match="failed: exception, ValueError") as failed:
        await handle.result(timeout=1)
    assert (failed.value.state, failed.value.reason, failed.value.type) == ("failed", "exception", "ValueError")
    assert "secret" not in str(failed.value)

    handle = await app.push(app.call("report", [1]))
    await settled(app, Fail(await lease(app), Failure(reason="expired")))
    with pytest.raises(JobFailed, match="expired") as failed:
        await handle.result(timeout=1)
    assert failed.value.state == "expired"

    for how in ("dropped", "cancelled"):
        handle = await app.push(app.call("report", [1]))
        if how == "dropped":
            await settled(app, Drop(await lease(app)))
        else:
            await handle.cancel()
        assert await handle.status() is JobState.CANCELLED
        with pytest.raises(JobFailed, match="was cancelled") as failed:
            await handle.result(timeout=1)
        assert failed.value.state == "cancelled"

    handle = await app.push(app.call("report", [1]))
    await settled(app, Ack(await lease(app)))
    assert await handle.wait(timeout=1) is JobState.SUCCEEDED
    with pytest.raises(ResultUnavailable, match="could not be kept") as unavailable:
        await handle.result(timeout=1)
    assert not isinstance(unavailable.value, JobGone | JobFailed)


async def test_a_result_comes_as_the_annotation_says_and_elsewhere_as_plain_json(app: Tenure) -> None:
    handle = await app.push(app.call("report", [1]))
    await settled(app, Ack(await lease(app), b"1"))
    assert await handle.result(timeout=1) == 1
    again = app.handle(handle.id, queue="own")
    assert await again.result(timeout=1) == 1

    handle = await app.push(app.call("report", [1]))
    await settled(app, Ack(await lease(app), b'{"other":"version"}'))
    with pytest.raises(Undecodable, match="result"):
        await handle.result(timeout=1)
    assert await app.handle(handle.id, queue="own").result(timeout=1) == {"other": "version"}


async def test_the_reason_of_a_failure_is_in_the_failed_store_when_no_end_is_kept(app: Tenure) -> None:
    plain = Tenure("memory://", namespace="tests")
    plain.job(name="report", queue="own")(jobs.asynchronous)
    handle = await plain.push(plain.call("report", [1]))
    await settled(plain, Fail(await lease(plain), Failure(reason="timeout")))
    with pytest.raises(JobFailed, match="failed: timeout"):
        await handle.result(timeout=1)


async def test_progress_is_what_the_running_attempt_told_last(app: Tenure) -> None:
    handle = await app.push(app.call("report", [1]))
    assert await handle.progress() is None
    held = await lease(app)
    queue = app.queue()
    assert isinstance(queue, MemoryQueue)
    await queue.report([ProgressReport(held, Progress(0.4, "half way"))])
    assert await handle.progress() == Progress(0.4, "half way")
    assert await app.operate.progress("own", [handle.id, "none"]) == [Progress(0.4, "half way"), None]
    await settled(app, Ack(held, b"1"))
    assert await handle.progress() is None
    [ending, none] = await app.operate.endings("own", [handle.id, "none"])
    assert none is None
    assert ending is not None
    assert ending.result == b"1"
    assert "1" not in repr(ending).partition("result=")[2].partition(",")[0].replace("<1 bytes>", "")


def test_the_blocking_twins_wait_too(app: Tenure) -> None:
    handles = [app.push_sync(app.call("report", [1])) for _ in range(3)]

    async def work() -> None:
        for number in range(3):
            await settled(app, Ack(await lease(app), b"%d" % number))

    asyncio.run(work())
    assert [handle.result_sync(timeout=5) for handle in handles] == [0, 1, 2]
    assert handles[0].progress_sync() is None
    assert handles[0].wait_sync(timeout=5) is JobState.SUCCEEDED


@pytest.mark.parametrize("timeout", [-1, float("nan")])
async def test_a_timeout_that_is_none_is_refused(app: Tenure, timeout: float) -> None:
    handle = await app.push(app.call("report", [1]))
    with pytest.raises(InvalidOption, match="timeout"):
        await handle.result(timeout=timeout)

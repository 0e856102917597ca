"""Operating an application's queues from a program: ``app.operate``."""

import asyncio
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tenure import Cancelled, InvalidOption, JobState, NotSupported, Tenure, WrongContext
from tenure.operations import Operations
from tenure.queue import Fail, Failure, SetAside
from tests.support.processes import eventually_async
from tests.unit import jobs
from tests.unit.applications import bind, claimed, make_app


@pytest.fixture
def app() -> Tenure:
    return make_app()


async def failing(app: Tenure, *names: str) -> list[str]:
    handles = [await app.push(bind(app, name=name), queue="own") for name in names]
    leases = await claimed(app, limit=len(names))
    await app.queue().settle([Fail(lease, Failure(reason="exception")) for lease in leases])
    by_id = {lease.id for lease in leases}
    assert by_id == {handle.id for handle in handles}
    return [handle.id for handle in handles]


async def test_the_size_is_what_waits_and_not_what_is_held(app: Tenure) -> None:  # K5
    """Ready, delayed and lapsed jobs are in it."""
    await app.push_many([bind(app), bind(app), bind(app)])
    await app.push(bind(app), delay=60)
    await claimed(app)
    assert await app.operate.size("own") == 3
    await app.queue().claim(["own"], limit=1, lease=0.001, wait=0)

    async def lapsed() -> bool:
        return (await app.counts("own")).lapsed == 1

    await eventually_async(lapsed)
    assert await app.operate.size("own") == 3


async def test_jobs_are_listed_page_by_page(app: Tenure) -> None:
    handles = await app.push_many(bind(app, number) for number in range(5))
    seen: list[str] = []
    cursor = None
    while True:
        page = await app.operate.jobs("own", JobState.READY, limit=2, cursor=cursor)
        seen += [job.id for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [handle.id for handle in handles]
    [running] = await claimed(app)
    [listed] = (await app.operate.jobs("own", JobState.RUNNING)).jobs
    assert (listed.id, listed.name, listed.attempts) == (running.id, "tests.unit.jobs.ordinary", 1)


async def test_what_failed_of_one_job_is_retried_by_its_name(app: Tenure) -> None:
    first, second, third = await failing(app, "ordinary", "asynchronous", "ordinary")
    answers = await app.operate.retry("own", name="tests.unit.jobs.ordinary")
    assert [(answer.id, answer.outcome) for answer in answers] == [(first, "retried"), (third, "retried")]
    assert [record.id for record in await app.failed("own")] == [second]
    assert await app.operate.retry("own", name="nobody.knows") == []


async def test_failures_are_pruned_by_their_age(app: Tenure) -> None:
    await failing(app, "ordinary", "ordinary")
    assert await app.operate.prune("own", hours=1) == 0
    assert await app.operate.prune("own", older_than=timedelta(days=1)) == 0
    assert await app.operate.prune("own", older_than=0) == 2


@pytest.mark.parametrize(
    "age",
    [{}, {"older_than": 1, "hours": 1}, {"older_than": -1}, {"hours": float("nan")}, {"hours": float("inf")},
     {"hours": True}, {"older_than": "1"}, {"older_than": timedelta(days=-1)}, {"hours": timedelta(hours=1)}],
    ids=str,
)  # fmt: skip
async def test_an_age_that_cannot_be_one_is_refused(app: Tenure, age: dict[str, Any]) -> None:
    await failing(app, "ordinary")
    if age == {"hours": timedelta(hours=1)}:
        assert await app.operate.prune("own", **age) == 0
        return
    with pytest.raises(InvalidOption):
        await app.operate.prune("own", **age)
    assert len(await app.failed("own")) == 1


async def test_unreadable_records_are_read_and_dropped(app: Tenure) -> None:
    await app.push(bind(app), id="odd")
    [lease] = await claimed(app)
    await app.queue().settle([SetAside(lease, "odd")])
    [record] = await app.operate.unreadable("own")
    assert (record.id, record.size) == ("odd", len(lease.envelope))
    assert await app.operate.unreadable_bytes("own", record.key) == lease.envelope
    assert await app.operate.drop_unreadable("own", [record.key, "no-such"]) == [True, False]
    assert await app.operate.unreadable("own") == []


async def test_a_paused_queue_keeps_its_jobs(app: Tenure) -> None:
    await app.push(bind(app))
    assert await app.operate.pause("own")
    assert await app.operate.paused(["own", "other"]) == [True, False]
    assert not await claimed(app)
    assert await app.operate.resume("own")
    assert len(await claimed(app)) == 1


async def test_each_restart_writes_another_marker(app: Tenure) -> None:
    first, second = await app.operate.restart(), await app.operate.restart()
    assert first != second


async def test_what_the_sync_driver_cannot_do_is_refused_by_name(app: Tenure) -> None:
    operate = jobs.inline.operate
    for operation in (
        operate.pause("q"), operate.resume("q"), operate.paused(["q"]), operate.restart(), operate.size("q"),
        operate.jobs("q", JobState.READY), operate.prune("q", hours=1), operate.unreadable("q"),
        operate.unreadable_bytes("q", "1"), operate.drop_unreadable("q", ["1"]), operate.retry("q"),
        operate.failed_record("q", "a"), operate.states("q", []),
    ):  # fmt: skip
        with pytest.raises(NotSupported, match="'sync' driver"):
            await operation


async def test_hostile_names_and_numbers_reach_no_driver(app: Tenure) -> None:
    operate = app.operate
    for operation in (
        operate.pause("q:a"), operate.resume("{q}"), operate.paused(["q", "*"]), operate.size(""),
        operate.jobs("q a", JobState.READY), operate.jobs("own", JobState.FAILED), operate.jobs("own", "ready?"),  # type: ignore[arg-type] # pyright: ignore
        operate.jobs("own", JobState.READY, limit=0), operate.jobs("own", JobState.READY, limit=True),
        operate.failed("own", limit=-1), operate.failed("own", offset=-1), operate.unreadable("own", limit=0),
        operate.unreadable("*"), operate.unreadable_bytes("q\n", "1"), operate.drop_unreadable("q\0", ["1"]),
        operate.prune("q/a", hours=1), operate.retry("own", name="a b"), operate.retry("own", ["a"], name="b"),
        operate.failed_record("own", "a b"),
    ):  # fmt: skip
        with pytest.raises(InvalidOption):
            await operation


def test_the_blocking_twins_do_what_their_originals_do(app: Tenure) -> None:
    operate = app.operate
    ids = asyncio.run(failing(app, "ordinary", "asynchronous"))
    app.push_sync(bind(app), id="waits")
    assert (operate.queues_sync(), operate.size_sync("own"), operate.counts_sync("own").failed) == (["own"], 1, 2)
    assert operate.states_sync("own", ["waits", ids[0]]) == [JobState.READY, JobState.FAILED]
    assert [job.id for job in operate.jobs_sync("own", JobState.READY).jobs] == ["waits"]
    assert (operate.pause_sync("own"), operate.paused_sync(["own"]), operate.resume_sync("own")) == (True, [True], True)
    assert operate.cancel_sync("own", ["waits"]) == [Cancelled.REMOVED]
    assert [record.id for record in operate.failed_sync("own", limit=1, offset=1)] == ids[1:]
    record = operate.failed_record_sync("own", ids[0])
    assert record is not None
    assert record.id == ids[0]
    assert [answer.id for answer in operate.retry_sync("own", name="tests.unit.jobs.ordinary")] == ids[:1]
    assert operate.forget_sync("own", ["none"]) == [False]
    assert (operate.prune_sync("own", older_than=0), operate.clear_sync("own")) == (1, 1)
    assert (operate.unreadable_sync("own"), operate.unreadable_bytes_sync("own", "1")) == ([], None)
    assert operate.drop_unreadable_sync("own", ["1"]) == [False]
    assert operate.restart_sync()
    app.close_sync()


async def test_blocking_twins_refuse_inside_a_loop(app: Tenure) -> None:
    twins: list[tuple[str, Callable[..., object]]] = [
        (name, twin) for name, twin in inspect.getmembers(app.operate, callable) if name.endswith("_sync")
    ]
    assert len(twins) == len([name for name in vars(Operations) if name.endswith("_sync")]) > 15
    for name, twin in twins:
        given: dict[str, Any] = {"state": JobState.READY, "ids": [], "queue": "own", "queues": [], "job_id": "a"}
        given |= {"key": "1", "keys": []}
        wanted = {key: value for key, value in given.items() if key in inspect.signature(twin).parameters}
        with pytest.raises(WrongContext, match=name):
            twin(**wanted)

"""The sync driver runs a pushed job at once, in the caller."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tenure import Cancelled, GiveUp, JobState, NotRegistered, NotSupported, Retry, Tenure, WrongContext, current
from tenure.drivers.sync import SyncQueue
from tenure.envelope import Envelope, encode
from tenure.queue import Capabilities, Push
from tests.unit import jobs


@pytest.fixture(autouse=True)
def services() -> Iterator[None]:
    """Every test starts with the one service that the jobs ask for."""
    jobs.inline.services.register_factory(jobs.Mailer, jobs.Mailer)
    yield
    jobs.inline.services.close()


# K15
def test_a_pushed_job_has_run_when_the_push_returns() -> None:
    handle = jobs.where_plain.push_sync()
    assert handle.status_sync() is JobState.SUCCEEDED
    assert handle.wait_sync(timeout=0) is JobState.SUCCEEDED
    assert handle.result_sync(timeout=0)[0] == handle.id
    assert handle.cancel_sync() is Cancelled.NOT_FOUND
    assert not handle.held


def test_a_plain_function_runs_in_the_calling_thread() -> None:
    assert jobs.where_plain.push_sync().result_sync(timeout=0)[1] == threading.get_ident()
    assert jobs.plain_with_service.push_sync().result_sync(timeout=0) == ("Mailer", threading.get_ident())


def test_a_coroutine_function_runs_on_the_background_loop() -> None:
    assert jobs.where_async.push_sync().result_sync(timeout=0)[1] != threading.get_ident()


async def test_an_awaited_push_runs_a_coroutine_function_on_its_own_loop() -> None:
    assert (await (await jobs.where_async.push()).result(timeout=0))[1] == threading.get_ident()


async def test_an_awaited_push_runs_a_plain_function_in_a_thread() -> None:
    assert (await (await jobs.where_plain.push()).result(timeout=0))[1] != threading.get_ident()


def test_jobs_push_jobs() -> None:
    assert jobs.plain_pushes_async.push_sync().result_sync(timeout=0)
    assert jobs.async_pushes_plain.push_sync().result_sync(timeout=0)


async def test_awaited_jobs_push_jobs() -> None:
    assert await (await jobs.plain_pushes_async.push()).result(timeout=0)
    assert await (await jobs.async_pushes_plain.push()).result(timeout=0)


async def test_services_are_made_for_the_job() -> None:
    assert await (await jobs.with_service.push()).result(timeout=0) == "Mailer"
    assert await (await jobs.inline.push(jobs.InlineReport(5))).result(timeout=0) == "5 Mailer"


def test_a_scope_of_services_is_closed_after_its_attempt() -> None:
    closed: list[bool] = []

    def factory() -> Iterator[jobs.Mailer]:
        yield jobs.Mailer()
        closed.append(True)

    jobs.inline.services.register_factory(jobs.Mailer, factory)
    jobs.with_service.push_sync()
    jobs.plain_with_service.push_sync()
    assert closed == [True, True]


@pytest.mark.parametrize("job", [jobs.raises_async, jobs.raises_plain], ids=["async", "plain"])
@pytest.mark.parametrize("what", ["boom", "exit", "retry"])
def test_what_a_handler_raises_reaches_the_caller(job: Any, what: str) -> None:
    with pytest.raises((jobs.Boom, SystemExit, Retry)) as raised:
        job.push_sync(what)
    assert raised.type in {jobs.Boom, SystemExit, Retry}
    assert jobs.where_async.push_sync().status_sync() is JobState.SUCCEEDED  # the background loop goes on


@pytest.mark.parametrize("job", [jobs.raises_async, jobs.raises_plain], ids=["async", "plain"])
def test_a_stop_iteration_does_not_hang_the_caller(job: Any) -> None:
    with pytest.raises((RuntimeError, StopIteration)):
        job.push_sync("stop")


@pytest.mark.parametrize("job", [jobs.raises_async, jobs.raises_plain], ids=["async", "plain"])
def test_a_discarded_job_ends_quietly(job: Any) -> None:
    assert job.push_sync("discard").result_sync(timeout=0) is None


async def test_what_an_awaited_handler_raises_reaches_the_caller() -> None:
    with pytest.raises(jobs.Boom):
        await jobs.raises_async.push("boom")
    with pytest.raises(jobs.Boom):
        await jobs.raises_plain.push("boom")
    with pytest.raises(WrongContext):
        current()


def test_a_bulk_push_stops_at_the_first_that_raises() -> None:
    calls = [jobs.count.bind(1), jobs.count.bind(2)]
    assert [handle.result_sync(timeout=0)["n"] for handle in jobs.inline.push_many_sync(calls)] == [1, 2]
    with pytest.raises(jobs.Boom):
        jobs.inline.push_many_sync([jobs.raises_plain.bind("boom"), jobs.raises_plain.bind("exit")])


async def test_a_bulk_push_is_awaited_too() -> None:
    handles = await jobs.inline.push_many([jobs.count.bind(1), jobs.count.bind(2)])
    assert [(await handle.result(timeout=0))["n"] for handle in handles] == [1, 2]


def test_options_of_waiting_are_passed_over_and_meta_arrives() -> None:
    handle = jobs.inline.push_sync(jobs.count.bind(1), delay=3600, id="again", meta={"a": 1})
    assert handle.result_sync(timeout=0) == {"n": 1, "meta": {"a": 1}, "attempt": 1, "max": 1}
    assert not jobs.inline.push_sync(jobs.count.bind(1), id="again").held


def test_middleware_stands_around_the_attempt() -> None:
    app = Tenure("sync://", namespace="tests")
    job = app.job(jobs.ordinary)
    order: list[str] = []

    @app.middleware
    async def outer(attempt: Any, call_next: Any) -> Any:
        order.append(f"outer {attempt.name}")
        try:
            return await call_next()
        finally:
            order.append("out")

    @app.middleware
    async def inner(attempt: Any, call_next: Any) -> Any:
        order.append("inner")
        return await call_next() + 1

    assert job.push_sync(1).result_sync(timeout=0) == 2
    assert order == ["outer tests.unit.jobs.ordinary", "inner", "out"]
    assert len(app.middleware) == 2
    assert list(app.middleware) == [outer, inner]


def test_a_job_that_gives_up_tells_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jobs.OUTCOMES, "boom", lambda: GiveUp("hopeless"))
    with pytest.raises(GiveUp, match="hopeless"):
        jobs.raises_plain.push_sync("boom")


# K15
async def test_everything_but_a_push_is_refused_by_name() -> None:
    queue = jobs.inline.queue()
    assert isinstance(queue, SyncQueue)
    assert queue.capabilities == Capabilities(
        driver="sync", shared=False, cancel_running=False, results=True, compositions=True, spanning=True
    )
    for refused in (
        queue.claim(["q"], limit=1, lease=1, wait=0), queue.renew([]), queue.settle([]), queue.cancel("q", []),
        queue.clear("q"), queue.counts("q"),
    ):  # fmt: skip
        with pytest.raises(NotSupported, match="'sync' driver does not support"):
            await refused
    with pytest.raises(NotSupported):
        queue.keeper()
    await queue.aclose()
    pusher = queue.pusher()
    pusher.close()


def test_an_interrupted_caller_stops_waiting_and_its_job_is_cancelled() -> None:
    with pytest.raises(KeyboardInterrupt):
        jobs.interrupts_its_caller.push_sync()
    assert jobs.CANCELLED.wait(5)
    assert jobs.where_async.push_sync().status_sync() is JobState.SUCCEEDED


def test_a_job_that_the_application_does_not_know_is_refused() -> None:
    data = encode(Envelope(v=1, id="x", name="os:system", queue="q"))
    with pytest.raises(NotRegistered, match="'os:system' is not registered"):
        jobs.inline.queue().pusher().push([Push(queue="q", id="x", envelope=data)])

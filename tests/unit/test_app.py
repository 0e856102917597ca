"""Pushing through an application: what reaches the driver, and what is refused before."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure import (
    Cancelled,
    ConfigurationError,
    InvalidOption,
    JobGone,
    JobHandle,
    JobState,
    NotRegistered,
    NotSupported,
    Tenure,
    WrongContext,
)
from tenure.config import Settings
from tenure.drivers.memory import MemoryQueue
from tenure.envelope import decode
from tenure.events import JobPushed
from tenure.operations import Operations
from tenure.queue import Push, Pushed
from tests.unit import jobs
from tests.unit.applications import bind, claimed, make_app


@pytest.fixture
def app() -> Tenure:
    return make_app()


# ---------------------------------------------------------------------------------------------------------- the options


async def test_what_the_decorator_says_travels_with_the_job(app: Tenure) -> None:
    await app.push(bind(app))
    [lease] = await claimed(app)
    envelope = decode(lease.envelope)
    assert (envelope.name, envelope.queue, envelope.priority) == ("tests.unit.jobs.ordinary", "own", 3)
    assert (envelope.max_attempts, envelope.timeout, envelope.backoff) == (5, 30.0, None)
    assert (envelope.id, envelope.meta) == (lease.id, {})


async def test_what_the_push_says_counts_over_the_decorator(app: Tenure) -> None:
    await app.push(bind(app), queue="other", max_attempts=2, timeout=1, backoff=4, priority=0, meta={"a": 1}, id="me")
    [lease] = await claimed(app, "other")
    envelope = decode(lease.envelope)
    assert (envelope.max_attempts, envelope.timeout, envelope.backoff, envelope.priority) == (2, 1.0, 4.0, 0)
    assert (lease.id, envelope.meta) == ("me", {"a": 1})


async def test_the_environment_counts_last_and_what_nobody_set_travels_unset(app: Tenure) -> None:
    from_environ = Tenure("memory://", settings=Settings(max_attempts=7))
    from_environ.job(jobs.asynchronous)
    for tried, expected in ((app, None), (from_environ, 7)):
        await tried.push(bind(tried, name="asynchronous"))
        [lease] = await claimed(tried, "default")
        assert (decode(lease.envelope).max_attempts, decode(lease.envelope).timeout) == (expected, None)


def recorded(app: Tenure) -> list[Push]:
    """Return the list that will hold what reaches the driver."""
    queue = app.queue()
    assert isinstance(queue, MemoryQueue)
    seen: list[Push] = []
    pusher = app.queue().pusher

    class Recording:
        def __init__(self) -> None:
            self.inner = pusher()

        def push(self, batch: Sequence[Push]) -> Sequence[Pushed]:
            seen.extend(batch)
            return self.inner.push(batch)

        def close(self) -> None:
            self.inner.close()

    queue.pusher = Recording  # type: ignore[method-assign, assignment]
    return seen


def test_the_crash_limit_is_the_attempts_limit_and_a_date_becomes_a_delay(app: Tenure) -> None:
    seen = recorded(app)
    tomorrow = datetime(2030, 1, 2, tzinfo=UTC)
    app.push_sync(bind(app, expires_in=timedelta(days=2)), at=tomorrow)
    app.push_sync(bind(app), at=datetime(1970, 1, 1, tzinfo=UTC))
    app.push_sync(bind(app, name="asynchronous"), at=datetime(9999, 12, 31, tzinfo=UTC))
    assert [(push.crash_limit, push.delay, push.expires_in) for push in seen[:2]] == [
        (5, 86_400.0, 172_800.0),
        (5, 0.0, 600.0),
    ]
    assert seen[2].delay > 7_900 * 365 * 86_400
    assert (seen[2].crash_limit, seen[2].expires_in) == (None, None)


def test_a_job_that_would_expire_before_it_may_start_is_refused(app: Tenure) -> None:
    with pytest.raises(InvalidOption, match="expire"):
        app.push_sync(bind(app), delay=600)


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({"durability": 2}, "durability 2"),
        ({"transaction": object()}, "transaction"),
    ],
)
def test_what_the_driver_cannot_do_is_refused_by_driver_and_feature(app: Tenure, options: Any, feature: str) -> None:
    seen = recorded(app)
    with pytest.raises(NotSupported, match=f"'memory' driver does not support .*{feature}"):
        app.push_sync(bind(app), **options)
    assert seen == []
    app.push_sync(bind(app), durability=1, unique=False)


# --------------------------------------------------------------------------------------------------- where it is called


def test_push_refuses_at_once_where_no_loop_runs(app: Tenure) -> None:
    push: Callable[[], object]
    for push in (lambda: app.push(bind(app)), lambda: jobs.add.push(1)):
        with pytest.raises(WrongContext, match="push_sync"):
            push()


async def test_blocking_calls_refuse_at_once_inside_a_loop(app: Tenure) -> None:
    handle = await app.push(bind(app))
    blocking: Callable[[], object]
    for blocking in (
        lambda: app.push_sync(bind(app)), lambda: jobs.add.push_sync(1), lambda: app.push_many_sync([]),
        lambda: app.counts_sync("own"), app.queues_sync, lambda: app.failed_sync("own"),
        lambda: app.retry_sync("own"), lambda: app.forget_sync("own", []), lambda: app.cancel_sync("own", []),
        lambda: app.clear_sync("own"), lambda: app.states_sync("own", []), app.close_sync, handle.status_sync,
        handle.wait_sync, lambda: handle.result_sync(timeout=1), handle.cancel_sync,
    ):  # fmt: skip
        with pytest.raises(WrongContext, match="_sync"):
            blocking()
    assert (await app.counts("own")).ready == 1


def test_every_awaitable_has_a_blocking_twin() -> None:
    for kind in (Tenure, Operations, JobHandle):
        asynchronous = {
            name for name in vars(kind) if name[0] != "_" and asyncio.iscoroutinefunction(getattr(kind, name))
        }
        missing = {name for name in asynchronous if not hasattr(kind, f"{name.removeprefix('a')}_sync")}
        assert {name for name in missing if not hasattr(kind, f"{name}_sync")} == set()


def test_the_blocking_twins_do_what_their_originals_do(app: Tenure) -> None:
    handle = app.push_sync(bind(app))
    assert (handle.queue, handle.connection, handle.held) == ("own", "default", False)
    assert app.push_sync(bind(app), id=handle.id).held
    assert handle.status_sync() is JobState.READY
    assert (app.counts_sync("own").ready, app.queues_sync()) == (1, ["own"])
    assert app.states_sync("own", [handle.id, "none"]) == [JobState.READY, JobState.GONE]
    assert app.cancel_sync("own", ["none"]) == [Cancelled.NOT_FOUND]
    assert handle.cancel_sync() is Cancelled.REMOVED
    assert handle.wait_sync(timeout=1) is JobState.GONE
    with pytest.raises(JobGone):
        handle.result_sync(timeout=1)
    handles = app.push_many_sync(bind(app, number) for number in range(3))
    assert (len(handles), app.clear_sync("own")) == (3, 3)
    assert (app.failed_sync("own"), app.retry_sync("own"), app.forget_sync("own", ["none"])) == ([], [], [False])
    app.close_sync()
    app.close_sync()


# ------------------------------------------------------------------------------------------------------------ whose job


def test_what_is_no_job_of_the_application_is_refused(app: Tenure) -> None:
    with pytest.raises(NotRegistered, match="another application"):
        app.push_sync(jobs.add.bind(1))
    thing: Any
    for thing in (jobs.SubReport(1), jobs.Plain(1), 5):
        with pytest.raises(NotRegistered, match="not a job of this application"):
            app.push_sync(thing)
    with pytest.raises(NotRegistered, match=r"bind\(\)"):
        app.push_sync(jobs.add)  # type: ignore[call-overload] # pyright: ignore
    with pytest.raises(NotRegistered, match="no job 'os:system'"):
        app.call("os:system", ["ls"])
    with pytest.raises(InvalidOption, match=r"jobs\.ordinary: "):
        app.call("tests.unit.jobs.ordinary", ["secret"])


def test_an_instance_is_pushed_as_the_call_that_made_it(app: Tenure) -> None:
    handle = app.push_sync(jobs.Report(5, draft=True), queue="own")
    [lease] = asyncio.run(claimed(app))
    assert lease.id == handle.id
    assert bytes(decode(lease.envelope).kwargs) == b'{"number":5,"title":"none","draft":true}'


# ------------------------------------------------------------------------------------------------------------ observers


async def test_an_observer_hears_of_each_push(app: Tenure) -> None:
    heard: list[JobPushed] = []
    off = app.events.on(JobPushed, heard.append)
    await app.push(bind(app), id="one")
    await app.push_many([bind(app, id="one"), bind(app, id="two")])
    off()
    await app.push(bind(app))
    assert [(event.id, event.held, event.queue) for event in heard] == [
        ("one", False, "own"),
        ("one", True, "own"),
        ("two", False, "own"),
    ]


# ------------------------------------------------------------------------------------------------------------- settings


def test_settings_are_read_at_first_use_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUE_MAX_ATTEMPTS", "many")
    app = Tenure("memory://")
    app.job(jobs.asynchronous)
    with pytest.raises(ConfigurationError, match="QUEUE_MAX_ATTEMPTS"):
        _ = app.settings
    monkeypatch.setenv("QUEUE_MAX_ATTEMPTS", "4")
    assert app.settings.max_attempts == 4


def test_a_wrong_namespace_is_refused_when_it_is_given() -> None:
    with pytest.raises(InvalidOption, match="namespace"):
        Tenure("memory://", namespace="a:b")


async def test_an_application_that_was_never_used_closes() -> None:
    app = Tenure("redis://nowhere.invalid:1")
    await app.aclose()
    await app.aclose()

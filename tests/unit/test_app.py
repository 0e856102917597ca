"""Pushing through an application: what reaches the driver, what comes back, and what is refused before."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure import (
    Cancelled,
    ConfigurationError,
    ConnectionFailed,
    InvalidOption,
    JobFailed,
    JobGone,
    JobHandle,
    JobState,
    NotRegistered,
    NotSupported,
    OutcomeUnknown,
    PushIncomplete,
    StoreRefused,
    Tenure,
    WrongContext,
)
from tenure.config import Settings
from tenure.dispatch import CHUNK
from tenure.drivers.memory import MemoryQueue
from tenure.envelope import Envelope, decode
from tenure.events import JobPushed
from tenure.queue import Ack, Fail, Failure, Lease, Push, Pushed
from tests.unit import jobs


class Clock:
    """A clock that stands still."""

    def monotonic(self) -> float:
        return 0.0

    def time(self) -> float:
        return datetime(2030, 1, 1, tzinfo=UTC).timestamp()


@pytest.fixture
def app() -> Tenure:
    app = Tenure("memory://", namespace="tests", clock=Clock())
    app.job(queue="own", max_attempts=5, timeout=30, priority=3, expires_in=600)(jobs.ordinary)
    app.job(jobs.asynchronous)
    app.job(jobs.Report)
    return app


def bind(app: Tenure, number: int = 1, name: str = "ordinary", **options: Any) -> Any:
    call = app.call(f"tests.unit.jobs.{name}", [number])
    return call.options(**options) if options else call


async def claimed(app: Tenure, queue: str = "own", limit: int = 1) -> Sequence[Lease]:
    return (await app.queue().claim([queue], limit=limit, lease=60, wait=0)).leases


# -------------------------------------------------------------------------------------------------------------- the options


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

    queue.pusher = Recording  # type: ignore[method-assign]
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
        ({"unique": True}, "unique"),
        ({"result_ttl": 5}, "results"),
        ({"durability": 2}, "durability 2"),
        ({"transaction": object()}, "transaction"),
        ({"after_commit": object()}, "after_commit"),
    ],
)
def test_what_the_driver_cannot_do_is_refused_by_driver_and_feature(app: Tenure, options: Any, feature: str) -> None:
    seen = recorded(app)
    with pytest.raises(NotSupported, match=f"'memory' driver does not support .*{feature}"):
        app.push_sync(bind(app), **options)
    assert seen == []
    app.push_sync(bind(app), durability=1, unique=False)


# ------------------------------------------------------------------------------------------------------------ where it is called


def test_push_refuses_at_once_where_no_loop_runs(app: Tenure) -> None:
    for push in (lambda: app.push(bind(app)), lambda: jobs.add.push(1)):
        with pytest.raises(WrongContext, match="push_sync"):
            push()


async def test_blocking_calls_refuse_at_once_inside_a_loop(app: Tenure) -> None:
    handle = await app.push(bind(app))
    for blocking in (
        lambda: app.push_sync(bind(app)), lambda: jobs.add.push_sync(1), lambda: app.push_many_sync([]),
        lambda: app.counts_sync("own"), lambda: app.queues_sync(), lambda: app.failed_sync("own"),
        lambda: app.retry_sync("own"), lambda: app.forget_sync("own", []), lambda: app.cancel_sync("own", []),
        lambda: app.clear_sync("own"), lambda: app.states_sync("own", []), app.close_sync, handle.status_sync,
        handle.wait_sync, lambda: handle.result_sync(timeout=1), handle.cancel_sync,
    ):  # fmt: skip
        with pytest.raises(WrongContext, match="_sync"):
            blocking()
    assert (await app.counts("own")).ready == 1


def test_every_awaitable_has_a_blocking_twin() -> None:
    for kind in (Tenure, JobHandle):
        asynchronous = {name for name in vars(kind) if asyncio.iscoroutinefunction(getattr(kind, name))}
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


# ------------------------------------------------------------------------------------------------------------------- whose job


def test_what_is_no_job_of_the_application_is_refused(app: Tenure) -> None:
    with pytest.raises(NotRegistered, match="another application"):
        app.push_sync(jobs.add.bind(1))
    for thing in (jobs.SubReport(1), jobs.Plain(1), 5):
        with pytest.raises(NotRegistered, match="not a job of this application"):
            app.push_sync(thing)
    with pytest.raises(NotRegistered, match=r"bind\(\)"):
        app.push_sync(jobs.add)
    with pytest.raises(NotRegistered, match="no job 'os:system'"):
        app.call("os:system", ["ls"])
    with pytest.raises(InvalidOption, match=r"jobs\.ordinary: "):
        app.call("tests.unit.jobs.ordinary", ["secret"])


def test_an_instance_is_pushed_as_the_call_that_made_it(app: Tenure) -> None:
    handle = app.push_sync(jobs.Report(5, draft=True), queue="own")
    [lease] = asyncio.run(claimed(app))
    assert lease.id == handle.id
    assert bytes(decode(lease.envelope).kwargs) == b'{"number":5,"title":"none","draft":true}'


# ---------------------------------------------------------------------------------------------------------------------- many


async def test_many_calls_are_pushed_in_order_and_in_parts(app: Tenure) -> None:
    number = CHUNK * 2 + 3
    calls = (
        bind(app, n) if n % 2 else app.bind(jobs.Report(n)).options(queue="own", priority=3) for n in range(number)
    )
    handles = await app.push_many(calls)
    leases = await claimed(app, limit=number)
    assert [lease.id for lease in leases] == [handle.id for handle in handles]


async def test_an_instance_of_a_class_job_is_a_call_in_a_bulk_push_too(app: Tenure) -> None:
    [handle] = await app.push_many([jobs.Report(1)], queue="own")  # type: ignore[list-item]
    assert await handle.status() is JobState.READY


def test_one_id_for_many_jobs_and_a_wrong_option_for_none_are_refused(app: Tenure) -> None:
    with pytest.raises(InvalidOption, match="id is for one job"):
        app.push_many_sync([bind(app)], id="x")
    with pytest.raises(InvalidOption, match="dealy"):
        app.push_many_sync([], dealy=1)  # type: ignore[call-arg]


async def test_a_call_that_is_refused_in_the_first_part_leaves_nothing_behind(app: Tenure) -> None:
    calls = [bind(app), bind(app, unique=True), bind(app)]
    with pytest.raises(NotSupported):
        await app.push_many(calls)
    assert (await app.counts("own")).ready == 0


async def test_a_call_that_is_refused_later_says_what_is_stored(app: Tenure) -> None:
    calls: Iterator[Any] = itertools.chain((bind(app) for _ in range(CHUNK + 2)), [bind(app, unique=True)])
    with pytest.raises(PushIncomplete, match=f"call {CHUNK + 3} was refused") as incomplete:
        await app.push_many(calls)
    assert [pushed.outcome for pushed in incomplete.value.outcomes] == ["stored"] * CHUNK
    assert (await app.counts("own")).ready == CHUNK


class Failing:
    """Answers a push of the memory driver otherwise, from the second part on."""

    def __init__(self, app: Tenure, answer: Any, after: int = 1) -> None:
        queue = app.queue()
        assert isinstance(queue, MemoryQueue)
        self.push, self.answer, self.after = queue.push, answer, after
        queue.push = self  # type: ignore[method-assign, assignment]

    async def __call__(self, batch: Sequence[Push]) -> Sequence[Pushed]:
        self.after -= 1
        if self.after >= 0:
            return await self.push(batch)
        if isinstance(self.answer, Exception):
            raise self.answer
        return [Pushed(push.id, *self.answer) for push in batch]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (ConnectionFailed("gone"), "refused"),
        (OutcomeUnknown("silence"), "unknown"),
        (("unknown", OutcomeUnknown("silence")), "unknown"),
        (("refused", None), "refused"),
    ],
)
async def test_a_store_that_fails_in_the_middle_says_what_is_stored(app: Tenure, answer: Any, outcome: str) -> None:
    Failing(app, answer)
    with pytest.raises(PushIncomplete, match=f"{CHUNK} jobs are stored, 7 are not known") as incomplete:
        await app.push_many(bind(app) for _ in range(CHUNK + 7))
    outcomes = [pushed.outcome for pushed in incomplete.value.outcomes]
    assert outcomes == ["stored"] * CHUNK + [outcome] * 7


async def test_a_store_that_fails_at_once_raises_what_it_says(app: Tenure) -> None:
    Failing(app, ConnectionFailed("gone"), after=0)
    with pytest.raises(ConnectionFailed):
        await app.push_many([bind(app)])
    with pytest.raises(ConnectionFailed):
        await app.push(bind(app))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (("unknown", None), OutcomeUnknown),
        (("unknown", OutcomeUnknown("silence")), OutcomeUnknown),
        (("refused", StoreRefused("OOM", "no memory")), StoreRefused),
    ],
)
async def test_a_single_push_raises_what_became_of_it(app: Tenure, answer: Any, error: type[Exception]) -> None:
    Failing(app, answer, after=0)
    with pytest.raises(error):
        await app.push(bind(app))


async def test_calls_of_several_connections_go_where_they_belong() -> None:
    environ = {"TENURE_A_URL": "memory://", "TENURE_B_URL": "memory://", "TENURE_URL": "memory://"}
    app = Tenure(settings=Settings.from_environ(environ))
    job = app.job(connection="a")(jobs.asynchronous)
    handles = await app.push_many([job.bind(1), job.bind(2).options(connection="b"), job.bind(3)])
    assert [handle.connection for handle in handles] == ["a", "b", "a"]
    counts = [(await app.counts("default", connection=name)).ready for name in ("a", "b", "default")]
    assert counts == [2, 1, 0]


# -------------------------------------------------------------------------------------------------------------------- observers


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


# ---------------------------------------------------------------------------------------------------------------------- handles


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


# --------------------------------------------------------------------------------------------------------------- the failed store


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


# -------------------------------------------------------------------------------------------------------------------- settings


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

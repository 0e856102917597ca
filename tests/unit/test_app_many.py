"""Many calls in few round trips, and what is said when it stops in the middle."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tenure import (
    ConnectionFailed,
    InvalidOption,
    JobState,
    NotSupported,
    OutcomeUnknown,
    PushIncomplete,
    StoreRefused,
    Tenure,
)
from tenure.config import Settings
from tenure.dispatch import CHUNK
from tenure.drivers.memory import MemoryQueue
from tenure.queue import Push, Pushed
from tests.unit import jobs
from tests.unit.applications import bind, claimed, make_app


@pytest.fixture
def app() -> Tenure:
    return make_app()


async def test_many_calls_are_pushed_in_order_and_in_parts(app: Tenure) -> None:
    number = CHUNK * 2 + 3
    calls = (
        bind(app, n) if n % 2 else app.bind(jobs.Report(n)).options(queue="own", priority=3) for n in range(number)
    )
    handles = await app.push_many(calls)
    leases = await claimed(app, limit=number)
    assert [lease.id for lease in leases] == [handle.id for handle in handles]


async def test_an_instance_of_a_class_job_is_a_call_in_a_bulk_push_too(app: Tenure) -> None:
    instances: list[Any] = [jobs.Report(1)]
    [handle] = await app.push_many(instances, queue="own")
    assert await handle.status() is JobState.READY


def test_one_id_for_many_jobs_and_a_wrong_option_for_none_are_refused(app: Tenure) -> None:
    with pytest.raises(InvalidOption, match="id is for one job"):
        app.push_many_sync([bind(app)], id="x")
    with pytest.raises(InvalidOption, match="dealy"):
        app.push_many_sync([], dealy=1)  # type: ignore[call-arg]


async def test_a_call_that_is_refused_in_the_first_part_leaves_nothing_behind(app: Tenure) -> None:
    calls = [bind(app), bind(app, durability=2), bind(app)]
    with pytest.raises(NotSupported):
        await app.push_many(calls)
    assert (await app.counts("own")).ready == 0


async def test_a_call_that_is_refused_later_says_what_is_stored(app: Tenure) -> None:
    calls: Iterator[Any] = itertools.chain((bind(app) for _ in range(CHUNK + 2)), [bind(app, durability=2)])
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


def test_a_blocking_bulk_push_says_what_is_stored(app: Tenure) -> None:
    queue = app.queue()
    assert isinstance(queue, MemoryQueue)
    inner = queue.pusher()

    class FailingPusher:
        calls = 0

        def push(self, batch: Sequence[Push]) -> Sequence[Pushed]:
            self.calls += 1
            if self.calls > 1:
                raise ConnectionFailed("gone")
            return inner.push(batch)

        def close(self) -> None:
            inner.close()

    queue.pusher = FailingPusher  # type: ignore[method-assign, assignment]
    with pytest.raises(PushIncomplete, match=f"{CHUNK} jobs are stored, 7 are not known"):
        app.push_many_sync(bind(app) for _ in range(CHUNK + 7))

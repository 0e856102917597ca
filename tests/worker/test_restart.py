"""A restart that is asked for through the store, and queues that are paused, as a worker sees them."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tenure import Tenure
from tenure.drivers.memory import MemoryQueue
from tenure.errors import ConnectionFailed
from tenure.operating import Control
from tenure.queue import Claimed, Queue
from tenure.worker import ExitReason, Worker, WorkerOptions
from tenure.worker.marker import INTERVAL, RestartMarker
from tests.worker.support import drain, for_a_while, until, until_counts, working

begun: list[int] = []
done: list[int] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    begun.clear()
    done.clear()


async def note(value: int, seconds: float = 0) -> None:
    begun.append(value)
    await asyncio.sleep(seconds)  # handler
    done.append(value)


def run(app: Tenure, **options: Any) -> asyncio.Task[ExitReason]:
    return asyncio.create_task(Worker(app, WorkerOptions(**{"queues": ("default",), "sleep": 0.1, **options})).run())


class Watched:
    """A driver that counts and can fail its reads of the marker, around a real one."""

    def __init__(self, inner: Queue) -> None:
        self._inner: Any = inner
        self.reads = 0
        self.claims = 0
        self.away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def restart_marker(self) -> str | None:
        self.reads += 1
        if self.away:
            raise ConnectionFailed("no answer")
        marker: str | None = await self._inner.restart_marker()
        return marker

    async def claim(self, queues: Sequence[str], **options: Any) -> Claimed:
        self.claims += 1
        claimed: Claimed = await self._inner.claim(queues, **options)
        return claimed


@pytest.fixture
def watched(quick: Tenure, monkeypatch: pytest.MonkeyPatch) -> Watched:
    driver = Watched(quick.queue())
    monkeypatch.setattr(quick, "queue", lambda *_: driver)
    return driver


# -------------------------------------------------------------------------------------------------------------- restart


async def test_a_worker_finishes_what_runs_takes_nothing_new_and_exits(app: Tenure) -> None:  # S8
    job = app.job(note)
    await job.push(1, 2.0)
    worker = run(app, concurrency=4)
    await until(lambda: begun == [1])
    await app.operate.restart()
    assert await asyncio.wait_for(worker, 10) is ExitReason.RESTART
    assert done == [1]
    await job.push(2)
    await until_counts(app, ready=1, leased=0)


async def test_a_worker_whose_slots_are_full_takes_nothing_more(app: Tenure) -> None:
    job = app.job(note)
    await app.push_many(job.bind(number, 1.5) for number in range(2))
    worker = run(app, concurrency=1)
    await until(lambda: begun == [0])
    await app.operate.restart()
    assert await asyncio.wait_for(worker, 10) is ExitReason.RESTART
    assert (begun, done) == ([0], [0])
    await until_counts(app, ready=1, leased=0)


async def test_every_worker_of_the_namespace_restarts_and_those_that_start_later_do_not(app: Tenure) -> None:  # S8
    await app.operate.restart()
    workers = [Worker(app, WorkerOptions(queues=("default",), sleep=0.1)) for _ in range(2)]
    running = [asyncio.create_task(worker.run()) for worker in workers]
    await until(lambda: all(worker.ready for worker in workers))
    await for_a_while(1.5 * INTERVAL)
    assert not any(task.done() for task in running)
    await app.operate.restart()
    assert await asyncio.wait_for(asyncio.gather(*running), 10) == [ExitReason.RESTART] * 2
    assert await drain(app) is ExitReason.EMPTY


async def test_the_marker_is_read_at_most_every_second_however_busy_the_worker(quick: Tenure, watched: Watched) -> None:
    job = quick.job(note)
    began = asyncio.get_running_loop().time()
    async with working(quick, concurrency=1, sleep=0.05):
        for number in range(3000):
            await job.push(number)
        await until(lambda: len(done) == 3000)
    seconds = asyncio.get_running_loop().time() - began
    assert watched.claims > 100
    assert 1 <= watched.reads <= seconds / INTERVAL + 1


async def test_a_read_that_fails_is_one_outage_and_stops_no_job(
    quick: Tenure, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    job = quick.job(note)
    worker = run(quick)
    await until(lambda: watched.reads == 1)
    watched.away = True
    await until(lambda: watched.reads >= 3)
    await job.push(1)
    await until(lambda: done == [1])
    watched.away = False
    await quick.operate.restart()
    assert await asyncio.wait_for(worker, 10) is ExitReason.RESTART
    failed, again = [record.getMessage() for record in caplog.records]
    assert failed.startswith("reading the restart marker failed, and is tried again")
    assert again.startswith("reading the restart marker works again")


async def test_what_a_worker_finds_first_is_what_it_compares_with(quick: Tenure, watched: Watched) -> None:
    watched.away = True
    worker = run(quick)
    await until(lambda: watched.reads >= 1)
    await quick.operate.restart()
    watched.away = False
    await for_a_while(2.5 * INTERVAL)
    assert not worker.done()
    await quick.operate.restart()
    assert await asyncio.wait_for(worker, 10) is ExitReason.RESTART


async def test_stopping_does_not_wait_for_the_marker(quick: Tenure, watched: Watched, monkeypatch: Any) -> None:
    waiting = asyncio.Event()

    async def never() -> str | None:
        waiting.set()
        await asyncio.Event().wait()
        return None

    monkeypatch.setattr(watched, "restart_marker", never)
    worker = Worker(quick, WorkerOptions(queues=("default",)))
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(waiting.wait(), 10)
    worker.stop()
    assert await asyncio.wait_for(running, 3) is ExitReason.SHUTDOWN
    assert watched.claims == 0


async def test_a_driver_that_controls_nothing_is_not_asked(quick: Tenure, monkeypatch: Any) -> None:
    class Plain(Watched):
        restart_marker = None  # type: ignore[assignment]

    driver = Plain(quick.queue())
    monkeypatch.setattr(quick, "queue", lambda *_: driver)
    await quick.job(note).push(1)
    assert await drain(quick) is ExitReason.EMPTY
    assert done == [1]


async def test_a_marker_that_the_store_has_lost_asks_for_nothing() -> None:
    now = 0.0
    store = MemoryQueue()
    await store.request_restart()
    driver = Watched(store)
    marker = RestartMarker(cast("Control", driver), lambda: now)
    assert marker.due
    assert not await marker.changed()
    assert not marker.due
    now += INTERVAL
    assert marker.due
    driver._inner = MemoryQueue()
    assert not await marker.changed()
    await driver._inner.request_restart()
    assert await marker.changed()


# --------------------------------------------------------------------------------------------------------------- forced


async def test_only_a_second_stop_is_forced(quick: Tenure) -> None:
    await quick.job(note).push(1, 30)
    worker = Worker(quick, WorkerOptions(queues=("default",)))
    running = asyncio.create_task(worker.run())
    await until(lambda: begun == [1])
    worker.stop()
    assert not worker.forced
    worker.stop()
    assert await running is ExitReason.SHUTDOWN
    assert worker.forced


# --------------------------------------------------------------------------------------------------------------- paused


async def test_a_paused_queue_counts_as_empty(app: Tenure) -> None:
    await app.job(note).push(1)
    await app.operate.pause("default")
    assert await drain(app) is ExitReason.EMPTY
    assert await drain(app, stop_when_empty=False, once=True, sleep=0.05) is ExitReason.EMPTY
    assert done == []
    await app.operate.resume("default")
    assert await drain(app) is ExitReason.EMPTY
    assert done == [1]


async def test_waiting_for_a_paused_queue_is_cheap(quick: Tenure, watched: Watched) -> None:
    await quick.job(note).push(1)
    await quick.operate.pause("default")
    async with working(quick, sleep=0.2):
        await until(lambda: watched.claims == 2)
        await for_a_while(1.0)
        assert watched.claims <= 8
        assert done == []


async def test_other_queues_go_on_while_one_is_paused(app: Tenure) -> None:
    job = app.job(note)
    await app.operate.pause("default")
    await job.push(1)
    await job.options(queue="other").push(2)
    await drain(app, queues=("default", "other"))
    assert done == [2]


async def test_what_runs_when_its_queue_is_paused_goes_on_and_is_settled(app: Tenure) -> None:
    job = app.job(note)
    await app.push_many([job.bind(1, 0.5), job.bind(2)])
    worker = run(app, concurrency=1, sleep=30)
    await until(lambda: begun == [1])
    await app.operate.pause("default")
    await until(lambda: done == [1])
    await until_counts(app, ready=1, leased=0)
    await app.operate.resume("default")
    await until(lambda: done == [1, 2])
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker

"""What the claim loop asks for, and what it does with what comes too late."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from tenure import Tenure
from tenure.naming import check_holder
from tenure.queue import Aside, Claimed, Queue
from tenure.worker import ExitReason, Worker, WorkerOptions
from tests.worker.support import drain, for_a_while, until, until_counts, working

seen: list[str] = []


async def sleeps(label: str, seconds: float) -> None:
    await asyncio.sleep(seconds)  # handler
    seen.append(label)


class Watched:
    """A driver whose claims can be watched and changed, around a real one."""

    def __init__(self, inner: Queue) -> None:
        self._inner = inner
        self.asked: list[dict[str, Any]] = []
        self.change: Callable[[Claimed], Claimed] = lambda claimed: claimed
        self.late: asyncio.Event | None = None
        self.cancelled = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def claim(self, queues: Sequence[str], **options: Any) -> Claimed:
        self.asked.append(options)
        if self.late is not None:
            self.cancelled = await through_cancellations(self.late)
            options["wait"] = 0
        return self.change(await self._inner.claim(queues, **options))


async def through_cancellations(event: asyncio.Event) -> int:
    """Wait for the event whatever comes, and return how often somebody tried to end that."""
    task = asyncio.current_task()
    assert task is not None
    while not event.is_set():
        try:
            await event.wait()
        except asyncio.CancelledError:
            continue
    return task.cancelling()


@pytest.fixture
def watched(quick: Tenure, monkeypatch: pytest.MonkeyPatch) -> Watched:
    seen.clear()
    driver = Watched(quick.queue())
    monkeypatch.setattr(quick, "queue", lambda *_: driver)
    return driver


async def test_it_asks_for_the_free_slots_and_waits_as_long_as_it_was_told(quick: Tenure, watched: Watched) -> None:
    await quick.job(sleeps).push("a", 0.3)
    async with working(quick, concurrency=7, sleep=0.1, lease=12, tries=5):
        await until(lambda: len(watched.asked) >= 2)
    first, second, *_ = watched.asked
    holder = first.pop("holder")
    assert second["holder"] == holder == check_holder(holder), "the process has one name"
    assert first == {"limit": 7, "lease": 12, "wait": 0.1, "crash_limit": 5, "suspects": True}
    assert second["limit"] == 6


async def test_while_it_holds_a_suspect_it_leaves_others_alone(quick: Tenure, watched: Watched) -> None:
    def suspicious(claimed: Claimed) -> Claimed:
        leases = [msgspec.structs.replace(lease, suspect=True) for lease in claimed.leases]
        return msgspec.structs.replace(claimed, leases=leases)

    watched.change = suspicious
    await quick.job(sleeps).push("a", 0.4)
    async with working(quick, concurrency=4, sleep=0.1):
        await until(lambda: seen == ["a"])
        await until(lambda: watched.asked[-1]["suspects"])
    assert watched.asked[0]["suspects"]
    assert not watched.asked[1]["suspects"]


async def test_leases_that_arrive_after_the_stop_go_back_uncharged(quick: Tenure, watched: Watched) -> None:
    watched.late = asyncio.Event()
    job = quick.job(sleeps)
    await quick.push_many(job.bind("late", 0) for _ in range(3))
    worker = Worker(quick, WorkerOptions(queues=("default",)))
    running = asyncio.create_task(worker.run())
    await until(lambda: watched.asked)
    worker.stop()
    await for_a_while(0.05)
    watched.late.set()
    assert await running is ExitReason.SHUTDOWN
    assert watched.cancelled == 1, "a second time would end its wait for what it has to give back"
    await until_counts(quick, ready=3, leased=0)
    claimed = await quick.queue().claim(["default"], limit=3, lease=5, wait=0)
    assert [lease.attempt for lease in claimed.leases] == [1, 1, 1]
    assert seen == []


async def test_records_that_a_claim_set_aside_are_named_in_the_log(
    quick: Tenure, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    told = [Claimed(unreadable=[Aside("default", "broken-1")])]
    watched.change = lambda claimed: told.pop() if told else claimed
    await drain(quick)
    assert "broken-1" in caplog.text


async def test_options_that_the_connection_has_are_used_when_nothing_else_is_said(
    quick: Tenure, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = msgspec.structs.replace(quick.settings, visibility_timeout=77, poll_timeout=0.3)
    monkeypatch.setattr(quick, "settings", settings)
    async with working(quick):
        await until(lambda: watched.asked)
    assert (watched.asked[0]["lease"], watched.asked[0]["wait"]) == (77.0, 0.3)

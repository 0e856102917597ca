"""Waiting claims: woken at once by this process, within a glance by others, and nearly idle meanwhile."""

import asyncio
import pathlib
import threading
import time

import pytest

from tenure.drivers.sql import SqliteQueue
from tenure.queue import Claimed, Release
from tests.sql.conftest import Open
from tests.sql.support import ENV, Q, claim, claim_one, ids, job, push
from tests.support import processes

SOON = 1.0


async def waiting(queue: SqliteQueue) -> "asyncio.Task[list[str]]":
    """Start a claim, and return when it waits: it has looked once by then."""

    async def names() -> list[str]:
        return ids(await claim(queue, wait=20))

    task = asyncio.create_task(names())
    await asyncio.wait([task], timeout=0.05)
    assert not task.done()
    return task


async def test_a_push_of_this_process_starts_a_waiting_claim_at_once(opened: Open) -> None:
    queue = opened()
    elapsed = []
    for number in range(9):
        task = await waiting(queue)
        begin = time.monotonic()
        await push(queue, job(f"j{number}"))
        assert await task == [f"j{number}"]
        elapsed.append(time.monotonic() - begin)
    assert sorted(elapsed)[4] < 0.02


async def test_a_push_of_another_process_is_noticed_within_a_few_looks(opened: Open) -> None:
    queue, other = opened(), opened()
    elapsed = []
    for number in range(9):
        task = await waiting(queue)
        begin = time.monotonic()
        await push(other, job(f"j{number}"))
        assert await task == [f"j{number}"]
        elapsed.append(time.monotonic() - begin)
    assert sorted(elapsed)[4] < 0.1
    assert max(elapsed) < SOON


async def test_a_push_after_a_long_silence_is_noticed_as_fast(opened: Open) -> None:
    queue, other = opened(), opened()
    await push(other, job("first"))
    await claim_one(queue)
    task = await waiting(queue)
    await asyncio.wait([task], timeout=3)  # by now the log's time is old enough to be trusted
    begin = time.monotonic()
    await push(other, job("x"))
    assert await task == ["x"]
    assert time.monotonic() - begin < 0.5


async def test_a_due_job_starts_within_fifty_milliseconds(opened: Open) -> None:
    queue, other = opened(), opened()
    late = []
    for number in range(5):
        task = await waiting(queue)
        begin = time.monotonic()
        await push(other, job(f"j{number}", delay=0.2))
        assert await task == [f"j{number}"]
        late.append(time.monotonic() - begin - 0.2)
    assert min(late) >= 0
    assert sorted(late)[2] < 0.05


async def test_a_blocking_pusher_wakes_a_waiting_claim(opened: Open) -> None:
    queue = opened()
    pusher = queue.pusher()
    task = await waiting(queue)
    await asyncio.to_thread(pusher.push, [job("x")])
    assert await asyncio.wait_for(task, SOON) == ["x"]
    pusher.close()


async def test_claims_of_several_event_loops_share_one_driver(opened: Open) -> None:
    queue = opened()
    got: list[str] = []

    def elsewhere() -> None:
        async def one() -> None:
            got.extend(ids(await claim(queue, wait=20)))

        asyncio.run(one())

    threads = [threading.Thread(target=elsewhere) for _ in range(3)]
    for thread in threads:
        thread.start()
    task = await waiting(queue)
    await push(queue, *(job(f"j{number}") for number in range(4)))
    got += await task
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
        assert not thread.is_alive()
    assert sorted(got) == ["j0", "j1", "j2", "j3"]


async def test_claims_that_may_not_take_what_is_there_do_not_wake_each_other_for_ever(opened: Open) -> None:
    queue = opened()
    await push(queue, job("suspect", crash_limit=2))
    await queue.settle([Release(await claim_one(queue), crashed=True)])
    begin = time.process_time()
    await asyncio.gather(*(claim(queue, wait=0.5, suspects=False) for _ in range(3)))
    assert time.process_time() - begin < 0.2


async def test_a_claim_that_looks_in_vain_writes_nothing(path: pathlib.Path, opened: Open) -> None:
    queue = opened()
    await push(queue, job("later", delay=60), job("other", queue="other"))
    log = path.with_name(path.name + "-wal")
    before = log.stat()
    for _ in range(20):
        assert await claim(queue, 5) == []
    after = log.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


async def test_next_due_is_the_earliest_delay_or_lease_of_the_claimed_queues(opened: Open) -> None:
    queue = opened()

    async def look(*queues: str) -> Claimed:
        return await queue.claim(queues, limit=1, lease=30, wait=0)

    assert (await look("a", "b")).next_due is None
    await push(queue, job("x", queue="a", delay=50), job("y", queue="b", delay=40), job("z", queue="c"))
    due = (await look("a", "b")).next_due
    assert due is not None
    assert 39 < due <= 40.1
    due = (await look("c", "a")).next_due
    assert due is not None
    assert 29 < due <= 30.1


@pytest.mark.timeout(30)
async def test_an_idle_worker_uses_little_of_a_core(path: pathlib.Path, opened: Open) -> None:
    await opened().counts(Q)
    code = f"""
import asyncio, time
from tenure.drivers.sql import SqliteQueue
async def main():
    queue = SqliteQueue({str(path)!r}, namespace="test")
    await queue.claim(["q"], limit=50, lease=60, wait=0)
    cpu, begin = time.process_time(), time.monotonic()
    for _ in range(6):
        await queue.claim(["q"], limit=50, lease=60, wait=1)
    print("used", (time.process_time() - cpu) / (time.monotonic() - begin))
    await queue.aclose()
asyncio.run(main())
"""
    with processes.python("-c", code, env=ENV) as child:
        assert child.wait(25) == 0, child.output
        used = float(child.output.split()[1])
    # 0.4 % where it was measured alone; the rest is left to a machine that has other things to do.
    assert used < 0.01

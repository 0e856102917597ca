"""The memory driver, where it differs from the others: threads, loops and forks of one process."""

import asyncio
import logging
import os
import sys
import threading
import time

import pytest

from tenure.drivers.memory import MemoryQueue
from tenure.errors import TenureError
from tenure.operating import FailedJobs, Inspector
from tenure.queue import Ack, Lease, Push, Release, feature


def job(name: str, **options: float) -> Push:
    return Push(queue="q", id=name, envelope=b"{}", **options)  # type: ignore[arg-type]


async def claim(queue: MemoryQueue, limit: int = 1, *, wait: float = 0, lease: float = 60) -> list[Lease]:
    return list((await queue.claim(["q"], limit=limit, lease=lease, wait=wait)).leases)


def test_it_reads_and_operates_too() -> None:
    queue = MemoryQueue()
    assert feature(queue, Inspector)
    assert feature(queue, FailedJobs)
    assert not queue.capabilities.shared


async def test_a_push_from_a_thread_wakes_a_claim_in_a_loop_at_once() -> None:
    queue = MemoryQueue()
    elapsed = []
    for number in range(9):
        task = asyncio.create_task(claim(queue, wait=20))
        await asyncio.wait([task], timeout=0.02)
        begin = time.monotonic()
        await asyncio.to_thread(queue.pusher().push, [job(f"j{number}")])
        assert [lease.id for lease in await task] == [f"j{number}"]
        elapsed.append(time.monotonic() - begin)
    assert sorted(elapsed)[4] < 0.05


async def test_loops_in_several_threads_share_the_jobs() -> None:
    queue = MemoryQueue()
    got: list[str] = []

    def worker() -> None:
        async def work() -> None:
            while leases := await claim(queue, 3, wait=0.5):
                got.extend(lease.id for lease in leases)
                await queue.settle([Ack(lease) for lease in leases])

        asyncio.run(work())

    def pusher(name: int) -> None:
        for number in range(300):
            queue.pusher().push([job(f"{name}-{number}")])

    threads = [threading.Thread(target=worker) for _ in range(3)]
    threads += [threading.Thread(target=pusher, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 20)
    assert len(got) == len(set(got)) == 600
    assert (await queue.counts("q")).size == 0


async def test_a_claim_whose_loop_was_closed_does_not_disturb_a_push() -> None:
    queue = MemoryQueue()

    def abandoned() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(claim(queue, wait=60))
        loop.run_until_complete(asyncio.wait([task], timeout=0.01))
        loop.close()
        kept.append(task)

    kept: list[asyncio.Task[list[Lease]]] = []
    await asyncio.to_thread(abandoned)
    assert [one.outcome for one in await queue.push([job("x")])] == ["stored"]
    assert [lease.id for lease in await claim(queue)] == ["x"]
    kept[0].get_coro().close()
    kept[0]._log_destroy_pending = False  # type: ignore[attr-defined]


async def test_a_cancelled_claim_has_taken_nothing() -> None:
    queue = MemoryQueue()
    for number in range(20):
        task = asyncio.create_task(claim(queue, wait=5))
        await asyncio.sleep(0)
        pushing = asyncio.create_task(queue.push([job(f"j{number}")]))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        task.cancel()
        taken = await asyncio.gather(task, return_exceptions=True)
        await pushing
        if isinstance(taken[0], list):
            await queue.settle([Release(lease) for lease in taken[0]])
    assert (await queue.counts("q")).ready == 20


def test_a_forked_child_begins_empty_and_says_so() -> None:
    queue = MemoryQueue()
    queue.pusher().push([job("x")])
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Nothing of pytest may run on in the child: it tells what it saw and is gone.
        told = "nothing"
        try:
            records: list[str] = []
            handler = logging.Handler()
            handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
            logging.getLogger("tenure.drivers.memory").addHandler(handler)
            before = asyncio.run(queue.counts("q")).ready
            stored = queue.pusher().push([job("x")])[0].outcome
            told = f"{before} {stored} {len(records)} {'forked' in records[0]}"
        except (TenureError, IndexError, RuntimeError) as error:
            told = repr(error)
        finally:
            os.write(writing, told.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "0 stored 1 True"
    os.waitpid(pid, 0)
    assert asyncio.run(queue.counts("q")).ready == 1


async def test_closing_keeps_the_jobs() -> None:
    queue = MemoryQueue()
    keeper, pusher = queue.keeper(), queue.pusher()
    pusher.push([job("x")])
    (lease,) = await claim(queue)
    for _ in range(2):
        keeper.close()
        pusher.close()
        await queue.aclose()
    assert [one.value for one in keeper.renew([lease])] == ["held"]


@pytest.mark.parametrize("what", ["cancel", "renew", "claim"])
async def test_no_step_grows_with_the_backlog(what: str) -> None:
    """Judged by the calls that Python makes, which depend on nothing but the work."""
    queue = MemoryQueue()
    await queue.push([job(f"first-{number}") for number in range(50)])
    leases = await claim(queue, 20)

    async def calls() -> int:
        count = 0

        def seen(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += event in {"call", "c_call"}

        sys.setprofile(seen)
        try:
            if what == "cancel":
                await queue.cancel("q", [f"first-{number}" for number in range(30, 33)])
            elif what == "renew":
                await queue.renew(leases[:3])
            else:
                await queue.claim(["q"], limit=3, lease=60, wait=0)
            await queue.counts("q")
        finally:
            sys.setprofile(None)
        return count

    short = await calls()
    await queue.push([job(f"j{number}") for number in range(20_000)])
    assert await calls() < short * 2

"""Waiting claims are woken from any thread and any loop, and never miss a wake-up."""

import asyncio
import threading
import time

from tenure.waiting import Waiters


async def woken(waiters: Waiters, *queues: str, seconds: float = 20) -> float:
    """Wait, and return for how long."""
    begin = time.monotonic()
    with waiters.waiting(queues) as waiter:
        await waiter.sleep(seconds)
    return time.monotonic() - begin


async def test_every_waiter_of_a_queue_is_woken_and_no_other() -> None:
    waiters = Waiters()
    tasks = [asyncio.create_task(woken(waiters, *queues)) for queues in (["a"], ["b", "a"], ["c"])]
    await asyncio.sleep(0)
    waiters.wake(["a", "nobody"])
    done, waits = await asyncio.wait(tasks, timeout=1)
    assert (done, waits) == (set(tasks[:2]), {tasks[2]})
    waiters.wake_all()
    assert await tasks[2] < 10
    assert not waiters


async def test_a_sleep_ends_by_itself() -> None:
    assert 0.05 <= await woken(Waiters(), "a", seconds=0.05) < 5


async def test_a_wake_up_between_looking_and_sleeping_is_not_lost() -> None:
    waiters = Waiters()
    with waiters.waiting(["a"]) as waiter:
        waiter.reset()
        thread = threading.Thread(target=waiters.wake, args=(["a"],))
        thread.start()
        thread.join()
        begin = time.monotonic()
        await waiter.sleep(20)
    assert time.monotonic() - begin < 10


async def test_a_waiter_named_for_a_queue_twice_is_forgotten_whole() -> None:
    waiters = Waiters()
    with waiters.waiting(["a", "a"]):
        assert waiters
    assert not waiters


async def test_a_cancelled_waiter_is_forgotten() -> None:
    waiters = Waiters()
    task = asyncio.create_task(woken(waiters, "a"))
    await asyncio.sleep(0)
    assert waiters
    task.cancel()
    await asyncio.wait([task])
    assert not waiters


def test_a_waiter_whose_loop_was_closed_is_woken_without_harm() -> None:
    waiters = Waiters()

    async def entered() -> None:
        context.__enter__()

    context = waiters.waiting(["a"])
    asyncio.run(entered())
    waiters.wake(["a"])
    context.__exit__(None, None, None)
    assert not waiters

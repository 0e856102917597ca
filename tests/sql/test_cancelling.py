"""A cancelled caller leaves nothing half made, and what its claim brought is given back."""

import asyncio
import pathlib
import sqlite3

import pytest

from tenure.drivers.sql import SqliteQueue
from tenure.errors import ConnectionFailed
from tests.sql.conftest import Open
from tests.sql.support import Q, assert_consistent, claim, claim_one, job, numbered, push


async def all_back(queue: SqliteQueue, count: int) -> None:
    """Wait until nothing is leased any more."""
    deadline = asyncio.get_running_loop().time() + 10
    while (counts := await queue.counts(Q)).leased:
        assert asyncio.get_running_loop().time() < deadline
    assert counts.ready == count


async def test_what_a_cancelled_claim_brought_is_given_back_free_of_charge(path: pathlib.Path, opened: Open) -> None:
    queue = opened()
    await push(queue, *numbered(20))
    for moment in range(60):
        task = asyncio.create_task(claim(queue, 10, wait=5))
        for _ in range(moment % 12):
            await asyncio.sleep(0)
        task.cancel()
        given = await asyncio.gather(task, return_exceptions=True)
        if not isinstance(given[0], asyncio.CancelledError):
            assert not isinstance(given[0], BaseException)
            from tenure.queue import Release  # noqa: PLC0415

            await queue.settle([Release(lease, free=True) for lease in given[0]])
        await all_back(queue, 20)
    leases = await claim(queue, 20)
    assert {lease.attempt for lease in leases} == {1}
    assert max(lease.deliveries for lease in leases) > 1
    assert_consistent(path)


async def test_a_claim_cancelled_while_the_file_is_locked_gives_back_what_it_gets_later(
    path: pathlib.Path, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    queue = opened(timeout=20)
    await push(queue, *numbered(3))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    task = asyncio.create_task(claim(queue, 3))
    await asyncio.wait([task], timeout=0.1)
    task.cancel()
    await asyncio.wait([task], timeout=0.1)
    assert not task.done(), "the claim is in flight, and awaited"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    holder.execute("ROLLBACK")
    holder.close()
    await all_back(queue, 3)
    assert (await claim_one(queue)).attempt == 1
    assert caplog.records == []


async def test_a_cancelled_push_is_stored_whole_or_not_at_all(path: pathlib.Path, opened: Open) -> None:
    queue = opened()
    for number in range(30):
        names = [f"p{number}-{one}" for one in range(20)]
        task = asyncio.create_task(queue.push([job(name) for name in names]))
        for _ in range(number % 10):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        states = await queue.states(Q, names)
        assert len(set(states)) == 1
    assert_consistent(path)


async def test_a_call_that_has_not_begun_when_it_is_cancelled_never_happens(path: pathlib.Path, opened: Open) -> None:
    queue = opened(timeout=20)
    await queue.counts(Q)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    first = asyncio.create_task(queue.push([job("first")]))
    await asyncio.wait([first], timeout=0.1)
    second = asyncio.create_task(queue.push([job("second")]))
    third = asyncio.create_task(claim(queue, 5))
    await asyncio.wait([second, third], timeout=0.05)
    second.cancel()
    third.cancel()
    await asyncio.gather(second, third, return_exceptions=True)
    holder.execute("ROLLBACK")
    holder.close()
    await first
    assert [state.value for state in await queue.states(Q, ["first", "second"])] == ["ready", "gone"]


async def test_calls_of_a_driver_that_is_closed_meanwhile_are_finished_or_refused(opened: Open) -> None:
    queue = opened()
    pushes = [asyncio.create_task(queue.push([job(f"j{number}")])) for number in range(50)]
    await asyncio.sleep(0)
    await queue.aclose()
    answers = await asyncio.gather(*pushes, return_exceptions=True)
    stored = [one for one in answers if not isinstance(one, BaseException)]
    assert all(isinstance(one, ConnectionFailed) for one in answers if isinstance(one, BaseException))
    assert (await queue.counts(Q)).ready == len(stored)


async def test_calls_that_wait_together_share_a_commit(path: pathlib.Path, opened: Open) -> None:
    queue = opened()
    await queue.counts(Q)
    log = path.with_name(path.name + "-wal")
    await asyncio.gather(*(queue.push([job(f"j{number}")]) for number in range(200)))
    shared = log.stat().st_size
    assert (await queue.counts(Q)).ready == 200
    for number in range(200):
        await queue.push([job(f"k{number}")])
    alone = log.stat().st_size - shared
    assert shared < alone / 5


async def test_a_call_that_fails_does_not_spoil_those_that_share_its_transaction(
    path: pathlib.Path, opened: Open
) -> None:
    queue = opened()
    await queue.counts(Q)
    answers = await asyncio.gather(
        *(queue.push([job(f"j{number}", priority=1000 if number == 7 else 0)]) for number in range(20)),
        return_exceptions=True,
    )
    assert [number for number, one in enumerate(answers) if isinstance(one, BaseException)] == [7]
    assert (await queue.counts(Q)).ready == 19
    assert_consistent(path)

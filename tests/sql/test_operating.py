"""Listing, pruning, pausing and restarting, as far as they are the file's own matter: steps, bounds, processes."""

import asyncio
import contextlib
import pathlib
import sqlite3

import pytest

from tenure.clock import SystemClock
from tenure.drivers.sql import SqliteQueue
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.drivers.sql.sqlite.transitions import listing, operating, unreadable
from tenure.errors import InvalidOption
from tenure.queue import Fail, Failure, JobState, Release, SetAside
from tests.sql.conftest import Open
from tests.sql.support import ENV, Q, ask, assert_consistent, claim, claim_one, ids, job, numbered, push
from tests.sql.test_clock import Hands
from tests.support import processes

WHY = Failure(reason="exception", type="ValueError")
LISTED = [JobState.READY, JobState.DELAYED, JobState.RUNNING]


async def fail(queue: SqliteQueue, count: int, *, start: int = 0) -> None:
    await push(queue, *numbered(count, start=start))
    while leases := await claim(queue, 500):
        await queue.settle([Fail(lease, WHY) for lease in leases])


async def test_a_listing_costs_what_its_page_costs(path: pathlib.Path, queue: SqliteQueue) -> None:
    """Judged by the steps of SQLite's machine, which depend on nothing but the work."""

    def steps() -> int:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        taken = 0

        def tick() -> int:
            nonlocal taken
            taken += 1
            return 0

        connection.set_progress_handler(tick, 10)
        transaction = Transaction(connection, "test", SystemClock())
        for state in LISTED:
            page = listing.jobs(transaction, Q, state, 10, None)
            assert page.cursor is not None
            assert len(listing.jobs(transaction, Q, state, 10, page.cursor).jobs) == 10
        (first, *_) = unreadable.records(transaction, Q, 10, 0)
        assert len(unreadable.records(transaction, Q, 10, int(first.key))) == 10
        assert operating.prune(transaction, Q, operating.old(transaction, 0)) == 100
        transaction.finish()
        connection.set_progress_handler(None, 1)
        connection.execute("ROLLBACK")
        connection.close()
        return taken

    async def more(count: int, start: int) -> None:
        await push(queue, *numbered(3 * count, start=start))
        leases = await claim(queue, 3 * count)
        await queue.settle(
            [
                *(SetAside(lease, "no") for lease in leases[:count]),
                *(Fail(lease, WHY) for lease in leases[count : 2 * count]),
            ]
        )
        await push(
            queue, *(job(f"d{start + n}", delay=60) for n in range(count)), *numbered(count, start=start + 10**5)
        )

    await more(120, 0)
    short = steps()
    await more(4000, 10_000)
    assert steps() < short * 1.5


@pytest.mark.parametrize("state", LISTED)
async def test_a_cursor_reads_on_in_its_own_listing_alone(queue: SqliteQueue, state: JobState) -> None:
    await push(queue, *numbered(9), *(job(f"d{n}", delay=60) for n in range(3)))
    await claim(queue, 3)
    page = await queue.jobs(Q, state, limit=2)
    assert page.cursor is not None
    assert len((await queue.jobs(Q, state, cursor=page.cursor)).jobs) == (4 if state is JobState.READY else 1)
    for other in set(LISTED) - {state}:
        with pytest.raises(InvalidOption, match="no cursor of this listing"):
            await queue.jobs(Q, other, cursor=page.cursor)
    for changed in (page.cursor[:-2], page.cursor + "00", page.cursor.replace("0", "g"), f" {page.cursor}"):
        with pytest.raises(InvalidOption, match="no cursor of this listing"):
            await queue.jobs(Q, state, cursor=changed)


async def test_a_page_holds_a_thousand_jobs_at_most_and_the_cursor_reads_on(queue: SqliteQueue) -> None:
    await push(queue, *numbered(1001))
    page = await queue.jobs(Q, JobState.READY, limit=10**30)
    assert (len(page.jobs), page.jobs[-1].id) == (1000, "j000999")
    rest = await queue.jobs(Q, JobState.READY, cursor=page.cursor)
    assert ([one.id for one in rest.jobs], rest.cursor) == (["j001000"], None)


async def test_what_a_clear_put_out_of_reach_is_not_listed(path: pathlib.Path, queue: SqliteQueue) -> None:
    await push(queue, *numbered(300), job("later", delay=60))
    await queue.clear(Q)
    assert ask(path, "SELECT count(*) FROM tenure_jobs") == [(301,)]
    for state in LISTED:
        assert list((await queue.jobs(Q, state)).jobs) == []


async def test_the_key_of_another_queue_s_record_drops_nothing(path: pathlib.Path, queue: SqliteQueue) -> None:
    for name in ("one", "two"):
        await push(queue, job("x", queue=name))
        await queue.settle([SetAside(await claim_one(queue, queues=[name]), "no")])
    (record,) = await queue.unreadable("one")
    assert list(await queue.drop_unreadable("two", [record.key])) == [False]
    assert [(await queue.counts(name)).unreadable for name in ("one", "two")] == [1, 1]
    assert_consistent(path)


async def test_a_delayed_job_that_is_overdue_has_no_time_left(opened: Open) -> None:
    clock = Hands()
    queue = opened(clock=clock)
    await push(queue, job("x", delay=10))
    clock.pass_(15)
    (summary,) = (await queue.jobs(Q, JobState.DELAYED)).jobs
    assert summary.seconds == pytest.approx(-5, abs=0.01)


async def test_an_old_failure_is_one_by_the_store_s_clock_to_the_second(opened: Open) -> None:
    clock = Hands()
    queue = opened(clock=clock)
    for number in range(5):
        await fail(queue, 1, start=number)
        clock.pass_(10)
    assert await queue.prune(Q, older_than=50.5) == 0
    assert await queue.prune(Q, older_than=30) == 3
    assert [record.id for record in await queue.failed(Q)] == ["j000003", "j000004"]


async def test_a_job_that_fails_while_a_prune_runs_stays_though_the_clock_goes_back(
    path: pathlib.Path, opened: Open
) -> None:
    clock = Hands()
    queue = opened(clock=clock)
    await fail(queue, 250)
    await push(queue, *numbered(50, start=1000))
    leases = await claim(queue, 50)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        old = operating.old(Transaction(connection, "test", clock), 0)
        clock.wall -= 3600
        await queue.settle([Fail(lease, WHY) for lease in leases])
        removed = []
        for _ in range(4):
            transaction = Transaction(connection, "test", clock)
            removed.append(operating.prune(transaction, Q, old))
            transaction.finish()
    assert removed == [100, 100, 50, 0]
    assert len(await queue.failed(Q)) == 50
    assert_consistent(path)


async def test_a_prune_lets_others_write_between_its_steps(path: pathlib.Path, opened: Open) -> None:
    queue, other = opened(), opened()
    await fail(queue, 1500)
    pruning = asyncio.create_task(queue.prune(Q, older_than=0))
    pushed = 0
    while not pruning.done():
        await push(other, job(f"meanwhile-{pushed}"))
        pushed += 1
    assert await pruning == 1500
    assert pushed >= 3
    assert ask(path, "SELECT count(*) FROM tenure_failures") == [(0,)]
    assert_consistent(path)


async def test_a_pause_and_a_marker_reach_another_process(path: pathlib.Path, queue: SqliteQueue) -> None:
    await push(queue, job("x"))
    code = f"""
import asyncio, sys
from tenure.drivers.sql import SqliteQueue
async def main():
    queue = SqliteQueue({str(path)!r}, namespace="test")
    before = await queue.restart_marker()
    print("before", before, await queue.paused(["q"]), flush=True)
    claimed = await queue.claim(["q"], limit=1, lease=60, wait=30)
    print("claimed", *[lease.id for lease in claimed.leases], flush=True)
    print("after", await queue.restart_marker(), await queue.paused(["q"]), flush=True)
    await queue.aclose()
asyncio.run(main())
"""
    await queue.pause(Q)
    first = await queue.request_restart()
    with processes.python("-c", code, env=ENV) as child:
        child.wait_for_output(f"before {first} [True]\n", 20)
        assert await claim(queue) == []
        second = await queue.request_restart()
        await queue.resume(Q)
        assert child.wait(20) == 0, child.output
        assert child.output.splitlines()[1:] == ["claimed x", f"after {second} [False]"]


async def test_a_paused_queue_costs_a_waiting_claim_no_writes(path: pathlib.Path, queue: SqliteQueue) -> None:
    await push(queue, job("x"), job("suspect", crash_limit=2, priority=1))
    await queue.settle([Release(await claim_one(queue), crashed=True)])
    await claim(queue, 1, suspects=False)
    await queue.settle([Release(await claim_one(queue))])
    await queue.pause(Q)
    log = path.with_name(path.name + "-wal")
    before = log.stat()
    for _ in range(20):
        assert await claim(queue, 5) == []
    assert await claim(queue, wait=0.1) == []
    after = log.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


async def test_claims_of_a_paused_queue_do_not_wake_each_other(opened: Open) -> None:
    queue = opened()
    await push(queue, *numbered(5), *(job(f"d{n}", delay=0.05) for n in range(5)))
    await queue.pause(Q)
    looks = await asyncio.gather(*(claim(queue, wait=0.4) for _ in range(3)))
    assert looks == [[], [], []]
    assert (await queue.counts(Q)).ready == 10


async def test_a_paused_queue_outlives_the_drivers_that_paused_it(opened: Open) -> None:
    queue = opened()
    await queue.pause(Q)
    marker = await queue.request_restart()
    await queue.aclose()
    other = opened()
    await push(other, job("x"))
    assert await claim(other) == []
    assert await other.restart_marker() == marker
    await other.resume(Q)
    assert ids(await claim(other)) == ["x"]

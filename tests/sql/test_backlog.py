"""No step's time grows with the backlog: clears and sweeps are bounded, counts come from counters."""

import pathlib
import sqlite3

import pytest

from tenure.clock import SystemClock
from tenure.drivers.sql import SqliteQueue
from tenure.drivers.sql.claims import Claim
from tenure.drivers.sql.sqlite.transaction import Transaction
from tenure.drivers.sql.sqlite.transitions import claiming, reading
from tenure.queue import Ack, Cancelled, JobState, Release
from tests.sql.conftest import Open
from tests.sql.support import Q, ask, assert_consistent, claim, claim_one, ids, job, numbered, push


def rows(path: pathlib.Path) -> int:
    return int(ask(path, "SELECT count(*) FROM tenure_jobs")[0][0])


async def test_a_clear_leaves_the_rows_to_later_calls_a_hundred_at_a_time(
    path: pathlib.Path, queue: SqliteQueue
) -> None:
    await push(queue, *numbered(250), job("later", delay=60))
    held = await claim_one(queue)
    assert await queue.clear(Q) == 250
    assert rows(path) == 251
    assert (await queue.counts(Q)).size == 0
    await push(queue, job("new"))
    assert rows(path) == 152
    assert ids(await claim(queue, 5)) == ["new"]
    assert rows(path) == 52
    assert await claim(queue, 5) == []
    assert rows(path) == 2
    assert ask(path, "SELECT count(*) FROM tenure_cleared") == [(0,)]
    await queue.settle([Ack(held)])
    assert_consistent(path)


async def test_what_was_cleared_is_gone_before_its_rows_are(queue: SqliteQueue) -> None:
    await push(queue, *numbered(300), job("later", delay=60))
    await queue.clear(Q)
    assert list(await queue.states(Q, ["j000299", "later"])) == [JobState.GONE, JobState.GONE]
    assert list(await queue.cancel(Q, ["j000299", "later"])) == [Cancelled.NOT_FOUND, Cancelled.NOT_FOUND]
    assert await queue.clear(Q) == 0


async def test_the_id_of_a_cleared_job_makes_a_new_one(path: pathlib.Path, queue: SqliteQueue) -> None:
    await push(queue, *numbered(300), job("x", b"old", priority=5, crash_limit=2))
    await queue.clear(Q)
    await push(queue, job("x", b"new"))
    assert [one.outcome for one in await queue.push([job("x", b"third")])] == ["held"]
    lease = await claim_one(queue)
    assert (lease.id, lease.envelope, lease.deliveries) == ("x", b"new", 1)
    await queue.settle([Ack(lease)])
    for _ in range(4):
        assert await claim(queue) == []
    assert rows(path) == 0
    assert_consistent(path)


async def test_several_clears_are_swept_one_after_the_other(path: pathlib.Path, queue: SqliteQueue) -> None:
    for number in range(3):
        await push(queue, *numbered(120, start=1000 * number))
        assert await queue.clear(Q) == 120
    for _ in range(8):
        await claim(queue)
    assert rows(path) == 0
    assert ask(path, "SELECT count(*) FROM tenure_cleared") == [(0,)]


async def test_a_release_after_a_clear_waits_in_the_new_line(path: pathlib.Path, opened: Open) -> None:
    queue, other = opened(), opened()
    await push(queue, *numbered(3))
    lease = await claim_one(queue)
    assert await other.clear(Q) == 2
    await queue.settle([Release(lease)])
    assert ids(await claim(other, 5)) == ["j000000"]
    assert_consistent(path)


@pytest.mark.parametrize("priority", [0, 50])
async def test_counts_and_claims_cost_the_same_for_a_long_line(
    path: pathlib.Path, queue: SqliteQueue, priority: int
) -> None:
    """Judged by the steps of SQLite's machine, which depend on nothing but the work."""
    claim_of = Claim(queues=[Q], limit=10, length=60, crash_limit=3, suspects=True, holder=None, sent=0)

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
        reading.counts(transaction, Q)
        assert claiming.glance(transaction, claim_of) is None
        assert len(claiming.claim(transaction, claim_of).claimed.leases) == 10
        reading.failed(transaction, Q, 10, 0)
        transaction.finish()
        connection.set_progress_handler(None, 1)
        connection.execute("ROLLBACK")
        connection.close()
        return taken

    await push(queue, *(job(f"first-{n}", priority=priority) for n in range(20)))
    short = steps()
    await push(queue, *numbered(20_000))
    assert steps() < short * 1.5

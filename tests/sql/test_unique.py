"""Unique jobs in a SQLite file, beyond what every store does."""

import pathlib
import sqlite3

from tenure.drivers.sql import SqliteQueue
from tenure.queue import Ack, Fail, Failure
from tests.sql.conftest import Open
from tests.sql.support import Q, ask, assert_consistent, claim, claim_one, job

A, B = "a" * 32, "b" * 32


async def told(queue: SqliteQueue, *jobs: tuple[str, str]) -> list[tuple[str, str]]:
    return [(one.id, one.outcome) for one in await queue.push([job(name, unique=text) for name, text in jobs])]


async def test_one_waits_or_runs_at_a_time(path: pathlib.Path, queue: SqliteQueue) -> None:
    assert await told(queue, ("1", A), ("2", A), ("3", B), ("1", B)) == [
        ("1", "stored"), ("1", "held"), ("3", "stored"), ("1", "held"),
    ]  # fmt: skip
    first, second = await claim(queue, 2)
    assert await told(queue, ("4", A)) == [("1", "held")]
    await queue.settle([Ack(first), Fail(second, Failure(reason="exception"))])
    assert await told(queue, ("4", A), ("5", B), ("3", A)) == [("4", "stored"), ("5", "stored"), ("3", "held")]
    (failed,) = await queue.failed(Q)
    assert await queue.retry([failed]) == [False]
    await queue.settle([Ack(lease) for lease in await claim(queue, 2)])
    assert await queue.retry([failed]) == [True]
    assert await told(queue, ("6", B)) == [("3", "held")]
    assert_consistent(path)


async def test_what_was_cleared_keeps_nothing_away(path: pathlib.Path, queue: SqliteQueue) -> None:
    await told(queue, *((f"x{n}", f"{n:032x}") for n in range(300)))
    assert await queue.clear(Q) == 300
    # The same ids under other texts, and other ids under the same texts.
    assert await told(queue, *((f"x{n}", f"{299 - n:032x}") for n in range(300))) == [
        (f"x{n}", "stored") for n in range(300)
    ]
    assert len(await claim(queue, 400)) == 300
    assert_consistent(path)


async def test_of_several_drivers_on_a_file_one_stores(opened: Open) -> None:
    assert await told(opened(), ("1", A)) == [("1", "stored")]
    assert await told(opened(), ("2", A)) == [("1", "held")]
    await opened().settle([Ack(await claim_one(opened()))])
    assert await told(opened(), ("2", A)) == [("2", "stored")]


async def test_a_plain_job_is_in_no_index_of_texts(path: pathlib.Path, queue: SqliteQueue) -> None:
    await told(queue, *((f"{n}", "") for n in range(1000)))
    (pages,) = ask(path, "SELECT count(*) FROM tenure_jobs WHERE locked IS NOT NULL")
    assert pages == (0,)
    with sqlite3.connect(path) as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT 1 FROM tenure_jobs WHERE queue = 1 AND locked = 'a'")
        assert "tenure_jobs_by_lock (queue=? AND locked=?)" in plan.fetchone()[3]

"""Compositions in a SQLite file, beyond what every store does: what is left of them, and how little at a time."""

import pathlib
import sqlite3

from tenure.compositions import START, Gate, JobNode, Kind, NewComposition
from tenure.drivers.sql import SqliteQueue
from tenure.queue import Ack
from tests.sql.conftest import Open
from tests.sql.support import Q, ask, assert_consistent, claim, job, push


def nodes(count: int, of: str = "c") -> list[Gate | JobNode]:
    return [
        Gate(number=START, next=tuple(range(min(count, 100)))),
        *(JobNode(number=number, push=job(f"{of}.{number}")) for number in range(count)),
    ]


async def test_one_that_never_started_is_forgotten_a_hundred_nodes_a_claim(
    path: pathlib.Path, queue: SqliteQueue
) -> None:
    assert await queue.prepare(NewComposition(id="c", home=Q, kind=Kind.BATCH))
    await queue.add(Q, "c", nodes(250))
    assert await claim(queue) == []
    assert ask(path, "SELECT count(*) FROM tenure_nodes") == [(251,)]
    with sqlite3.connect(path) as connection:  # a day has passed
        connection.execute("UPDATE tenure_compositions SET created = created - 86400000001, todo = todo - 86400000001")
    left = []
    for _ in range(3):
        assert await claim(queue) == []
        left += ask(path, "SELECT (SELECT count(*) FROM tenure_nodes), (SELECT count(*) FROM tenure_compositions)")
    assert left == [(151, 1), (51, 1), (0, 0)]
    assert await queue.prepare(NewComposition(id="c", home=Q, kind=Kind.BATCH))


async def test_nothing_is_left_of_one_whose_time_is_over(path: pathlib.Path, queue: SqliteQueue) -> None:
    assert await queue.prepare(NewComposition(id="c", home=Q, kind=Kind.BATCH, retention=0.0))
    await queue.add(Q, "c", nodes(3))
    await queue.start(Q, "c")
    await queue.settle([Ack(lease) for lease in await claim(queue, 3)])
    assert await queue.composition(Q, "c") is None
    await claim(queue)
    assert ask(path, "SELECT (SELECT count(*) FROM tenure_nodes), (SELECT count(*) FROM tenure_compositions)") == [
        (0, 0)
    ]
    assert_consistent(path)


async def test_a_member_whose_id_another_job_has_ends_cancelled(path: pathlib.Path, queue: SqliteQueue) -> None:
    await push(queue, job("c.1"))
    assert await queue.prepare(NewComposition(id="c", home=Q, kind=Kind.BATCH))
    await queue.add(Q, "c", nodes(3))
    await queue.start(Q, "c")
    status = await queue.composition(Q, "c")
    assert status is not None
    assert (status.total, status.cancelled, status.pending) == (3, 1, 2)
    await queue.settle([Ack(lease) for lease in await claim(queue, 10)])
    status = await queue.composition(Q, "c")
    assert status is not None
    assert (status.succeeded, status.cancelled) == (2, 1)
    assert_consistent(path)


async def test_a_plain_job_writes_nothing_of_compositions(path: pathlib.Path, opened: Open) -> None:
    queue = opened()
    await push(queue, *(job(f"j{number}") for number in range(10)))
    await queue.settle([Ack(lease) for lease in await claim(queue, 5)])
    rows = ask(path, "SELECT unique_key, locked, composition, node, tells, flags, input FROM tenure_jobs")
    assert set(rows) == {(None, None, None, None, None, 0, None)}

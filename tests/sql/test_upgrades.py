"""A file of an older schema is brought up to date in place, whole or not at all."""

import asyncio
import contextlib
import pathlib
import sqlite3

import pytest

from tenure.compositions import START, Gate, JobNode, Kind, NewComposition
from tenure.drivers.sql import SqliteQueue
from tenure.drivers.sql.sqlite import schema
from tenure.errors import StoreError
from tenure.queue import Ack, JobState, SetAside
from tenure.results import Progress, ProgressReport
from tests.sql.conftest import Open
from tests.sql.support import ENV, Q, ask, assert_consistent, claim, claim_one, ids, job, push
from tests.support import processes

FIRST = pathlib.Path(__file__).with_name("schema_1.sql")

# One queue with a ready job of priority 5 and a plain one, a delayed one until the year 2100, a lapsed lease, a failed
# job and an unreadable record; and a line that was cleared and holds one row still. It is what version 1 wrote.
CONTENT = """
UPDATE tenure_sequence SET value = 100;
INSERT INTO tenure_queues (number, namespace, name, line, fence, ready, delayed, leased, failed, unreadable)
VALUES (1, 'test', 'q', 20, 1000, 2, 1, 1, 1, 1);
INSERT INTO tenure_cleared VALUES (1, 2);
INSERT INTO tenure_jobs (incarnation, queue, id, shelf, state, rank, entry, since, priority, deliveries, crashes, token,
                         length, envelope)
VALUES (30, 1, 'plain', 20, 0, 0, 30, 1700000000000000, 0, 0, 0, NULL, NULL, x'7b7d'),
       (31, 1, 'first', 20, 0, -5, 31, 1700000000000000, 5, 0, 0, NULL, NULL, x'7b7d'),
       (32, 1, 'later', 20, 2, 4102444800000000, 32, 1700000000000000, 0, 0, 0, NULL, NULL, x'7b7d'),
       (33, 1, 'lapsed', 1, 3, 1700000001000000, 33, 1700000000000000, 0, 1, 0, 'token', 1000000, x'7b7d'),
       (34, 1, 'failed', 1, 4, 1700000002000000, 50, 1700000000000000, 0, 2, 0, NULL, NULL, x'00ff'),
       (9, 1, 'cleared', 2, 0, 0, 9, 1700000000000000, 0, 0, 0, NULL, NULL, x'7b7d');
INSERT INTO tenure_failures VALUES (34, 'exception', 'ValueError', 'no', 'Traceback');
INSERT INTO tenure_unreadable (queue, id, incarnation, set_aside, reason, envelope)
VALUES (1, 'broken', 35, 1700000003000000, 'not an envelope', x'ff00fe');
"""

ADDED = ("keep", "unique_key", "locked", "composition", "node", "tells", "flags", "input")
"""The columns of ``tenure_jobs`` that the first version did not have."""


@pytest.fixture
def path(path: pathlib.Path) -> pathlib.Path:
    connection = sqlite3.connect(path)
    connection.executescript(FIRST.read_text())
    connection.executescript(CONTENT)
    connection.close()
    return path


def tables(path: pathlib.Path) -> list[object]:
    return ask(path, "SELECT type, name, sql FROM sqlite_master ORDER BY name")


async def test_all_that_an_old_file_holds_is_there_after_the_upgrade(path: pathlib.Path, queue: SqliteQueue) -> None:
    counts = await queue.counts(Q)
    assert (counts.ready, counts.delayed, counts.leased, counts.lapsed) == (2, 1, 1, 1)
    assert (counts.failed, counts.unreadable) == (1, 1)
    assert ask(path, "PRAGMA user_version") == [(schema.VERSION,)]
    assert_consistent(path)
    (failed,) = await queue.failed(Q)
    assert (failed.id, failed.attempts, failed.failed_at, failed.envelope) == ("failed", 2, 1_700_000_002, b"\x00\xff")
    (record,) = await queue.unreadable(Q)
    assert (record.id, record.reason, record.set_aside_at) == ("broken", "not an envelope", 1_700_000_003)
    assert await queue.unreadable_bytes(Q, record.key) == b"\xff\x00\xfe"
    assert ids(await claim(queue, 10)) == ["first", "plain", "lapsed"]
    assert list(await queue.states(Q, ["cleared", "later"])) == [JobState.GONE, JobState.DELAYED]


async def test_an_upgraded_file_is_operated_like_a_new_one(path: pathlib.Path, opened: Open) -> None:
    queue = opened()
    assert list(await queue.paused([Q])) == [False]
    assert await queue.restart_marker() is None
    assert await queue.pause(Q)
    assert await claim(opened(), 10) == []
    assert await opened().resume(Q)
    assert [one.id for one in (await queue.jobs(Q, JobState.READY)).jobs] == ["first", "plain", "lapsed"]
    assert await queue.prune(Q, older_than=3600) == 1
    marker = await queue.request_restart()
    assert await opened().restart_marker() == marker
    assert_consistent(path)


async def test_a_file_of_the_second_version_keeps_ends_after_the_upgrade(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "second.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST.read_text())
    for statement in schema.SECOND:
        connection.execute(statement)
    connection.executescript(CONTENT)
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    queue = SqliteQueue(path, namespace="test")
    assert list(await queue.states(Q, ["plain", "failed", "lapsed"])) == [
        JobState.READY, JobState.FAILED, JobState.RUNNING,
    ]  # fmt: skip
    leases = {lease.id: lease for lease in await claim(queue, 10)}
    assert {lease.keep for lease in leases.values()} == {0.0}
    await queue.settle([Ack(lease, b"1") for lease in leases.values()])
    await push(queue, job("plain", keep=60.0))
    lease = await claim_one(queue)
    assert await queue.report([ProgressReport(lease, Progress(0.5, "half"))]) == [True]
    assert await queue.progress(Q, ["plain"]) == [Progress(0.5, "half")]
    await queue.settle([Ack(lease, b"2")])
    assert [end and end.result for end in await queue.endings(Q, ["plain", "first"])] == [b"2", None]
    await queue.aclose()
    assert_consistent(path)


async def test_a_file_of_the_fourth_version_takes_unique_jobs_and_compositions_after_the_upgrade(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "fourth.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST.read_text())
    for statement in (*schema.SECOND, *schema.THIRD, *schema.FOURTH):
        connection.execute(statement)
    connection.executescript(CONTENT)
    connection.execute("PRAGMA user_version = 4")
    connection.commit()
    connection.close()
    queue = SqliteQueue(path, namespace="test")
    leases = await claim(queue, 10)
    assert ids(leases) == ["first", "plain", "lapsed"]
    assert {(lease.composition, lease.input, lease.gives) for lease in leases} == {("", None, False)}
    await queue.settle(list(map(Ack, leases)))
    (failed,) = await queue.failed(Q)
    assert await queue.retry([failed]) == [True]
    await push(queue, job("one", unique="u" * 32))
    assert [(one.id, one.outcome) for one in await queue.push([job("two", unique="u" * 32)])] == [("one", "held")]
    assert await queue.prepare(NewComposition(id="c", home=Q, kind=Kind.CHAIN))
    await queue.add(Q, "c", [Gate(number=START, next=(0,)), JobNode(number=0, push=job("c.0"))])
    await queue.start(Q, "c")
    await queue.settle([Ack(lease) for lease in await claim(queue, 10)])
    status = await queue.composition(Q, "c")
    await queue.aclose()
    assert status is not None
    assert (status.total, status.succeeded) == (1, 1)
    assert_consistent(path)


async def test_a_record_set_aside_after_an_upgrade_comes_behind_the_old_ones(
    path: pathlib.Path, queue: SqliteQueue
) -> None:
    await queue.settle([SetAside(await claim_one(queue), "new")])
    assert [record.id for record in await queue.unreadable(Q)] == ["broken", "first"]
    assert_consistent(path)


async def test_an_upgraded_file_has_the_tables_of_a_new_one(
    path: pathlib.Path, queue: SqliteQueue, tmp_path: pathlib.Path
) -> None:
    await queue.counts(Q)
    new = SqliteQueue(tmp_path / "new.sqlite", namespace="test")
    await new.counts(Q)
    await new.aclose()

    def plain(file: pathlib.Path) -> list[object]:
        return [" ".join(str(column) for column in row).split() for row in tables(file)]  # type: ignore[attr-defined]

    assert plain(path) == plain(tmp_path / "new.sqlite")


async def test_the_first_version_is_still_the_text_that_made_old_files(path: pathlib.Path) -> None:
    connection = sqlite3.connect(":memory:")
    for statement in schema.FIRST:
        connection.execute(statement)
    made = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    connection.close()
    old = ask(path, "SELECT name, sql FROM sqlite_master ORDER BY name")
    assert [(name, (sql or "").split()) for name, sql in made] == [(name, (sql or "").split()) for name, sql in old]


async def test_an_upgrade_that_fails_leaves_the_file_as_it_was(path: pathlib.Path, opened: Open) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE tenure_settings (theirs)")
    connection.commit()
    connection.close()
    before = tables(path)
    with pytest.raises(StoreError, match="nothing was written"):
        await opened().counts(Q)
    assert tables(path) == before
    assert ask(path, "PRAGMA user_version") == [(1,)]
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE tenure_settings")
    connection.commit()
    connection.close()
    assert (await opened().counts(Q)).ready == 2


async def test_a_file_of_another_program_with_the_number_of_an_old_version_is_refused_unchanged(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "theirs.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()
    queue = SqliteQueue(path, namespace="test")
    with pytest.raises(StoreError, match="belongs to another program"):
        await queue.push([job("x")])
    await queue.aclose()
    assert ask(path, "SELECT name FROM sqlite_master") == [("theirs",)]
    assert ask(path, "PRAGMA user_version") == [(1,)]


async def test_drivers_that_open_an_old_file_at_once_upgrade_it_once(path: pathlib.Path, opened: Open) -> None:
    await asyncio.gather(*(push(opened(), job(f"new-{number}")) for number in range(6)))
    assert (await opened().counts(Q)).ready == 8
    assert_consistent(path)


async def test_processes_that_open_an_old_file_at_once_upgrade_it_once(path: pathlib.Path) -> None:
    code = f"""
import asyncio, sys
from tenure.drivers.sql import SqliteQueue
from tenure.queue import Push
async def main():
    queue = SqliteQueue({str(path)!r}, namespace="test")
    await queue.push([Push(queue="q", id="of-" + sys.argv[1], envelope=b"")])
    print(len((await queue.claim(["q"], limit=1, lease=60, wait=0)).leases), flush=True)
    await queue.aclose()
asyncio.run(main())
"""
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(processes.python("-c", code, str(n), env=ENV)) for n in range(4)]
        for child in children:
            assert child.wait(30) == 0, child.output
            assert child.output.split() == ["1"]
    assert ask(path, "PRAGMA user_version") == [(schema.VERSION,)]
    assert_consistent(path)


async def test_a_lease_of_an_old_file_is_still_settled(path: pathlib.Path, opened: Open) -> None:
    queue = opened()
    lease = await claim_one(queue)
    await queue.aclose()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        # What the older tenure would have left, had it claimed the job itself.
        connection.executescript(
            "DROP TABLE tenure_paused; DROP TABLE tenure_settings; DROP TABLE tenure_endings; "
            "DROP TABLE tenure_progress; DROP TABLE tenure_outbox; DROP TABLE tenure_outbox_relay; "
            "DROP TABLE tenure_clients; DROP TABLE tenure_schedules; "
            "DROP TABLE tenure_compositions; DROP TABLE tenure_nodes; DROP INDEX tenure_jobs_by_lock; "
            + "".join(f"ALTER TABLE tenure_jobs DROP COLUMN {column}; " for column in ADDED)
            + "PRAGMA user_version = 1;"
        )
    assert [one.value for one in await opened().settle([Ack(lease)])] == ["done"]
    assert_consistent(path)

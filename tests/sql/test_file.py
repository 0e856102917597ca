"""The file: how it comes to be, and which files are refused."""
# ruff: noqa: ASYNC240 - looking at the file is the test

import pathlib
import sqlite3
import stat

import pytest

from tenure.drivers.sql import SqliteQueue
from tenure.drivers.sql.sqlite import schema
from tenure.errors import ConnectionFailed, InvalidOption, StoreError
from tests.sql.conftest import Open
from tests.sql.support import Q, ask, assert_consistent, claim, ids, job, push


async def test_nothing_is_opened_before_first_use(path: pathlib.Path, queue: SqliteQueue) -> None:
    keeper, pusher = queue.keeper(), queue.pusher()
    keeper.close()
    pusher.close()
    await queue.aclose()
    assert not path.exists()


async def test_the_first_use_makes_the_file_and_its_directory_for_the_owner_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "new" / "deeper" / "jobs.sqlite"
    queue = SqliteQueue(path, namespace="test")
    await push(queue, job("x"))
    for file in (path, path.with_name("jobs.sqlite-wal"), path.with_name("jobs.sqlite-shm")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await queue.aclose()


async def test_the_permissions_of_an_existing_file_are_left_alone(path: pathlib.Path, queue: SqliteQueue) -> None:
    path.touch(mode=0o640)
    path.chmod(0o640)
    await push(queue, job("x"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_the_file_says_which_schema_it_has(path: pathlib.Path, queue: SqliteQueue) -> None:
    await queue.counts(Q)
    assert ask(path, "PRAGMA user_version") == [(schema.VERSION,)]
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]


async def test_a_file_of_a_newer_schema_is_refused_unchanged(path: pathlib.Path, opened: Open) -> None:
    await push(opened(), job("x"))
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError, match=rf"schema version {schema.VERSION + 1}.*newer tenure.*nothing was written"):
        await opened().push([job("y")])
    assert ask(path, "SELECT id FROM tenure_jobs") == [("x",)]


async def test_a_file_of_another_program_is_refused_unchanged(path: pathlib.Path, queue: SqliteQueue) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 17")
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="belongs to another program"):
        await queue.push([job("x")])
    assert ask(path, "SELECT name FROM sqlite_master") == [("theirs",)]


async def test_the_tables_live_beside_those_of_an_application(path: pathlib.Path, queue: SqliteQueue) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (a)")
    connection.commit()
    connection.close()
    await push(queue, job("x"))
    assert {"orders", "tenure_jobs"} <= {row[0] for row in ask(path, "SELECT name FROM sqlite_master")}


async def test_a_file_that_is_no_database_is_refused(path: pathlib.Path, queue: SqliteQueue) -> None:
    path.write_bytes(b"this is a letter, not a database\n" * 100)
    with pytest.raises(StoreError, match="damaged or no database"):
        await queue.push([job("x")])
    assert path.read_bytes().startswith(b"this is a letter")


async def test_a_damaged_file_is_reported_as_such(path: pathlib.Path, opened: Open) -> None:
    first = opened()
    await push(first, *(job(f"j{n}", b"x" * 500) for n in range(200)))
    await first.aclose()
    content = bytearray(path.read_bytes())
    content[4096:-4096] = b"\x5a" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged or no database|SQLite failed") as caught:
        await opened().push([job("x", b"secret payload")])
    assert "secret" not in str(caught.value)


async def test_a_path_that_cannot_be_opened_is_a_failed_connection(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    for path in (tmp_path / "file" / "jobs.sqlite", tmp_path / "directory"):
        queue = SqliteQueue(path, namespace="test")
        with pytest.raises(ConnectionFailed, match=r"cannot be opened .*nothing was sent"):
            await queue.push([job("x")])
        with pytest.raises(ConnectionFailed):
            queue.pusher().push([job("x")])
        await queue.aclose()


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_store_that_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(InvalidOption, match="memory"):
        SqliteQueue(path, namespace="test")


async def test_a_relative_path_is_that_of_the_moment_it_was_given(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    queue = SqliteQueue("jobs.sqlite", namespace="test")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    await push(queue, job("x"))
    await queue.aclose()
    assert (tmp_path / "jobs.sqlite").exists()


async def test_a_file_that_was_removed_is_made_anew_instead_of_written_to_unseen(
    path: pathlib.Path, opened: Open
) -> None:
    queue = opened()
    await push(queue, job("before"))
    for file in path.parent.iterdir():
        file.unlink()
    await push(queue, job("after"))
    assert ids(await claim(opened(), 5)) == ["after"]
    assert_consistent(path)


async def test_a_directory_that_was_removed_is_not_made_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "gone" / "jobs.sqlite"
    queue = SqliteQueue(path, namespace="test")
    await push(queue, job("x"))
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()
    with pytest.raises(ConnectionFailed):
        await queue.push([job("y")])
    assert not path.parent.exists()
    await queue.aclose()


async def test_a_closed_driver_opens_the_file_again_when_it_is_used(queue: SqliteQueue) -> None:
    await push(queue, job("x"))
    await queue.aclose()
    await queue.aclose()
    assert ids(await claim(queue)) == ["x"]


async def test_closing_the_last_connection_leaves_one_file(path: pathlib.Path, queue: SqliteQueue) -> None:
    await push(queue, job("x"))
    pusher = queue.pusher()
    pusher.push([job("y")])
    pusher.close()
    pusher.close()
    await queue.aclose()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_namespaces_share_a_file_and_nothing_else(path: pathlib.Path, queue: SqliteQueue) -> None:
    other = SqliteQueue(path, namespace="other")
    await push(queue, job("x"))
    await push(other, job("x"))
    assert await queue.clear(Q) == 1
    assert list(await other.queues()) == [Q]
    assert ids(await claim(other)) == ["x"]
    await other.aclose()


async def test_an_old_sqlite_is_refused_by_its_version(queue: SqliteQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(Exception, match=r"too old; tenure needs 3\.37"):
        await queue.counts(Q)


async def test_what_is_acknowledged_is_on_the_disk(queue: SqliteQueue) -> None:
    assert queue.capabilities.durability == {1, 2}


async def test_a_forged_row_is_refused_by_the_file_itself(path: pathlib.Path, queue: SqliteQueue) -> None:
    await push(queue, job("x"))
    connection = sqlite3.connect(path)
    for forgery in (
        "deliveries = -1",
        "crashes = 1",
        "state = 7",
        "priority = 101",
        "state = 3",
        "token = 'forged'",
        "incarnation = 'x'",
        "envelope = 'text'",
        "crash_limit = 1.5",
        "id = NULL",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"UPDATE tenure_jobs SET {forgery}")
    connection.close()
    assert ids(await claim(queue)) == ["x"]

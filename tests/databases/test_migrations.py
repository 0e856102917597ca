"""The tables of a database server come from migrations, and are those that the driver and its models know."""

import contextlib
import functools
import os
import pathlib
import re
import sys
from collections.abc import Iterator

import pytest

from tenure import databases
from tenure.drivers.sql.migrations import Migrations
from tenure.drivers.sql.server.tables import create_tables
from tenure.errors import ConnectionFailed, InvalidOption, StoreError, StoreRefused
from tenure.testing.contract.steps import job, pushed_and_claimed
from tests.databases.migrating import Make, Tables, known, tables_of, versions
from tests.databases.support import Place
from tests.support import processes

NEWEST = known()[-1].stem[1:]


@pytest.fixture
def named(place: Place) -> Make:
    """Makes names for tables of the test's own."""
    return functools.partial(tables_of, place)


@pytest.fixture
def tables(named: Make) -> Tables:
    return named("own")


def test_every_version_and_none_become_what_the_models_say(named: Make, tmp_path: pathlib.Path) -> None:
    models = named("models")
    create_tables(models.place.database.engine(), models.names)
    for count in range(len(known())):
        old = named(f"from{count}")
        if count:
            old.migrations(versions(tmp_path / str(count), known()[:count])).upgrade()
            assert old.migrations().standing().found == f"{count:03}"
        old.migrations().upgrade()
        assert old.described() == models.described()
        assert len(old.described()) >= 11


def test_the_versions_are_numbered_without_a_gap(tables: Tables) -> None:
    assert [file.stem for file in known()] == [f"v{number:03}" for number in range(1, len(known()) + 1)]
    assert tables.migrations().standing() == (None, NEWEST, [file.stem[1:] for file in known()])


def test_a_second_run_does_nothing_and_says_so(tables: Tables) -> None:
    reached: list[str] = []
    tables.migrations().upgrade(reached.append)
    assert reached == [file.stem[1:] for file in known()]
    before = tables.described()
    tables.migrations().upgrade(reached.append)
    assert reached == [file.stem[1:] for file in known()]
    assert tables.described() == before
    assert tables.migrations().standing() == (NEWEST, NEWEST, [])


def test_processes_that_migrate_at_once_do_it_once(tables: Tables) -> None:
    env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TENURE_URL": tables.url}
    cwd = tables.place.database.directory
    with contextlib.ExitStack() as stack:
        with migrating(tables):
            children = [
                stack.enter_context(processes.python("-m", "tenure", "migrate", env=env, cwd=cwd)) for _ in range(2)
            ]
            processes.eventually(lambda: waiting(tables) == 2, 40, what="both wait for the one that migrates")
        for child in children:
            assert child.wait(40) == 0, child.output
        said = "".join(child.output for child in children)
    assert said.count(f"migrated to version {NEWEST}") == 1
    assert said.count(f"up to date: version {NEWEST}") == 2


@contextlib.contextmanager
def migrating(tables: Tables) -> Iterator[None]:
    """Hold the lock of a migration of these tables."""
    key = tables.names.key("migrate", databases.of(tables.url, "tests").database)
    with tables.place.database.engine().begin() as connection:
        lock = f"pg_advisory_xact_lock({key})" if tables.place.postgres else f"GET_LOCK('tenure.{key}', 0)"
        connection.exec_driver_sql(f"SELECT {lock}")
        yield


def waiting(tables: Tables) -> int:
    """Return how many sessions wait for such a lock."""
    if tables.place.postgres:
        return len(tables.place.ask("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'"))
    return len(tables.place.ask("SELECT 1 FROM information_schema.processlist WHERE state = 'User lock'"))


def test_a_migration_that_fails_can_be_run_again(tables: Tables, tmp_path: pathlib.Path) -> None:
    tables.migrations().upgrade()
    before = tables.described()
    broken = versions(tmp_path / "v", known(), last='op.execute("THIS IS NO SQL")')
    with pytest.raises(StoreError, match="nothing was written" if tables.place.postgres else "run it again") as told:
        tables.migrations(broken).upgrade()
    assert "THIS IS" not in str(told.value)
    assert tables.migrations().standing().found == NEWEST
    if tables.place.postgres:  # elsewhere each step has committed
        assert tables.described() == before
    tables.migrations(versions(tmp_path / "v", known(), last="pass")).upgrade()
    assert set(tables.described()) > set(before) if tables.place.postgres else tables.described() != before


def test_a_first_migration_that_was_broken_off_is_completed(tables: Tables, named: Make) -> None:
    """As on MySQL, where the death of the process leaves some tables and the version's, without a row."""
    tables.migrations().upgrade()
    whole = tables.described()
    tables.place.ask(f"DELETE FROM {tables.full('version')}")
    for table in ("outbox", "outbox_relay", "unreadable"):
        tables.place.ask(f"DROP TABLE {tables.full(table)}")
    tables.place.ask(f"DROP INDEX {jobs_index(tables)}")
    tables.migrations().upgrade()
    assert tables.described() == whole


def jobs_index(tables: Tables) -> str:
    name = f"{tables.names.prefix}jobs_by_line"
    return f"{tables.names.schema}.{name}" if tables.place.postgres else f"{name} ON {tables.full('jobs')}"


def test_tables_that_others_made_are_left_alone(tables: Tables) -> None:
    create_tables(tables.place.database.engine(), tables.names)
    before = tables.described()
    with pytest.raises(StoreRefused, match=r"FOREIGN.*the migrations that made them"):
        tables.migrations().upgrade()
    assert tables.described() == before
    assert tables.migrations().standing().found is None


async def test_the_printed_sql_makes_the_same_tables_without_a_connection(named: Make) -> None:
    migrated, by_hand = named("migrated"), named("hand")
    migrated.migrations().upgrade()
    nowhere = f"{by_hand.place.database.name}://nobody@127.0.0.1:1/db?{by_hand.url.partition('?')[2]}"
    nowhere = re.sub(r"unix_socket=[^&]*&", "", nowhere)
    text = Migrations(databases.of(nowhere, "tests")).script()
    with contextlib.closing(by_hand.place.database.engine().raw_connection()) as connection:
        for statement in re.sub(r"^--.*$", "", text, flags=re.MULTILINE).split(";\n"):
            if statement.strip():
                connection.cursor().execute(statement)
        connection.commit()
    assert by_hand.described() == migrated.described()
    assert by_hand.migrations().standing() == (NEWEST, NEWEST, [])
    queue = by_hand.queue()
    await pushed_and_claimed(queue, job("x"))
    await queue.aclose()


def test_the_printed_sql_begins_where_it_is_told(tables: Tables, tmp_path: pathlib.Path) -> None:
    migrations = tables.migrations(versions(tmp_path / "v", known(), last="pass"))
    text = migrations.script(NEWEST)
    assert "later_thought" in text
    assert "queues" not in text
    assert ("lock_timeout" if tables.place.postgres else "lock_wait_timeout") in text
    with pytest.raises(InvalidOption, match=f"no such version.*{NEWEST}"):
        migrations.script("999")


def test_what_the_server_refuses_is_told_without_secrets(place: Place) -> None:
    if place.postgres:
        with pytest.raises(StoreRefused, match=r"SCHEMA.*no such schema"):
            Migrations(databases.of(f"{place.database.url}?schema=nowhere", "tests")).upgrade()
    closed = f"{place.database.name}://u:s3cret@127.0.0.1:1/db"
    with pytest.raises(ConnectionFailed, match="nothing listens") as told:
        Migrations(databases.of(closed, "tests")).upgrade()
    assert "s3cret" not in str(told.value)

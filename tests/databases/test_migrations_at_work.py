"""Workers go on while tables are migrated under them, and afterwards."""

import asyncio
import contextlib
import pathlib
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from tenure.drivers.sql.server.driver import ServerQueue
from tenure.errors import StoreRefused
from tenure.queue import Ack
from tenure.testing.contract.steps import Q, job, push, pushed_and_claimed
from tests.databases.migrating import Tables, known, tables_of, versions
from tests.databases.support import Place


@pytest.fixture
def tables(place: Place) -> Tables:
    tables = tables_of(place, "own")
    tables.migrations().upgrade()
    return tables


@pytest.fixture
async def queue(tables: Tables) -> AsyncIterator[ServerQueue]:
    queue = tables.queue()
    yield queue
    await queue.aclose()


async def work(queue: ServerQueue, done: asyncio.Event) -> tuple[int, float]:
    """Push, claim and settle like a worker until told to end; return how many jobs, and how long the longest took."""
    count, longest = 0, 0.0
    while not done.is_set():
        begin = time.monotonic()
        await push(queue, job(f"job-{count}"))
        claimed = await queue.claim([Q], limit=1, lease=60, wait=0)
        assert [settled.value for settled in await queue.settle([Ack(lease) for lease in claimed.leases])] == ["done"]
        count, longest = count + 1, max(longest, time.monotonic() - begin)
    return count, longest


async def test_an_older_worker_goes_on_while_and_after_the_tables_become_newer(
    tables: Tables, queue: ServerQueue, tmp_path: pathlib.Path
) -> None:
    newer = tables.migrations(versions(tmp_path / "v", known(), last="pass"))
    lease = await pushed_and_claimed(queue, job("held"))
    done = asyncio.Event()
    working = asyncio.create_task(work(queue, done))
    await asyncio.to_thread(newer.upgrade)
    await asyncio.sleep(0.2)
    done.set()
    count, _ = await working
    assert count > 0
    assert [settled.value for settled in await queue.settle([Ack(lease)])] == ["done"]
    await queue.aclose()  # a connection made anew sees the newer tables from its first statement on
    await pushed_and_claimed(queue, job("after"))
    standing = tables.migrations().standing()
    assert (standing.found, standing.lacking) == (newer.standing().newest, ())
    tables.migrations().upgrade()
    assert tables.migrations().standing() == standing
    assert any("later_thought" in row for row in tables.described())


async def test_a_change_that_waits_for_a_table_gives_way_to_the_jobs(
    tables: Tables, queue: ServerQueue, tmp_path: pathlib.Path
) -> None:
    newer = tables.migrations(versions(tmp_path / "v", known(), last="pass"))
    done = asyncio.Event()
    with reading(tables):
        migrating = asyncio.create_task(asyncio.to_thread(newer.upgrade))
        working = asyncio.create_task(work(queue, done))
        await asyncio.sleep(3)
        assert not migrating.done()
    await migrating
    done.set()
    count, longest = await working
    assert count > 1
    assert longest < 8  # a lock that is asked for is waited for by all who come later, for two seconds
    assert tables.migrations().standing().found == newer.standing().newest


async def test_a_table_that_stays_locked_ends_the_migration(tables: Tables, tmp_path: pathlib.Path) -> None:
    newer = tables.migrations(versions(tmp_path / "v", known(), last="pass"), tries=1)
    with reading(tables), pytest.raises(StoreRefused, match=r"BUSY.*a long transaction holds a table"):
        await asyncio.to_thread(newer.upgrade)
    assert tables.migrations().standing().found == tables.migrations().standing().newest


async def test_tables_that_this_version_cannot_use_are_told(tables: Tables, queue: ServerQueue) -> None:
    renamed = f"{tables.names.prefix}jobs_of_later"
    tables.place.ask(f"ALTER TABLE {tables.full('jobs')} RENAME TO {renamed}")
    with pytest.raises(StoreRefused, match=r"NOTABLES.*`tenure migrate`.*upgrade this tenure"):
        await queue.push([job("x")])


@contextlib.contextmanager
def reading(tables: Tables) -> Iterator[None]:
    """Somebody reads the jobs in a transaction that does not end."""
    with tables.place.database.engine().connect() as connection:
        connection.exec_driver_sql(f"SELECT count(*) FROM {tables.full('jobs')}")
        yield

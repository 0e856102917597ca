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
from tests.support import processes


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


class Working:
    """Pushes, claims and settles like a worker until it is told to end."""

    def __init__(self, queue: ServerQueue) -> None:
        self._queue = queue
        self._ended = False
        self.took: list[float] = []

    async def run(self) -> None:
        while not self._ended:
            begin = time.monotonic()
            await push(self._queue, job(f"job-{len(self.took)}"))
            claimed = await self._queue.claim([Q], limit=1, lease=60, wait=0)
            settled = await self._queue.settle([Ack(lease) for lease in claimed.leases])
            assert [one.value for one in settled] == ["done"]
            self.took.append(time.monotonic() - begin)

    async def more(self) -> None:
        """Wait until it has done two more jobs, of which the second was begun from now on."""
        before = len(self.took)
        await processes.eventually_async(lambda: asyncio.sleep(0, len(self.took) > before + 1), 30)

    def end(self) -> None:
        self._ended = True


async def test_an_older_worker_goes_on_while_and_after_the_tables_become_newer(
    tables: Tables, queue: ServerQueue, tmp_path: pathlib.Path
) -> None:
    newer = tables.migrations(versions(tmp_path / "v", known(), last="pass"))
    lease = await pushed_and_claimed(queue, job("held"))
    working = Working(queue)
    async with asyncio.TaskGroup() as group:
        group.create_task(working.run())
        await working.more()
        await asyncio.to_thread(newer.upgrade)
        await working.more()
        working.end()
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
    working = Working(queue)
    async with asyncio.TaskGroup() as group:
        group.create_task(working.run())
        with reading(tables):
            migrating = group.create_task(asyncio.to_thread(newer.upgrade))
            await asyncio.to_thread(lambda: processes.eventually(lambda: waiting(tables), 30, what="it waits"))
            # A lock that is asked for is waited for by all who come later: for two seconds, and not for the reader.
            await working.more()
            assert not migrating.done()
        await migrating
        working.end()
    assert max(working.took) < 8
    assert tables.migrations().standing().found == newer.standing().newest


def waiting(tables: Tables) -> bool:
    """Tell whether a session waits for the lock of a table."""
    if tables.place.postgres:
        return bool(tables.place.ask("SELECT 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"))
    state = "Waiting for table metadata lock"
    return bool(tables.place.ask("SELECT 1 FROM information_schema.processlist WHERE state = :state", state=state))


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

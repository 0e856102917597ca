"""The place of a unique job, on every way that it may leave: OB-11."""

import asyncio
import os
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tenure import JobHandle, Tenure
from tenure.portal import blocking
from tenure.queue import Drop, Lease, Settlement
from tenure.worker import Worker, WorkerOptions
from tests.cli.here import run_here
from tests.support.databases import Database
from tests.support.servers import Server
from tests.support.uniqueness import needs_unique
from tests.worker.conftest import forget

QUEUE = "default"
HOUR = 3600.0
PLACES = ["memory", "sqlite", "redis", "postgresql", "mariadb"]


def job(number: int) -> None: ...


def failing(number: int) -> None:
    raise ValueError


@dataclass
class Shop:
    """An application with a unique job, and the command line on the same store."""

    app: Tenure
    url: str
    namespace: str
    directory: pathlib.Path

    def push(self, name: str = "job", **options: Any) -> str:
        """Push the one job; it is accepted."""
        handle: JobHandle[Any] = self.app.push_sync(self.app.call(name, [1]).options(unique="K", **options))
        assert not handle.held, "its place was not free"
        return handle.id

    def refuses(self, holder: str) -> None:
        """A second one is held by the one that is there."""
        handle = self.app.push_sync(self.app.call("job", [2]).options(unique="K"))
        assert (handle.held, handle.id) == (True, holder)

    def command(self, *arguments: str) -> None:
        keep = {key: value for key, value in os.environ.items() if not key.startswith(("TENURE_", "QUEUE_", "REDIS_"))}
        done = run_here(arguments, self.directory, {**keep, "TENURE_URL": self.url, "QUEUE_NAMESPACE": self.namespace})
        assert done.returncode == 0, done.stderr

    def claim(self) -> Lease:
        found = blocking("claim", lambda: self.app.queue().claim([QUEUE], limit=1, lease=60, wait=5))
        [lease] = found.leases
        return lease

    def settle(self, settlement: Settlement) -> None:
        blocking("settle", lambda: self.app.queue().settle([settlement]))

    def work(self) -> None:
        asyncio.run(Worker(self.app, WorkerOptions(stop_when_empty=True)).run())


@pytest.fixture(params=PLACES)
def shop(request: pytest.FixtureRequest, tmp_path: pathlib.Path, namespace: str) -> Iterator[Shop]:
    server: Server | None = None
    if request.param == "memory":
        url = "memory://"
    elif request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'jobs.db'}"
    elif request.param == "redis":
        server = request.getfixturevalue("redis7")
        assert server is not None
        url = server.url
    else:
        database: Database = request.getfixturevalue(request.param)
        url = database.url
    app = Tenure(url, namespace=namespace)
    app.job(name="job")(job)
    app.job(name="failing", max_attempts=1)(failing)
    needs_unique(app)
    yield Shop(app, url, namespace, tmp_path)
    app.close_sync()
    if server is not None:
        asyncio.run(forget(server, namespace))


def deleted_by_the_api(shop: Shop) -> None:
    holder = shop.push(delay=HOUR)
    shop.refuses(holder)
    shop.app.cancel_sync(QUEUE, [holder])


def deleted_by_the_command(shop: Shop) -> None:
    holder = shop.push(delay=HOUR)
    shop.refuses(holder)
    shop.command("cancel", holder)


def deleted_with_many(shop: Shop) -> None:
    others = [handle.id for handle in shop.app.push_many_sync([shop.app.call("job", [n]) for n in range(20)])]
    shop.app.cancel_sync(QUEUE, [*others, shop.push(delay=HOUR)])


def cleared(shop: Shop) -> None:
    shop.refuses(shop.push(delay=HOUR))
    assert shop.app.clear_sync(QUEUE) == 1


def cleared_by_the_command(shop: Shop) -> None:
    shop.refuses(shop.push(delay=HOUR))
    shop.command("clear", "-q", QUEUE, "--force")


def expired(shop: Shop) -> None:
    holder = shop.push(expires_in=0.001)  # over before anything else is asked
    shop.refuses(holder)
    shop.work()
    assert [record.failure.reason for record in shop.app.failed_sync(QUEUE)] == ["expired"]


def cancelled_while_it_ran(shop: Shop) -> None:
    holder = shop.push()
    lease = shop.claim()
    shop.app.cancel_sync(QUEUE, [holder])
    shop.refuses(holder)
    shop.settle(Drop(lease))


def failed(shop: Shop) -> None:
    shop.push("failing")
    shop.work()
    assert shop.app.counts_sync(QUEUE).failed == 1


def failed_and_forgotten(shop: Shop) -> None:
    holder = shop.push("failing")
    shop.work()
    assert shop.app.operate.forget_sync(QUEUE, [holder]) == [True]


def failed_and_forgotten_by_the_command(shop: Shop) -> None:
    holder = shop.push("failing")
    shop.work()
    shop.command("forget", holder)


def done(shop: Shop) -> None:
    shop.push()
    shop.work()


WAYS: list[Callable[[Shop], None]] = [
    deleted_by_the_api,
    deleted_by_the_command,
    deleted_with_many,
    cleared,
    cleared_by_the_command,
    expired,
    cancelled_while_it_ran,
    failed,
    failed_and_forgotten,
    failed_and_forgotten_by_the_command,
    done,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_ob_11_a_unique_job_leaves_no_lock_on_whatever_way_it_leaves(shop: Shop, way: Callable[[Shop], None]) -> None:
    if shop.url == "memory://" and "command" in way.__name__:
        pytest.skip("the command line is another process, and memory is of one")
    way(shop)
    holder = shop.push(id="again")
    shop.refuses(holder)
    assert shop.app.counts_sync(QUEUE).size == 1


def test_ob_11_no_other_job_frees_the_place(shop: Shop) -> None:
    failed_before = shop.push("failing")
    shop.work()
    holder = shop.push(delay=HOUR)
    other = shop.app.push_sync(shop.app.call("job", [3]))
    shop.app.cancel_sync(QUEUE, [other.id, failed_before, "never"])
    shop.refuses(holder)
    shop.app.operate.retry_sync(QUEUE, [failed_before])
    assert shop.app.counts_sync(QUEUE).failed == 1, "it may not run beside the one that is there"
    shop.app.operate.forget_sync(QUEUE, [failed_before])
    shop.refuses(holder)
    assert shop.app.counts_sync(QUEUE).delayed == 1

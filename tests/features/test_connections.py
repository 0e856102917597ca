"""Who opens a connection closes it, what opens none, and what `auto` chose stays chosen."""

import asyncio
import contextlib
import pathlib
import tempfile
from collections.abc import Iterator

import pytest
import redis.asyncio

from tenure import StoreError, Tenure
from tenure.config import Settings
from tenure.drivers.redis import RedisQueue
from tenure.queue import Push
from tests.support.processes import eventually_async
from tests.support.servers import Server, redis_like
from tests.support.topologies import client, info

JOB = Push(queue="q", id="a", envelope=b"{}")


def files(directory: pathlib.Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def note(text: str) -> None: ...


@pytest.fixture
def own(valkey: Server) -> Iterator[Server]:
    """A server that nobody else is connected to."""
    with redis_like(valkey.binary, tcp=True) as server:
        yield server


async def connected(server: Server, number: int) -> None:
    """Return when so many clients are connected, this look not counted."""

    async def probe() -> bool:
        with contextlib.closing(client(server)) as control:
            return len(control.client_list()) - 1 == number

    await eventually_async(probe, what=f"{number} connections")


# K3, K10
async def test_a_driver_made_from_configuration_owns_its_connections_and_ends_them(own: Server, namespace: str) -> None:
    app = Tenure(own.tcp_url, namespace=namespace)
    await app.aclose()  # before its first use
    await app.queue().push([JOB])
    keeper, pusher = app.queue().keeper(), app.queue().pusher()
    [lease] = (await app.queue().claim(["q"], limit=1, lease=30, wait=0)).leases
    keeper.renew([lease])
    await asyncio.to_thread(pusher.push, [JOB])
    with contextlib.closing(client(own)) as control:
        assert len(control.client_list()) - 1 >= 3
    keeper.close()
    pusher.close()
    await app.aclose()
    await connected(own, 0)
    await app.aclose()


# K3, K10
async def test_a_driver_around_a_client_closes_nothing_of_it(own: Server, namespace: str) -> None:
    injected = redis.asyncio.Redis(port=own.port or 0, single_connection_client=True)
    before = await injected.client_id()
    queue = RedisQueue(injected, namespace=namespace)
    await queue.aclose()  # before its first use
    queue = RedisQueue(injected, namespace=namespace)
    await queue.push([JOB])
    await queue.aclose()
    await queue.aclose()
    await connected(own, 1)
    assert await injected.client_id() == before, "its connection is still the same"
    assert await injected.ping()
    await injected.aclose()


# K3
async def test_an_sqlite_connection_is_closed_once_and_for_all(tmp_path: pathlib.Path, namespace: str) -> None:
    app = Tenure(f"sqlite:///{tmp_path / 'jobs.db'}", namespace=namespace)
    await app.aclose()
    await app.queue().push([JOB])
    assert len(files(tmp_path)) > 1, "its log stands beside it"
    for _ in range(2):
        await app.aclose()
        assert files(tmp_path) == ["jobs.db"]


# S4
async def test_a_program_that_starts_connects_to_nothing(own: Server, namespace: str, tmp_path: pathlib.Path) -> None:
    with contextlib.closing(client(own)) as control:

        def connections() -> int:
            return int(control.info("stats")["total_connections_received"])

        before = connections()
        for url in (own.tcp_url, f"sqlite:///{tmp_path / 'jobs.db'}"):
            environ = {"TENURE_URL": url, "QUEUE_CONNECTION": "auto" if url == own.tcp_url else ""}
            app = Tenure(namespace=namespace, settings=Settings.from_environ(environ))
            job = app.job(name="note")(note)
            job.bind("x").options(delay=5)
            app.settings.connection()
            app.handle("x", queue="q")
        Tenure(own.tcp_url, namespace=namespace).queue().keeper().close()
        assert connections() == before
        assert files(tmp_path) == []
        app = Tenure(own.tcp_url, namespace=namespace)
        await app.job(name="note")(note).push("x")
        await app.aclose()
        assert connections() > before


# ----------------------------------------------------------------------------------------------------------------- auto


@pytest.fixture
def absent(valkey: Server) -> Iterator[Server]:
    """A server that has not been started."""
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as directory:
        server = Server(valkey.binary, directory, tcp=True)
        yield server
        server.stop()


def automatic(server: Server, directory: pathlib.Path, namespace: str) -> Tenure:
    """Return an application that chooses by itself between a server and a file."""
    environ = {"QUEUE_CONNECTION": "auto", "REDIS_URL": server.tcp_url, "DATABASE_URL": f"sqlite:///{directory}/own.db"}
    app = Tenure(namespace=namespace, settings=Settings.from_environ(environ))
    app.job(name="note")(note)
    return app


# S3
async def test_auto_stays_with_the_server_that_answered_and_its_outage_is_an_error(
    own: Server, tmp_path: pathlib.Path, namespace: str
) -> None:
    app = automatic(own, tmp_path, namespace)
    await app.push(app.call("note", ["x"]))
    before = app.infrastructure()
    assert before == ("auto", "redis", "Redis answered at first use")
    own.stop()
    with pytest.raises(StoreError):
        await app.push(app.call("note", ["y"]))
    assert app.infrastructure() == before
    await app.aclose()
    assert files(tmp_path) == []


# S3
async def test_auto_stays_with_the_file_when_the_server_comes_later(
    absent: Server, tmp_path: pathlib.Path, namespace: str
) -> None:
    app = automatic(absent, tmp_path, namespace)
    assert app.infrastructure() == ("auto", "sql", "Redis did not answer at first use")
    absent.start()
    await app.push(app.call("note", ["x"]))
    assert (await app.counts("default")).ready == 1
    assert app.infrastructure().selected == "sql"
    assert info(absent, "keyspace") == {}
    await app.aclose()
    later = automatic(absent, tmp_path, namespace)  # another process may choose anew
    assert later.infrastructure().selected == "redis"
    await later.aclose()


# S3
def test_what_was_chosen_is_told_without_endpoint_or_credentials_by_the_name_of_the_connection(
    own: Server, tmp_path: pathlib.Path, namespace: str
) -> None:
    environ = {
        "TENURE_URL": f"sqlite:///{tmp_path}/own.db",
        "QUEUE_REPORTS_CONNECTION": "auto",
        "REDIS_REPORTS_URL": own.tcp_url.replace("://", "://someone:hunter2@"),
    }
    app = Tenure(namespace=namespace, settings=Settings.from_environ(environ))
    assert app.infrastructure() == ("sqlite", "sql", "it is configured")
    told = app.infrastructure("reports")
    assert (told.configured, told.selected) == ("auto", "redis")
    assert not any(word in f"{told!r}" for word in ("hunter2", "someone", "127.0.0.1", str(own.port)))

"""Whatever ends a relay in the middle of a call, the next one repeats that very call, and nothing is there twice."""

import asyncio
import contextlib
import pathlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import redis
import sqlalchemy

from tenure import Tenure
from tenure.config import Settings
from tenure.databases import of
from tenure.drivers.sql.migrations import Migrations
from tenure.drivers.sql.outbox import Box, Line
from tenure.outbox import Relay
from tenure.outgoing import box_of
from tenure.portal import blocking
from tenure.queue import Ack, Pushed
from tenure.relaying import Forgotten
from tests.outbox.conftest import Open
from tests.outbox.support import Scene
from tests.support import databases, processes
from tests.support.absent import not_proven
from tests.support.processes import eventually, eventually_async
from tests.support.proxy import Proxy
from tests.support.servers import Server, redis_like
from tests.transactions.support import QUEUE, Base, note

WAYS = [
    ("sqlite", "valkey"),
    ("psycopg", "valkey"),
    ("pymysql", "streams"),
    ("psycopg", "file"),
    ("psycopg", "mariadb"),
    ("pymysql", "postgresql"),
]


@pytest.fixture(params=WAYS, ids="-".join)
def scene(request: pytest.FixtureRequest, open_scene: Open) -> Scene:
    return open_scene(*request.param)


@pytest.fixture
def boxes(scene: Scene) -> Iterator[list[Box]]:
    found = [box_of(scene.app.settings) for _ in range(2)]
    yield found
    for box in found:
        box.close()


def line_of(scene: Scene) -> Line:
    return Line(scene.namespace, "default", QUEUE)


def send(scene: Scene, sending: Any) -> list[Pushed]:
    queue: Any = scene.app.queue()
    return list(blocking("push", lambda: queue.push_numbered(sending.client, sending.number, sending.jobs)))


def commit(scene: Scene, *numbers: int, **options: Any) -> None:
    with scene.engine() as engine, engine.begin() as connection:
        connection.execute(scene.insert(numbers[0]))
        scene.push_many(numbers, transaction=connection, **options)


def relayed(scene: Scene) -> int:
    """Move everything; on SQLite a line is a dead relay's for five seconds more."""
    return eventually(scene.relay, 10, what="jobs are moved", every=0.1)


def run_all(scene: Scene) -> list[int]:
    """Take all jobs and settle them: they are gone then, and their ids are free."""
    leases = scene.leases()
    blocking("settle", lambda: scene.app.queue().settle([Ack(lease) for lease in leases]))
    return [lease.deliveries for lease in leases]


def test_a_call_whose_answer_nobody_recorded_is_repeated_and_changes_nothing(scene: Scene, boxes: list[Box]) -> None:
    commit(scene, 1, 2)
    first = boxes[0].begin(line_of(scene))
    assert first is not None
    assert (first.number, first.repeated, len(first.jobs)) == (1, False, 2)
    assert [one.outcome for one in send(scene, first)] == ["stored", "stored"]
    assert run_all(scene) == [1, 1]  # the relay dies here, and the jobs are done before the next one comes
    commit(scene, 3)
    again = boxes[1].begin(line_of(scene))
    assert again is not None
    assert (again.client, again.number, again.rows, again.repeated) == (first.client, 1, first.rows, True)
    assert relayed(scene) == 3
    assert scene.moved() == [3]
    assert scene.lag() == {}


def test_a_call_that_was_recorded_and_not_sent_is_sent(scene: Scene, boxes: list[Box]) -> None:
    commit(scene, 1)
    assert scene.relay() == 1
    commit(scene, 2)
    recorded = boxes[0].begin(line_of(scene))
    assert recorded is not None
    assert recorded.number > 1_700_000_000_000_000, "by the clock: a database that was restored repeats no number"
    assert relayed(scene) == 1
    assert scene.moved() == [1, 2]


def test_a_relay_that_stood_still_changes_nothing_any_more(scene: Scene, boxes: list[Box]) -> None:
    old, new = boxes
    line = line_of(scene)
    commit(scene, 1)
    stale = old.begin(line)
    taken = new.begin(line)
    assert stale is not None
    assert taken is not None
    send(scene, taken)
    assert new.finish(line, taken)
    commit(scene, 2)
    following = new.begin(line)
    assert following is not None
    send(scene, following)
    assert run_all(scene) == [1, 1]
    with pytest.raises(Forgotten):
        send(scene, stale)
    assert not old.renew(line, stale)
    assert not old.finish(line, stale)
    assert new.finish(line, following)
    assert scene.moved() == []
    assert old.begin(line) is None


def test_a_store_that_forgot_the_relay_gets_the_call_anew(scene: Scene, boxes: list[Box]) -> None:
    commit(scene, 1)
    assert scene.relay() == 1
    commit(scene, 2, 3)
    recorded = boxes[0].begin(line_of(scene))
    assert recorded is not None
    send(scene, recorded)
    forget(scene, recorded.client)
    assert relayed(scene) == 2  # the jobs are there: held
    assert scene.moved() == [1, 2, 3]


def forget(scene: Scene, client: str) -> None:
    """Let the store lose its record of a client."""
    address = scene.app.settings.connection().address
    if address.driver in {"redis", "redis-streams"}:
        with contextlib.closing(redis.Redis.from_url(address.url)) as asking:
            key = f"{{{scene.namespace}:{QUEUE}}}:client:{client}"
            assert asking.pttl(key) > 1000 * 86_400 * 365 * 50
            assert asking.delete(key) == 1
        return
    scheme, _, rest = scene.app.settings.url.partition("://")
    library = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "sqlite": "sqlite"}[scheme]
    engine = sqlalchemy.create_engine(f"{library}://{rest}")
    with engine.begin() as connection:
        if scheme != "sqlite":
            seen = connection.execute(
                sqlalchemy.text("SELECT seen FROM tenure_clients WHERE client = :client"), {"client": client}
            ).scalar_one()
            assert seen / 1_000_000 > time.time() + 86_400 * 365 * 50
        gone = connection.execute(sqlalchemy.text("DELETE FROM tenure_clients WHERE client = :c"), {"c": client})
        assert gone.rowcount == 1
    engine.dispose()


def test_one_relay_at_a_time_has_a_line_and_its_death_frees_it(scene: Scene, boxes: list[Box]) -> None:
    commit(scene, 1)
    one, other = boxes
    line, another = line_of(scene), Line(scene.namespace, "default", "another")
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(one.locked(line))
        with other.locked(line) as got:
            assert not got
        with other.locked(another) as got:
            assert got
        assert scene.relay() == 0
    with other.locked(line) as got:
        assert got
    lock = one.locked(line)
    assert lock.__enter__()
    one.close()  # and never told that it is free: on SQLite its time ends, elsewhere with its connection

    def taken() -> bool:
        with other.locked(line) as got:
            return got

    eventually(taken, 10, what="the lock of a dead relay is free", every=0.1)
    assert scene.relay() == 1


# ------------------------------------------------------------------------------------------------------------- outages


@asynccontextmanager
async def relaying(app: Tenure) -> AsyncIterator[asyncio.Event]:
    stopping = asyncio.Event()
    task = asyncio.create_task(Relay(app).run(stopping))
    try:
        yield stopping
    finally:
        stopping.set()
        await asyncio.wait_for(task, 20)
        await app.aclose()


@pytest.fixture
def own_valkey(valkey: Server) -> Iterator[Server]:
    with redis_like(valkey.binary) as server:
        yield server


@pytest.mark.parametrize("fault", ["reply", "request"])
async def test_a_call_that_is_lost_on_the_way_makes_no_second_job(
    open_scene: Open, own_valkey: Server, fault: str
) -> None:
    with Proxy(own_valkey.socket) as proxy:
        scene = toward(open_scene("psycopg", "valkey"), proxy.url)
        await asyncio.to_thread(commit, scene, 0)
        assert await Relay(scene.app).once() == 1
        await asyncio.to_thread(commit, scene, *range(1, 600))
        cut = proxy.cut_next_reply if fault == "reply" else proxy.cut_next_request
        armed = cut(b"EVALSHA")
        async with relaying(scene.app):
            await eventually_async(lambda: waits(scene, {}), 20, what="everything is moved")
        armed.wait()
    scene = toward(scene, own_valkey.url)
    assert await asyncio.to_thread(scene.moved) == list(range(600))
    await scene.app.aclose()


def test_a_relay_that_is_killed_before_its_answer_comes_is_followed_by_one_that_repeats_it(
    open_scene: Open, own_valkey: Server
) -> None:
    with Proxy(own_valkey.socket) as proxy:
        scene = toward(open_scene("psycopg", "valkey"), proxy.url)
        environ = {"TENURE_URL": proxy.url, "TENURE_OUTBOX_URL": scene.store, "QUEUE_NAMESPACE": scene.namespace}
        direct = toward(scene, own_valkey.url)
        with processes.python("-m", "tenure", "relay", env=environ) as relay:
            commit(scene, 1)
            eventually(lambda: scene.lag() == {}, 20, what="the first job is moved")
            proxy.blackhole()
            commit(scene, 2, 3)
            eventually(lambda: direct.app.counts_sync(QUEUE).ready == 3, 20, what="the server has them")
            relay.kill9()
        assert run_all(direct) == [1, 1, 1]
        assert scene.lag() == {("default", QUEUE): 2}
        assert direct.relay() == 2
        assert direct.lag() == {}
        assert direct.app.counts_sync(QUEUE).size == 0, "nothing is there a second time"
        direct.app.close_sync()
        scene.app.close_sync()


async def test_an_outage_of_the_store_is_outlived_and_holds_up_no_other_store(
    open_scene: Open, own_valkey: Server, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = f"sqlite:///{tmp_path}/other.sqlite"
    scene = toward(open_scene("psycopg", "valkey"), own_valkey.url, {"TENURE_OTHER_URL": other})
    own_valkey.kill9()
    async with relaying(scene.app):
        await asyncio.to_thread(commit, scene, 1)
        await asyncio.to_thread(commit, scene, 2, connection="other")
        await eventually_async(lambda: waits(scene, {("default", QUEUE): 1}), 20, what="the other store has its job")
        await eventually_async(lambda: said(caplog, "tried again until it succeeds"), 10)
        own_valkey.start()
        await eventually_async(lambda: waits(scene, {}), 20, what="the store is back")
        await eventually_async(lambda: said(caplog, "works again"), 10)
        assert (await scene.app.counts(QUEUE, connection="other")).ready == 1
        assert (await scene.app.counts(QUEUE)).ready == 1
    assert len([record for record in caplog.records if record.name == "tenure.relay"]) == 2


async def test_an_outage_of_the_database_is_outlived(
    valkey: Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    programs = databases.postgres_programs()
    if programs is None:
        not_proven("PostgreSQL", "apt-get install postgresql")
    else:
        with databases.postgres(programs, durable=True) as database:
            Migrations(of(database.url, "tests")).upgrade()
            app = Tenure(valkey.url, namespace=namespace, outbox=database.url)
            app.job(note)
            scene = Scene(database.library_url, database.url, app, namespace)
            with scene.engine() as engine:
                Base.metadata.create_all(engine)
            async with relaying(app):
                await asyncio.to_thread(commit, scene, 1)
                await eventually_async(lambda: waits(scene, {}), 20, what="a job is moved")
                await asyncio.to_thread(database.stop)
                await eventually_async(lambda: said(caplog, "looking into the outbox failed"), 20)
                await asyncio.to_thread(database.start)
                await asyncio.to_thread(commit, scene, 2)
                await eventually_async(lambda: waits(scene, {}), 20, what="the database is back")
                assert await asyncio.to_thread(scene.moved) == [1, 2]


async def test_jobs_of_a_connection_that_is_not_configured_stay_and_are_told_of_once(
    open_scene: Open, caplog: pytest.LogCaptureFixture, tmp_path: pathlib.Path
) -> None:
    scene = toward(open_scene("psycopg", "valkey"), "", {"TENURE_OTHER_URL": f"sqlite:///{tmp_path}/other.sqlite"})
    await asyncio.to_thread(commit, scene, 1, connection="other")
    await scene.app.aclose()
    bare = toward(scene, f"sqlite:///{tmp_path}/default.sqlite")
    async with relaying(bare.app):
        await asyncio.to_thread(commit, bare, 2)
        await eventually_async(lambda: waits(bare, {("other", QUEUE): 1}), 20)
    assert len([record for record in caplog.records if "stay in the outbox" in record.message]) == 1
    assert await Relay(toward(scene, "", {"TENURE_OTHER_URL": f"sqlite:///{tmp_path}/o.sqlite"}).app).once() == 1


def toward(scene: Scene, url: str, environ: Mapping[str, str] | None = None) -> Scene:
    """Return the scene with another store."""
    settings = Settings(url=url or scene.app.settings.url, environ=environ or {}, outbox_url=scene.store)
    app = Tenure(settings=settings, namespace=scene.namespace)
    app.job(note)
    return replace(scene, app=app)


async def waits(scene: Scene, what: Mapping[tuple[str, str], int]) -> bool:
    return {(one.connection, one.queue): one.jobs for one in await scene.app.outbox_lag()} == what


async def said(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return any(text in record.message for record in caplog.records)

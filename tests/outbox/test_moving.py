"""Jobs of a transaction that are for another store wait in the outbox, and are moved on in order, each once."""

import pathlib
import time

import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from tenure import NotSupported, Tenure
from tenure.config import Settings
from tenure.errors import StoreRefused
from tenure.events import JobPushed
from tests.outbox.conftest import Open
from tests.outbox.support import Scene
from tests.support.processes import eventually
from tests.support.servers import Server
from tests.transactions.support import note

WAYS = [
    ("sqlite", "valkey"),
    ("psycopg", "valkey"),
    ("psycopg2", "streams"),
    ("pymysql", "streams"),
    ("psycopg", "file"),
    ("psycopg", "mariadb"),
    ("pymysql", "postgresql"),
    ("sqlite", "file"),
]


@pytest.fixture(params=WAYS, ids="-".join)
def scene(request: pytest.FixtureRequest, open_scene: Open) -> Scene:
    return open_scene(*request.param)


def test_committed_jobs_are_moved_in_order_once(scene: Scene) -> None:
    told: list[JobPushed] = []
    scene.app.events.on(JobPushed, told.append)
    with scene.engine() as engine:
        with Session(engine) as session, session.begin():
            session.add(scene.order(1))
            handle = scene.push(1, transaction=session)
            scene.push_many(range(2, 1203), transaction=session)
            with session.begin_nested() as savepoint:
                scene.push(5000, transaction=session)
                savepoint.rollback()
            scene.push(1203, queue="other", transaction=session)
            assert scene.lag() == {} or engine.dialect.name == "sqlite"
        with Session(engine) as session:
            session.add(scene.order(2))
            scene.push(5001, transaction=session)
            session.rollback()
    assert told == []
    assert handle.status_sync() == "gone"
    assert scene.lag() == {("default", "default"): 1202, ("default", "other"): 1}
    assert scene.relay() == 1203
    assert scene.lag() == {}
    assert handle.status_sync() == "ready"
    assert [event.held for event in told] == [False] * 1203
    assert {event.name for event in told} == {note.__module__ + ".note"}
    assert scene.relay() == 0
    assert scene.leases(limit=2000)[0].id == handle.id
    assert scene.moved("other") == [1203]


def test_what_a_job_was_pushed_with_arrives(scene: Scene) -> None:
    with scene.engine() as engine, engine.begin() as connection:
        connection.execute(scene.insert(1))
        scene.push(1, transaction=connection, delay=500, id="delayed")
        scene.push(2, transaction=connection, expires_in=0.01, id="expired", result_ttl=50)
        scene.push(3, transaction=connection, id="plain", max_attempts=7)
        scene.push(3, transaction=connection, id="plain")
    assert scene.relay() == 4
    moved = time.monotonic()
    counts = scene.app.counts_sync("default")
    assert (counts.ready, counts.delayed) == (2, 1)
    eventually(lambda: time.monotonic() > moved + 0.05, what="the time of one of them is over")
    expired, plain = scene.leases()
    assert (expired.id, expired.doomed, expired.keep) == ("expired", "expired", 50)
    assert (plain.id, plain.doomed) == ("plain", None)


def test_a_due_time_that_has_passed_is_now(scene: Scene) -> None:
    with scene.engine() as engine, engine.begin() as connection:
        connection.execute(scene.insert(1))
        scene.push(1, transaction=connection, delay=0.001)
    while scene.app.outbox_lag_sync()[0].oldest_age < 0.01:
        pass
    scene.relay()
    assert scene.moved() == [1]


def test_what_becomes_visible_late_is_moved_late(open_scene: Open) -> None:
    scene = open_scene("psycopg", "valkey")
    with scene.engine() as engine, engine.connect() as first, engine.connect() as second:
        for number, connection in enumerate((first, second)):
            connection.execute(scene.insert(number))
            scene.push(number, transaction=connection)
        second.commit()
        assert scene.relay() == 1
        first.commit()
        assert scene.relay() == 1
    assert scene.moved() == [1, 0]


def test_another_database_and_missing_tables_are_refused_and_nothing_else_is_done(
    scene: Scene, tmp_path: object
) -> None:
    other = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/other.sqlite")
    with other.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE t (n INTEGER)"))
        connection.execute(sqlalchemy.text("INSERT INTO t VALUES (1)"))
        with pytest.raises(NotSupported, match="another database than its own, or the outbox's"):
            scene.push(1, transaction=connection)
        assert connection.execute(sqlalchemy.text("SELECT n FROM t")).scalar() == 1
    other.dispose()


@pytest.mark.parametrize("library", ["psycopg", "pymysql"])
def test_missing_tables_are_named_before_anything_is_written(open_scene: Open, library: str) -> None:
    scene = open_scene(library, "valkey")
    mark = "&" if "?" in scene.store else "?"
    app = Tenure(
        f"unix://{scene.app.settings.url.removeprefix('unix://')}",
        namespace=scene.namespace,
        outbox=f"{scene.store}{mark}table_prefix=nobody_",
    )
    app.job(note)
    bare = Scene(scene.url, scene.store, app, scene.namespace)
    with scene.engine() as engine, engine.begin() as connection:
        connection.execute(scene.insert(1))
        for _ in range(2):
            with pytest.raises(StoreRefused, match="`tenure migrate`"):
                bare.push(1, transaction=connection)
        assert connection.scalars(scene.orders).all() == [1]
    app.close_sync()


def test_a_file_without_tables_is_named_when_none_can_be_made(open_scene: Open, tmp_path: pathlib.Path) -> None:
    scene = open_scene("sqlite", "file")
    path = tmp_path / "another.sqlite"
    app = Tenure(f"sqlite:///{tmp_path}/jobs.sqlite", namespace=scene.namespace, outbox=f"sqlite:///{path}")
    app.job(note)
    assert app.outbox_lag_sync() == []
    assert not path.exists()
    bare = Scene(f"sqlite:///{path}", "", app, scene.namespace)
    with bare.engine() as engine, engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE t (n INTEGER)"))
        with pytest.raises(StoreRefused, match="run `tenure relay --once`"):
            bare.push(1, transaction=connection)
    with bare.engine() as engine, engine.begin() as connection:
        bare.push(1, transaction=connection)
    assert bare.relay() == 1
    app.close_sync()


def test_a_unique_job_takes_its_place_when_it_is_moved_and_a_rollback_leaves_none(open_scene: Open) -> None:
    scene = open_scene("psycopg", "valkey")
    with scene.engine() as engine:
        with engine.connect() as connection:
            connection.execute(scene.insert(1))
            scene.push(1, transaction=connection, unique=True)
            connection.rollback()
        with engine.begin() as connection:
            connection.execute(scene.insert(2))
            first = scene.push(1, transaction=connection, unique=True)
            second = scene.push(1, transaction=connection, unique=True)
            assert (first.held, second.held) == (False, False)  # nobody can know it yet
    assert scene.relay() == 2
    assert [lease.id for lease in scene.leases()] == [first.id]
    assert second.status_sync() == "gone"


def test_a_connection_that_chooses_its_store_is_refused(open_scene: Open, valkey: Server, namespace: str) -> None:
    scene = open_scene("psycopg", "file")
    environ = {"QUEUE_CONNECTION": "auto", "REDIS_URL": valkey.url, "TENURE_OUTBOX_URL": scene.store}
    app = Tenure(settings=Settings.from_environ(environ), namespace=namespace)
    app.job(note)
    with scene.engine() as engine, engine.begin() as connection:
        connection.execute(scene.insert(1))
        with pytest.raises(NotSupported, match="a push inside a transaction"):
            Scene(scene.url, scene.store, app, namespace).push(1, transaction=connection)
    app.close_sync()


def test_stores_that_no_relay_reaches_are_refused(open_scene: Open, namespace: str) -> None:
    scene = open_scene("sqlite", "file")
    for number, url in enumerate(("memory://", "sync://")):
        app = Tenure(url, namespace=namespace, outbox=scene.store)
        app.job(note)
        with scene.engine() as engine, engine.begin() as connection:
            connection.execute(scene.insert(number))
            with pytest.raises(NotSupported, match="a push inside a transaction"):
                Scene(scene.url, scene.store, app, namespace).push(1, transaction=connection)
        app.close_sync()

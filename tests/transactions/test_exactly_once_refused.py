"""What ``current().transaction()`` cannot be made of is refused before anything is sent."""

import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from tenure import InvalidOption, NotSupported, Tenure, current
from tenure.context import Current
from tenure.effects import Effects
from tenure.errors import StoreRefused, WrongContext
from tenure.portal import blocking
from tenure.queue import Lease
from tenure.worker.processes.running import CurrentApart
from tests.support.servers import Server
from tests.transactions.conftest import Open
from tests.transactions.support import Business, file_url, make_app, pushing


@pytest.fixture
def business(request: pytest.FixtureRequest, open_business: Open) -> Business:
    return open_business(request.param)


@pytest.fixture
def engine(business: Business) -> Iterator[Engine]:
    with business.engine() as opened:
        yield opened


@contextmanager
def attempt_of(app: Tenure, queue: Any = None) -> Iterator[Current]:
    """Make this the attempt of a job, as a worker would."""
    app.push_sync(pushing(app, 1))
    lease = leased(app)
    made = Current(lease, name="note", max_attempts=1, queue=queue or app.queue())
    with made.enter():
        yield made


def lease_of(job: str) -> Lease:
    return Lease(
        queue="default", id=job, incarnation=1, token="t", fence=1, deliveries=1, free=0, crashes=0, length=60,
        deadline=0, envelope=b"",
    )  # fmt: skip


def leased(app: Tenure) -> Lease:
    claimed = blocking("claim", lambda: app.queue().claim(["default"], limit=1, lease=60, wait=0))
    return claimed.leases[0]


def refused(given: object, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match), current().transaction(given):
        pytest.fail("the block must not begin")


def through(*libraries: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("business", libraries, indirect=True)


def still_leased(app: Tenure) -> bool:
    return app.counts_sync("default").leased == 1


@through("sqlite")
def test_another_driver_is_refused_by_name(business: Business, engine: Engine, valkey: Server, namespace: str) -> None:
    for url, driver in (("memory://", "memory"), (valkey.url, "redis")):
        app = make_app(url, namespace)
        with attempt_of(app), Session(engine) as session:
            with pytest.raises(NotSupported, match=f"the '{driver}' driver does not support"):
                current().transaction(session)
            assert not session.in_transaction()
        app.close_sync()


@through("sqlite", "psycopg", "pymysql")
def test_another_database_is_refused(
    business: Business, engine: Engine, tmp_path: pathlib.Path, namespace: str
) -> None:
    (tmp_path / "other").mkdir()
    other = sqlalchemy.create_engine(file_url(tmp_path / "other"))
    with attempt_of(business.app) as attempt, Session(other) as session:
        refused(session, NotSupported, "another database")
        assert not session.in_transaction()
        assert attempt.effects is Effects.NONE
    other.dispose()
    assert still_leased(business.app)


@through("sqlite", "psycopg")
def test_a_transaction_that_has_begun_is_refused(business: Business, engine: Engine) -> None:
    with attempt_of(business.app):
        with engine.connect() as connection:
            connection.execute(business.insert(1))
            refused(connection, InvalidOption, "has begun already")
            refused(Session(connection), InvalidOption, "would not commit")
        with pytest.raises(InvalidOption, match="takes a SQLAlchemy connection"):
            current().transaction(object())
    assert still_leased(business.app)


@through("sqlite", "psycopg", "pymysql")
def test_a_connection_does_as_well_and_one_block_is_all(business: Business, engine: Engine) -> None:
    def once(connection: Connection, number: int) -> None:
        with current().transaction(connection):
            connection.execute(business.insert(number))

    def twice(outer: Connection, inner: Connection) -> None:
        with current().transaction(outer):
            once(inner, 2)

    with attempt_of(business.app), engine.connect() as connection, engine.connect() as other:
        with pytest.raises(WrongContext, match="can commit one only"):
            twice(connection, other)
        assert still_leased(business.app)
        once(connection, 1)
        refused(connection, WrongContext, "can commit one only")
    assert not still_leased(business.app)
    with engine.connect() as asking:
        assert list(asking.scalars(business.orders)) == [1]


@through("sqlite", "psycopg")
def test_a_block_that_its_handler_has_ended_is_not_acknowledged(business: Business, engine: Engine) -> None:
    with attempt_of(business.app) as attempt, Session(engine) as session:
        with pytest.raises(WrongContext, match="ended inside the block"), current().transaction(session) as given:
            given.commit()
        assert attempt.effects is Effects.NONE
    assert still_leased(business.app)


@through("psycopg")
def test_an_isolation_that_could_not_be_acknowledged_is_refused(business: Business) -> None:
    for level, problem in (("REPEATABLE READ", "must be READ COMMITTED"), ("AUTOCOMMIT", "autocommit")):
        with business.engine(isolation_level=level) as engine, attempt_of(business.app), Session(engine) as session:
            refused(session, InvalidOption, problem)


@through("sqlite")
def test_a_file_that_is_locked_is_not_waited_for_for_ever(business: Business) -> None:
    with business.engine(connect_args={"timeout": 0.05}) as engine, engine.connect() as holding:
        holding.execute(business.insert(2))
        with attempt_of_locked(business) as attempt, Session(engine) as session:
            refused(session, StoreRefused, "locked")
            assert attempt.effects is Effects.NONE


@contextmanager
def attempt_of_locked(business: Business) -> Iterator[Current]:
    """The same of a job that nothing can be asked of the store for."""
    made = Current(lease_of("x"), name="note", max_attempts=1, queue=business.app.queue())
    with made.enter():
        yield made


@through("aiosqlite")
async def test_each_kind_of_session_has_its_kind_of_block(business: Business) -> None:
    async with business.async_engine() as engine:
        with attempt_of_locked(business):
            refused(AsyncSession(engine), WrongContext, "use 'async with'")


@through("sqlite")
def test_a_job_that_is_in_no_store_has_nothing_to_acknowledge(business: Business, engine: Engine) -> None:
    with attempt_of_locked(business) as stored:
        alone = Current(stored.lease, name="note", max_attempts=1)
        with alone.enter(), Session(engine) as session, current().transaction(session):
            session.add(business.order(1))
    with engine.connect() as asking:
        assert list(asking.scalars(business.orders)) == [1]


def test_a_job_in_a_process_of_its_own_is_refused() -> None:
    apart = CurrentApart(lease_of("x"), name="note", max_attempts=1)
    with pytest.raises(WrongContext, match="executor='thread'"):
        apart.transaction("default")

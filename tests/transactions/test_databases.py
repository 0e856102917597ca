"""What a job inside a transaction of another's means to the store, and what the store means to that transaction."""

import asyncio
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tenure import InvalidOption, NotSupported, Tenure
from tenure.errors import ConnectionFailed, StoreError, StoreRefused
from tenure.portal import blocking
from tests.support.databases import Database
from tests.transactions.conftest import Open
from tests.transactions.support import QUEUE, Business, make_app, pushed_sync, pushing

SECRET = 987654321
READ_ONLY = {
    "sqlite": ["PRAGMA query_only = ON"],
    "postgresql": ["SET TRANSACTION READ ONLY"],
    "mysql": ["COMMIT", "START TRANSACTION READ ONLY"],
}


@pytest.fixture(params=["sqlite", "psycopg", "pymysql"])
def business(request: pytest.FixtureRequest, open_business: Open) -> Business:
    return open_business(request.param)


@pytest.fixture
def engine(business: Business) -> Iterator[sqlalchemy.Engine]:
    with business.engine() as opened:
        yield opened


def push(app: Tenure, number: int, **options: Any) -> Any:
    return app.push_sync(pushing(app, number, **options))


def test_a_process_that_is_killed_before_its_commit_leaves_nothing(
    business: Business, engine: sqlalchemy.Engine, request: pytest.FixtureRequest
) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [sys.executable, "-m", "tests.transactions.killed", business.store, business.url, business.namespace]
    words.append("transaction,after_commit")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        assert pushed_sync(business.app) == []
        child.kill()
    for option in ("transaction", "after_commit"):  # at once, on PostgreSQL as soon as its server notices
        assert not push(business.app, 2, id=option).held
    assert pushed_sync(business.app) == [2, 2]
    with engine.connect() as asking:
        assert list(asking.scalars(business.orders)) == []


def test_a_thousand_jobs_of_many_queues_are_counted(business: Business, engine: sqlalchemy.Engine) -> None:
    app = business.app
    calls = [pushing(app, number, queue=f"q{number % 2}", delay=(number % 4) * 100) for number in range(1000)]
    with engine.begin() as handle:
        handle.execute(business.insert(1))
        assert not any(one.held for one in app.push_many_sync(calls, transaction=handle))
        repeated = app.push_many_sync([pushing(app, 1, queue="q0", id="one")] * 2, transaction=handle)
        assert [one.held for one in repeated] == [False, True]
    with engine.begin() as handle:
        assert push(app, 1, queue="q0", id="one", transaction=handle).held
    assert [app.counts_sync(queue).ready for queue in ("q0", "q1")] == [251, 0]
    assert [app.counts_sync(queue).delayed for queue in ("q0", "q1")] == [250, 500]
    assert app.clear_sync("q0") == 501
    with engine.begin() as handle:  # an id of a line that was cleared is free
        assert not push(app, 1, queue="q0", id="one", transaction=handle).held
    assert app.counts_sync("q0").ready == 1


@pytest.mark.parametrize("business", ["psycopg", "pymysql"], indirect=True)  # SQLite has one writer at a time
def test_nobody_waits_for_a_caller(business: Business, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as first, engine.connect() as second:
        for number, handle in enumerate((first, second)):
            handle.execute(business.insert(number))
            push(business.app, number, transaction=handle)
        push(business.app, 3)
        push(business.app, 4, queue="another")
        assert pushed_sync(business.app) == [3]
        second.commit()
        assert pushed_sync(business.app) == [1]
        first.rollback()
    assert business.app.counts_sync(QUEUE).leased == 2


def test_what_is_not_an_open_transaction_is_refused(business: Business, engine: sqlalchemy.Engine) -> None:
    app = business.app
    with engine.connect() as handle:
        for option in ("transaction", "after_commit"):
            with pytest.raises(InvalidOption, match="in no transaction"):
                push(app, 1, **{option: handle})
        handle.execute(business.insert(1))
        with pytest.raises(NotSupported, match="durability 2 inside a transaction"):
            push(app, 1, transaction=handle, durability=2)
    for option in ("transaction", "after_commit"):
        with pytest.raises(InvalidOption, match="is closed"):
            push(app, 1, **{option: handle})
        with Session(engine) as session:
            session.add(business.order(1))
        with pytest.raises(InvalidOption, match="in no transaction"):
            push(app, 1, **{option: session})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as handle:
        if engine.dialect.name != "sqlite":
            handle.execute(business.insert(1))
            for option in ("transaction", "after_commit"):
                with pytest.raises(InvalidOption, match="in autocommit"):
                    push(app, 1, **{option: handle})
    assert pushed_sync(app) == []


def test_another_database_is_refused_and_its_transaction_goes_on(
    business: Business, open_business: Open, engine: sqlalchemy.Engine
) -> None:
    others = [make_app("sqlite:////dev/null/none", business.namespace)]
    others += [open_business(name).app for name in ("psycopg", "pymysql") if name not in business.url]
    with engine.begin() as handle:
        handle.execute(business.insert(1))
        for other in others:
            with pytest.raises(NotSupported, match="of another database than its own"):
                push(other, 1, transaction=handle)
        push(business.app, 2, transaction=handle)
    assert pushed_sync(business.app) == [2]
    with engine.connect() as asking:
        assert list(asking.scalars(business.orders)) == [1]


def test_a_refused_statement_shows_no_payload(business: Business, engine: sqlalchemy.Engine) -> None:
    assert pushed_sync(business.app) == []
    with engine.connect() as handle:
        for statement in READ_ONLY[engine.dialect.name]:
            handle.exec_driver_sql(statement)
        with pytest.raises(StoreRefused) as caught:
            push(business.app, SECRET, transaction=handle)
    assert caught.value.code == "READONLY"
    assert str(SECRET) not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("business", ["sqlite"], indirect=True)
def test_a_file_that_stays_locked_is_told_as_busy(business: Business) -> None:
    with business.engine() as engine, engine.begin() as writer, business.engine(connect_args={"timeout": 0.1}) as other:
        writer.execute(business.insert(1))
        with other.begin() as handle, pytest.raises(StoreRefused) as caught:
            push(business.app, SECRET, transaction=handle)
    assert caught.value.code == "BUSY"


# -------------------------------------------------------------------------------------------------- PostgreSQL alone


@pytest.mark.parametrize("business", ["psycopg"], indirect=True)
def test_a_transaction_that_comes_too_late_is_told_to_begin_anew(business: Business) -> None:
    app = business.app
    push(app, 1)
    with business.engine(isolation_level="SERIALIZABLE") as engine, engine.connect() as handle:
        assert list(handle.scalars(business.orders)) == []
        push(app, 2, id="one")
        with pytest.raises(StoreRefused, match="roll the transaction back and repeat all of it") as caught:
            push(app, 3, transaction=handle, id="one")
        handle.rollback()
        assert push(app, 3, transaction=_begun(handle), id="one").held
    assert caught.value.code == "BUSY"


def _begun(handle: sqlalchemy.Connection) -> sqlalchemy.Connection:
    handle.begin()
    return handle


@pytest.mark.parametrize("business", ["psycopg"], indirect=True)
def test_a_connection_that_breaks_in_the_transaction_leaves_nothing(
    business: Business, engine: sqlalchemy.Engine
) -> None:
    with engine.connect() as handle, engine.connect() as killer:
        pid = handle.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        push(business.app, 1, transaction=handle)
        killer.exec_driver_sql("SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": pid})
        with pytest.raises(ConnectionFailed, match="nothing of that is stored"):
            push(business.app, 2, transaction=handle)
    assert pushed_sync(business.app) == []


@pytest.mark.parametrize("business", ["psycopg"], indirect=True)
@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_transaction_that_sees_the_past_pushes_into_the_present(business: Business, isolation: str) -> None:
    app, another = business.app, make_app(business.store, business.namespace)
    push(app, 1)
    with business.engine(isolation_level=isolation) as engine, engine.begin() as handle:
        assert list(handle.scalars(business.orders)) == []
        assert app.clear_sync(QUEUE) == 1
        push(another, 2, queue="new")
        push(app, 3, transaction=handle)
        push(app, 4, transaction=handle, queue="new")
    assert pushed_sync(app) == [3]
    assert app.counts_sync("new").ready == 2
    another.close_sync()


@pytest.mark.parametrize("business", ["psycopg"], indirect=True)
def test_other_tables_of_the_same_server_are_another_store(
    business: Business, postgresql: Database, engine: sqlalchemy.Engine
) -> None:
    with engine.begin() as handle:
        handle.execute(business.insert(1))
        elsewhere = make_app(f"{postgresql.url}?table_prefix=nowhere_", business.namespace)
        with pytest.raises(NotSupported, match="of another database"):
            push(elsewhere, 1, transaction=handle)
    elsewhere.close_sync()


@pytest.mark.parametrize("business", ["psycopg"], indirect=True)
def test_waiting_workers_hear_of_the_commit(business: Business, engine: sqlalchemy.Engine) -> None:
    app = business.app
    queue = app.queue()

    async def waiting() -> Any:
        claim = asyncio.create_task(queue.claim([QUEUE], limit=1, lease=60, wait=30))
        await asyncio.wait([claim], timeout=0.5)
        assert not claim.done()
        await asyncio.to_thread(handle.commit)
        return await claim

    with engine.connect() as handle:
        handle.execute(business.insert(1))
        push(app, 1, transaction=handle)
        assert len(blocking("wait", waiting).leases) == 1


@pytest.mark.parametrize("business", ["psycopg"], indirect=True)
def test_a_failed_transaction_is_refused(business: Business, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as handle:
        with pytest.raises(exc.DBAPIError):
            handle.exec_driver_sql("SELECT 1 / 0")
        with pytest.raises(StoreError, match="nothing was written"):
            push(business.app, 1, transaction=handle)
    with Session(engine) as session:
        session.add_all([business.order(1), business.order(1)])
        with pytest.raises(exc.IntegrityError):
            session.flush()
        for option in ("transaction", "after_commit"):
            with pytest.raises(InvalidOption, match="has failed"):
                push(business.app, 1, **{option: session})
    assert pushed_sync(business.app) == []

"""Jobs follow what becomes of a blocking SQLAlchemy transaction, whether they are part of it or are pushed after it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tests.transactions.conftest import Open
from tests.transactions.support import Business, WentWrong, pushed_sync, pushing

Handle = Any


@contextmanager
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as opened:
        yield opened


@contextmanager
def session(engine: Engine) -> Iterator[Session]:
    with Session(engine) as opened:
        yield opened


@contextmanager
def scoped(engine: Engine) -> Iterator["scoped_session[Session]"]:
    opened = scoped_session(sessionmaker(engine))
    try:
        yield opened
    finally:
        opened.remove()


@contextmanager
def joined(engine: Engine) -> Iterator[Session]:
    """A session inside a transaction that a connection began: its own commits are savepoints' ends."""
    with engine.begin() as outer, Session(outer, join_transaction_mode="create_savepoint") as opened:
        yield opened


WAYS: dict[str, list[Callable[[Engine], AbstractContextManager[Any]]]] = {
    "sqlite": [connection, session, scoped],
    "psycopg": [connection, session],
    "psycopg2": [session],
    "pymysql": [connection, session],
}
"""What may be given, by client library: not all with all."""


@pytest.fixture(params=WAYS)
def business(request: pytest.FixtureRequest, open_business: Open) -> Business:
    return open_business(request.param)


@pytest.fixture(params=["transaction", "after_commit"])
def option(request: pytest.FixtureRequest) -> str:
    return str(request.param)


ways = pytest.mark.parametrize(
    ("business", "opener"), [(library, way) for library in WAYS for way in WAYS[library]], indirect=["business"]
)


@pytest.fixture
def engine(business: Business) -> Iterator[Engine]:
    with business.engine() as opened:
        yield opened


def push(business: Business, handle: Handle, option: str, number: int, **options: Any) -> Any:
    return business.app.push_sync(pushing(business.app, number, **{option: handle}, **options))


def rows(business: Business, engine: Engine) -> list[int]:
    with engine.connect() as asking:
        return list(asking.scalars(business.orders))


@ways
def test_jobs_are_there_with_the_commit_and_in_order(
    business: Business, engine: Engine, option: str, opener: Callable[..., Any]
) -> None:
    with opener(engine) as handle:
        handle.execute(business.insert(1))
        first = push(business, handle, option, 1)
        assert not first.held
        push(business, handle, option, 2)
        business.app.push_many_sync([pushing(business.app, number) for number in (3, 4)], **{option: handle})
        assert first.status_sync() == "gone"
        assert pushed_sync(business.app) == []
        handle.commit()
        assert first.status_sync() == "ready"
        assert pushed_sync(business.app) == [1, 2, 3, 4]
        handle.execute(business.insert(2))  # the next transaction of the same handle
        push(business, handle, option, 5)
        handle.commit()
    assert pushed_sync(business.app) == [5]
    assert rows(business, engine) == [1, 2]


@ways
def test_a_rolled_back_transaction_leaves_nothing(
    business: Business, engine: Engine, option: str, opener: Callable[..., Any]
) -> None:
    with opener(engine) as handle:
        handle.execute(business.insert(1))
        push(business, handle, option, 1, id="one")
        handle.rollback()
        handle.execute(business.insert(2))
        handle.commit()
    with opener(engine) as handle:  # closed without a commit
        handle.execute(business.insert(3))
        push(business, handle, option, 3)
    with contextlib.suppress(WentWrong), opener(engine) as handle, handle.begin():
        handle.execute(business.insert(4))
        push(business, handle, option, 4)
        raise WentWrong
    assert pushed_sync(business.app) == []
    assert rows(business, engine) == [2]
    assert not business.app.push_sync(pushing(business.app, 1, id="one")).held


@ways
def test_a_savepoint_that_is_rolled_back_takes_its_jobs_along(
    business: Business, engine: Engine, option: str, opener: Callable[..., Any]
) -> None:
    with opener(engine) as handle:
        handle.execute(business.insert(1))
        push(business, handle, option, 1)
        with contextlib.suppress(WentWrong), handle.begin_nested():
            push(business, handle, option, 2)
            with handle.begin_nested():
                push(business, handle, option, 3)
            raise WentWrong
        with handle.begin_nested():
            push(business, handle, option, 4)
            inner = handle.begin_nested()
            push(business, handle, option, 5)
            inner.rollback()
        push(business, handle, option, 6)
        handle.commit()
    assert pushed_sync(business.app) == [1, 4, 6]


@ways
def test_the_first_push_may_stand_in_a_savepoint(
    business: Business, engine: Engine, option: str, opener: Callable[..., Any]
) -> None:
    with opener(engine) as handle, handle.begin():
        handle.execute(business.insert(1))
        with contextlib.suppress(WentWrong), handle.begin_nested():
            push(business, handle, option, 1)
            raise WentWrong
        push(business, handle, option, 2)
    assert pushed_sync(business.app) == [2]


def test_only_the_outermost_commit_counts(business: Business, engine: Engine, option: str) -> None:
    with joined(engine) as handle:
        handle.execute(business.insert(1))
        push(business, handle, option, 1)
        handle.commit()
        assert pushed_sync(business.app) == []
        handle.execute(business.insert(2))
        push(business, handle, option, 2)
        handle.rollback()
    assert pushed_sync(business.app) == [1]
    assert rows(business, engine) == [1]


@pytest.mark.parametrize("business", ["psycopg", "pymysql"], indirect=True)  # SQLite has one writer at a time
def test_one_of_two_transactions_at_a_time_makes_the_job(business: Business, engine: Engine, option: str) -> None:
    arrived = threading.Event()

    def other() -> None:
        with engine.begin() as handle:
            handle.execute(business.insert(2))
            arrived.set()
            push(business, handle, option, 2, id="one")

    thread = threading.Thread(target=other)
    with engine.connect() as handle:
        handle.execute(business.insert(1))
        push(business, handle, option, 1, id="one")
        thread.start()
        assert arrived.wait(10)
        handle.rollback()
    thread.join(10)
    assert not thread.is_alive()
    assert pushed_sync(business.app) == [2]
    assert rows(business, engine) == [2]

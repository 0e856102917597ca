"""Pushes to other stores than the database, once that has committed: in Redis, in memory, at once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from sqlalchemy.event import listen
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from tenure import InvalidOption, NotSupported, Tenure
from tenure.events import JobPushed, PushFailed
from tests.support.servers import Server, redis_like
from tests.transactions.conftest import Open
from tests.transactions.support import Business, make_app, pushed, pushed_sync, pushing


@pytest.fixture
def business(open_business: Open) -> Business:
    return open_business("sqlite")


@pytest.fixture
def session(business: Business) -> Iterator[Session]:
    with business.engine() as engine, Session(engine) as opened:
        yield opened


@pytest.fixture
def app(valkey: Server, namespace: str) -> Iterator[Tenure]:
    made = make_app(valkey.url, namespace)
    yield made
    made.close_sync()


def test_redis_gets_the_jobs_of_a_commit_and_of_no_rollback(business: Business, session: Session, app: Tenure) -> None:
    told: list[str] = []
    app.events.on(JobPushed, lambda event: told.append(event.id))
    session.execute(business.insert(1))
    handle = app.push_sync(pushing(app, 1, after_commit=session))
    savepoint = session.begin_nested()
    app.push_sync(pushing(app, 2, after_commit=session))
    savepoint.rollback()
    app.push_many_sync([pushing(app, 3), pushing(app, 4, delay=100)], after_commit=session)
    assert (handle.status_sync(), told) == ("gone", [])
    session.commit()
    assert (handle.status_sync(), len(told)) == ("ready", 3)
    app.push_sync(pushing(app, 5, after_commit=session.connection()))
    session.rollback()
    session.execute(business.insert(2))
    session.commit()
    assert pushed_sync(app) == [1, 3]
    assert app.counts_sync("default").delayed == 1


def test_a_store_that_fails_after_the_commit_is_told_of_and_the_transaction_stands(
    business: Business, session: Session, valkey: Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    failed: list[PushFailed] = []
    with redis_like(valkey.binary) as server, caplog.at_level(logging.ERROR, "tenure"):
        app = make_app(server.url, namespace)
        app.events.on(PushFailed, failed.append)
        session.execute(business.insert(1))
        app.push_sync(pushing(app, 4242, after_commit=session, id="lost"))
        app.push_sync(pushing(app, 4243, after_commit=session.connection(), id="lost-too"))
        server.kill9()
        session.commit()
        app.close_sync()
    assert [event.id for event in failed] == ["lost-too", "lost"]  # the connection's commit is told of first
    assert {event.error for event in failed} == {"ConnectionFailed"}
    assert caplog.text.count("the transaction is committed and stands") == 2
    assert "lost of queue default" in caplog.text
    assert "424" not in caplog.text
    assert list(session.scalars(business.orders)) == [1]


@pytest.fixture
async def async_session(business: Business) -> AsyncIterator[AsyncSession]:
    url = business.url.replace("sqlite", "sqlite+aiosqlite", 1)
    async with replace(business, url=url).async_engine() as engine, AsyncSession(engine) as opened:
        yield opened


async def test_the_loop_goes_on_while_a_store_stands_still_after_the_commit(
    business: Business, async_session: AsyncSession, valkey: Server, namespace: str
) -> None:
    with redis_like(valkey.binary) as server:
        app = make_app(server.url, namespace)
        await async_session.execute(business.insert(1))
        await app.push(pushing(app, 1, after_commit=async_session))
        server.pause()
        committing = asyncio.create_task(async_session.commit())
        await asyncio.wait([committing], timeout=0.3)
        assert not committing.done()  # a loop that were blocked would not have come here before it was
        server.cont()
        await committing
        assert await pushed(app) == [1]
        await app.aclose()


async def test_a_commit_that_is_cancelled_tells_of_the_jobs_behind_it(
    business: Business, async_session: AsyncSession, valkey: Server, namespace: str
) -> None:
    with redis_like(valkey.binary) as server:
        app = make_app(server.url, namespace)
        failed: list[str] = []
        app.events.on(PushFailed, lambda event: failed.append(event.id))
        committed = asyncio.Event()
        listen(async_session.sync_session, "after_transaction_end", lambda *_: committed.set())
        await async_session.execute(business.insert(1))
        for name in ("first", "second"):
            await app.push(pushing(app, 1, after_commit=async_session, id=name))
        server.pause()
        committing = asyncio.create_task(async_session.commit())
        await asyncio.wait_for(committed.wait(), 10)
        committing.cancel()
        server.cont()
        with pytest.raises(asyncio.CancelledError):
            await committing
        assert failed == ["second"]
        await app.aclose()


def test_a_job_that_runs_at_once_runs_after_the_commit(business: Business, session: Session) -> None:
    ran: list[int] = []
    app = Tenure("sync://")

    def run(number: int) -> None:
        ran.append(number)

    run.__qualname__ = "run"
    job = app.job(run)
    session.execute(business.insert(1))
    job.options(after_commit=session).push_sync(1)
    assert ran == []
    session.commit()
    assert ran == [1]


def test_what_cannot_be_is_refused_before_anything_is_promised(
    business: Business, session: Session, app: Tenure
) -> None:
    session.execute(business.insert(1))
    with pytest.raises(NotSupported, match="the 'redis' driver does not support a push inside a transaction"):
        app.push_sync(pushing(app, 1, transaction=session))
    with pytest.raises(InvalidOption, match="not both"):
        app.push_sync(pushing(app, 1, transaction=session, after_commit=session))
    with pytest.raises(InvalidOption, match="not a 'object'"):
        app.push_sync(pushing(app, 1, after_commit=object()))
    with pytest.raises(InvalidOption, match="not its Engine"):
        app.push_sync(pushing(app, 1, after_commit=session.get_bind()))
    session.commit()
    assert pushed_sync(app) == []

"""Jobs follow what becomes of an asynchronous SQLAlchemy transaction."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from tenure import InvalidOption
from tenure.errors import WrongContext
from tests.transactions.conftest import Open
from tests.transactions.support import Business, WentWrong, pushed, pushing


@asynccontextmanager
async def connection(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    async with engine.connect() as opened:
        yield opened


@asynccontextmanager
async def session(engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
    async with AsyncSession(engine) as opened:
        yield opened


@asynccontextmanager
async def joined(engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
    async with engine.begin() as outer, AsyncSession(outer, join_transaction_mode="create_savepoint") as opened:
        yield opened


WAYS = [
    ("aiosqlite", connection),
    ("aiosqlite", session),
    ("asyncpg", connection),
    ("asyncpg", session),
    ("psycopg", session),
    ("asyncmy", connection),
    ("asyncmy", session),
]


@pytest.fixture
def business(request: pytest.FixtureRequest, open_business: Open) -> Business:
    return open_business(request.param)


@pytest.fixture
async def engine(business: Business) -> AsyncIterator[AsyncEngine]:
    async with business.async_engine() as opened:
        yield opened


ways = pytest.mark.parametrize(("business", "opener"), WAYS, indirect=["business"])
options = pytest.mark.parametrize("option", ["transaction", "after_commit"])


async def push(business: Business, handle: Any, option: str, number: int, **options: Any) -> Any:
    return await business.app.push(pushing(business.app, number, **{option: handle}, **options))


@ways
@options
async def test_jobs_are_there_with_the_commit_and_in_order(
    business: Business, engine: AsyncEngine, option: str, opener: Callable[..., Any]
) -> None:
    async with opener(engine) as handle:
        await handle.execute(business.insert(1))
        first = await push(business, handle, option, 1)
        calls = [pushing(business.app, number) for number in (2, 3)]
        await business.app.push_many(calls, **{option: handle})
        assert await first.status() == "gone"
        await handle.commit()
        assert await first.status() == "ready"
        assert await pushed(business.app) == [1, 2, 3]
        await handle.execute(business.insert(2))
        await push(business, handle, option, 4)
        await handle.rollback()
        await handle.execute(business.insert(3))
        await push(business, handle, option, 5)
        await handle.commit()
    assert await pushed(business.app) == [5]


@ways
@options
async def test_a_savepoint_that_is_rolled_back_takes_its_jobs_along(
    business: Business, engine: AsyncEngine, option: str, opener: Callable[..., Any]
) -> None:
    async with opener(engine) as handle:
        await handle.execute(business.insert(1))
        await push(business, handle, option, 1)
        with contextlib.suppress(WentWrong):
            async with handle.begin_nested():
                await push(business, handle, option, 2)
                raise WentWrong
        async with handle.begin_nested():
            await push(business, handle, option, 3)
        await handle.commit()
    with contextlib.suppress(WentWrong):
        async with opener(engine) as handle, handle.begin():
            await push(business, handle, option, 4)
            raise WentWrong
    assert await pushed(business.app) == [1, 3]


@pytest.mark.parametrize("business", ["asyncpg"], indirect=True)
@options
async def test_only_the_outermost_commit_counts(business: Business, engine: AsyncEngine, option: str) -> None:
    async with joined(engine) as handle:
        await handle.execute(business.insert(1))
        await push(business, handle, option, 1)
        await handle.commit()
        assert await pushed(business.app) == []
    assert await pushed(business.app) == [1]


@pytest.mark.parametrize("business", ["aiosqlite"], indirect=True)
async def test_a_blocking_session_may_be_used_in_a_coroutine(business: Business) -> None:
    with replace(business, url=business.url.replace("+aiosqlite", "")).engine() as blocking_engine:
        for option in ("transaction", "after_commit"):
            with Session(blocking_engine) as handle, handle.begin():
                await push(business, handle, option, 1)
            assert await pushed(business.app) == [1]


@pytest.mark.parametrize("business", ["aiosqlite"], indirect=True)
async def test_what_is_not_open_is_refused(business: Business, engine: AsyncEngine) -> None:
    never_opened = engine.connect()
    for option in ("transaction", "after_commit"):
        with pytest.raises(InvalidOption, match="was not opened"):
            await push(business, never_opened, option, 1)
        with pytest.raises(InvalidOption, match="in no transaction"):
            await push(business, AsyncSession(engine), option, 1)
    async with AsyncSession(engine) as handle, handle.begin():
        call = pushing(business.app, 1, transaction=handle)
        with pytest.raises(WrongContext, match="use 'await push"):
            await asyncio.to_thread(business.app.push_sync, call)
    assert await pushed(business.app) == []

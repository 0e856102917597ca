"""What a handler writes in ``current().transaction()`` is committed with its job's acknowledgement, or not at all."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from tenure import current
from tenure.errors import ResultUnavailable, StaleLease, StoreRefused
from tests.transactions.attempts import Attempts, at, raised_once, taken_away
from tests.transactions.conftest import Open
from tests.transactions.support import Business
from tests.worker.support import drain, nothing_left, until, until_counts, working

BLOCKING = ("sqlite", "psycopg", "pymysql")
AWAITED = ("aiosqlite", "asyncpg", "asyncmy")


class WentWrong(Exception):
    pass


@pytest.fixture
def business(request: pytest.FixtureRequest, open_business: Open) -> Business:
    return open_business(request.param)


@pytest.fixture
async def engine(business: Business) -> AsyncIterator[Engine | AsyncEngine]:
    if any(name in business.url for name in AWAITED):
        async with business.async_engine() as awaited:
            yield awaited
    else:
        with business.engine() as blocking:
            yield blocking


def through(*libraries: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("business", libraries, indirect=True)


@through(*BLOCKING, *AWAITED)
async def test_the_writes_and_the_acknowledgement_are_one_commit(
    business: Business, engine: Engine | AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []

    async def look(_: Any) -> None:
        seen.append((await attempts.rows(), (await business.app.counts("default")).leased))

    # On a SQLite file the open block keeps nobody from reading.
    attempts = Attempts(business, engine, inside=look, after=look)
    handle = await attempts.push(result_ttl=60)
    await drain(business.app)
    assert seen == [([], 1), ([1], 0)]
    assert await nothing_left(business.app)
    assert await handle.status() == "succeeded"
    with pytest.raises(ResultUnavailable, match="not known yet"):
        await handle.result(timeout=5)
    assert attempts.told("JobSucceeded") == 1
    assert not {"SettlementLost", "LeaseLost", "JobReleased"} & set(attempts.events)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@through(*BLOCKING, *AWAITED)
async def test_a_block_that_raises_is_rolled_back_and_tried_again(
    business: Business, engine: Engine | AsyncEngine
) -> None:
    attempts = Attempts(business, engine, inside=raised_once(WentWrong()))
    await attempts.push()
    await drain(business.app)
    assert [type(error) for error in attempts.errors] == [WentWrong, type(None)]
    assert await attempts.rows() == [1]
    assert (attempts.told("JobReleased"), attempts.told("JobSucceeded")) == (1, 1)


@through("psycopg", "pymysql")
async def test_a_stale_holder_writes_nothing(business: Business, engine: Engine) -> None:
    attempts = Attempts(business, engine, inside=taken_away(business))
    await attempts.push()
    async with working(business.app):
        await until(lambda: attempts.told("LeaseLost") + attempts.told("SettlementLost"), what="it is told")
    assert isinstance(attempts.errors[0], StaleLease)
    assert await attempts.rows() == []
    assert (await business.app.counts("default")).delayed == 1
    assert attempts.told("JobSucceeded") == 0


@through("sqlite")
async def test_a_holder_that_is_stale_already_writes_nothing(business: Business, engine: Engine) -> None:
    attempts = Attempts(business, engine, before=taken_away(business))
    await attempts.push()
    async with working(business.app):
        await until(lambda: attempts.told("LeaseLost") + attempts.told("SettlementLost"), what="it is told")
    assert isinstance(attempts.errors[0], StaleLease)
    assert await attempts.rows() == []
    assert (await business.app.counts("default")).delayed == 1


@through("sqlite", "psycopg", "asyncpg")
async def test_an_error_behind_the_block_retries_nothing(
    business: Business, engine: Engine | AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = Attempts(business, engine, after=raised_once(WentWrong("of its own")))
    await attempts.push()
    await drain(business.app)
    assert [type(error) for error in attempts.errors] == [WentWrong]
    assert await attempts.rows() == [1]
    assert await nothing_left(business.app)
    assert attempts.told("JobSucceeded") == 1
    assert "is not retried because of WentWrong" in caplog.text
    assert "of its own" not in caplog.text


@through("sqlite", "asyncpg")
async def test_a_block_keeps_its_job_while_the_handler_goes_on(
    business: Business, engine: Engine | AsyncEngine
) -> None:
    """The keeper, and a lease that nobody renews any more, leave alone what is done."""

    async def linger(_: Any) -> None:
        await asyncio.sleep(1.5)  # handler

    attempts = Attempts(business, engine, after=linger)
    await attempts.push()
    await drain(business.app, lease=0.6)
    assert attempts.errors == [None]
    assert attempts.told("JobSucceeded") == 1
    assert attempts.told("LeaseLost") == 0


@through("asyncpg")
async def test_a_lease_is_renewed_while_the_block_lasts(business: Business, engine: AsyncEngine) -> None:
    async def linger(_: Any) -> None:
        await asyncio.sleep(2)  # handler

    attempts = Attempts(business, engine, inside=linger)
    await attempts.push()
    await drain(business.app, lease=0.9)
    assert attempts.errors == [None]
    assert await attempts.rows() == [1]


@through("aiosqlite", "asyncpg")
async def test_a_timeout_in_the_block_rolls_back_and_one_behind_it_does_not(
    business: Business, engine: AsyncEngine
) -> None:
    async def too_long(_: Any) -> None:
        if current().attempt == 1:
            await asyncio.sleep(30)  # handler

    async def too_long_behind(_: Any) -> None:
        await asyncio.sleep(30)  # handler

    attempts = Attempts(business, engine, inside=too_long, after=too_long_behind)
    await attempts.push(timeout=0.5)
    await drain(business.app)
    assert [type(error) for error in attempts.errors] == [asyncio.CancelledError, asyncio.CancelledError]
    assert await attempts.rows() == [1]
    assert await nothing_left(business.app)
    assert attempts.told("JobSucceeded") == 1


# -------------------------------------------------------------------------------------------- commits that nobody told


@through("sqlite", "psycopg", "asyncpg")
async def test_a_commit_that_was_done_and_raised_is_found_done(
    business: Business, engine: Engine | AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    def lost() -> None:
        raise ConnectionResetError

    attempts = Attempts(business, engine, inside=at("after_commit", lost))
    await attempts.push()
    await drain(business.app)
    assert [type(error) for error in attempts.errors] == [ConnectionResetError]
    assert await attempts.rows() == [1]
    assert await nothing_left(business.app)
    assert "was lost: it is settled, or runs or has run elsewhere" in caplog.text


@through("psycopg", "pymysql")
async def test_a_commit_whose_connection_broke_before_it_is_a_failed_attempt(
    business: Business, engine: Engine
) -> None:
    backends: list[int] = []
    kill = "SELECT pg_terminate_backend(%d)" if engine.dialect.name == "postgresql" else "KILL %d"
    whoami = "pg_backend_pid()" if engine.dialect.name == "postgresql" else "CONNECTION_ID()"

    def broken() -> None:
        with engine.connect() as other:
            other.exec_driver_sql(kill % backends[-1])

    async def prepare(session: Any) -> None:
        backends.append(session.connection().exec_driver_sql(f"SELECT {whoami}").scalar_one())
        await at("before_commit", broken)(session)

    attempts = Attempts(business, engine, inside=prepare)
    await attempts.push()
    await drain(business.app)
    assert [type(error) for error in attempts.errors] == [OperationalError, type(None)]
    assert await attempts.rows() == [1]
    assert await nothing_left(business.app)
    assert attempts.told("JobSucceeded") == 1


@through("psycopg")
async def test_a_handler_cannot_hide_that_its_commit_failed(business: Business, engine: Engine) -> None:
    def refused() -> None:
        raise WentWrong

    class Hiding(Attempts):
        def _blocking(self, number: int) -> str:
            with contextlib.suppress(WentWrong):
                return super().blocking(number)
            return "hidden"

    attempts = Hiding(business, engine, inside=at("before_commit", refused))
    await attempts.push()
    await drain(business.app)
    assert [type(error) for error in attempts.errors] == [WentWrong, type(None)]
    assert await attempts.rows() == [1]
    assert attempts.told("JobSucceeded") == 1


# ------------------------------------------------------------------------------------------------------ SQLite's lock


@through("sqlite", "aiosqlite")
async def test_a_block_on_a_file_ends_within_a_third_of_its_lease(
    business: Business, engine: Engine | AsyncEngine
) -> None:
    began: list[float] = []
    awaited = isinstance(engine, AsyncEngine)

    async def linger(_: Any) -> None:
        began.append(time.monotonic())
        await asyncio.sleep(30 if awaited else 0.5)  # handler: nothing interrupts a thread

    attempts = Attempts(business, engine, inside=linger)
    await attempts.push(max_attempts=1)
    await drain(business.app, lease=1.2)
    assert time.monotonic() - began[0] < 10
    (error,) = attempts.errors
    assert isinstance(error, StoreRefused)
    assert error.code == "TOO-LONG"
    assert await attempts.rows() == []
    await until_counts(business.app, failed=1)

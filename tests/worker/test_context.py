"""Each attempt sees itself and nothing of another: the current job, context variables, services, middleware."""

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from tenure import Injected, Tenure, current
from tenure.errors import ConfigurationError, WrongContext
from tenure.worker import Worker
from tests.worker.support import drain, nothing_left, only_failure

seen: list[Any] = []
mine: ContextVar[str] = ContextVar("mine", default="untouched")


@pytest.fixture(autouse=True)
def _seen() -> Iterator[None]:
    seen.clear()
    yield
    seen.clear()


class Connection:
    """A service that knows who made, used and closed it."""

    made: list["Connection"] = []  # noqa: RUF012 - a list of this test's

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.closed_in: int | None = None
        Connection.made.append(self)

    def close(self) -> None:
        self.closed_in = threading.get_ident()


class Unregistered:
    pass


def own_view() -> tuple[str, str, str]:
    attempt = current()
    before = mine.get()
    mine.set(attempt.id)
    return before, attempt.id, attempt.meta.get("tag", "none")


async def looks_around() -> None:
    before, identity, tag = own_view()
    for _ in range(3):
        await asyncio.sleep(random.uniform(0, 0.003))  # handler
    seen.append((before, identity, current().id, mine.get(), tag))
    if current().attempt == 1 and tag == "odd":
        raise ValueError("once more")


def looks_around_in_a_thread() -> None:
    before, identity, tag = own_view()
    for _ in range(3):
        time.sleep(random.uniform(0, 0.003))  # handler
    seen.append((before, identity, current().id, mine.get(), tag))
    if current().attempt == 1 and tag == "odd":
        raise ValueError("once more")


async def uses(*, connection: Connection = Injected) -> None:
    seen.append((connection, connection.thread, threading.get_ident()))


def uses_in_a_thread(*, connection: Connection = Injected) -> None:
    seen.append((connection, connection.thread, threading.get_ident()))


async def uses_and_fails(*, connection: Connection = Injected) -> None:
    seen.append(connection)
    raise ValueError("closed all the same")


async def uses_and_is_too_slow(*, connection: Connection = Injected) -> None:
    seen.append(connection)
    await asyncio.sleep(30)  # handler


async def needs_what_nobody_has(*, other: Unregistered = Injected) -> None:
    seen.append(other)


async def note() -> None:
    seen.append(("handler", mine.get()))


def note_in_thread() -> None:
    seen.append(("handler", mine.get()))


async def reports_its_attempt() -> None:
    attempt = current()
    seen.append((attempt.queue, attempt.name, attempt.attempt, attempt.deliveries, attempt.max_attempts, attempt.fence))


async def test_each_job_sees_itself_and_its_own_variables(app: Tenure) -> None:
    jobs = (app.job(looks_around), app.job(looks_around_in_a_thread))
    for job in jobs:
        await app.push_many(job.bind().options(meta={"tag": "odd" if number % 2 else "even"}) for number in range(60))
    await drain(app, concurrency=20)
    assert len(seen) == 120 + 60  # half of them failed once and were tried again
    for before, identity, still, variable, _ in seen:
        assert before == "untouched"
        assert identity == still == variable
    assert sum(tag == "odd" for *_, tag in seen) == 120
    assert mine.get() == "untouched"


async def test_outside_of_an_attempt_there_is_no_current_job(quick: Tenure) -> None:
    await quick.job(note).push()
    await drain(quick)
    with pytest.raises(WrongContext):
        current()


async def test_an_attempt_can_be_asked_about_itself(app: Tenure) -> None:
    await app.job(name="who")(reports_its_attempt).options(max_attempts=7).push()
    await drain(app)
    [(queue, name, attempt, deliveries, max_attempts, fence)] = seen
    assert (queue, name, attempt, deliveries, max_attempts) == ("default", "who", 1, 1, 7)
    assert fence > 0


# K16
@pytest.mark.parametrize("handler", [uses, uses_in_a_thread])
async def test_each_attempt_has_services_of_its_own_made_and_closed_where_they_are_used(
    quick: Tenure, handler: Any
) -> None:
    Connection.made.clear()
    register_connection(quick)
    job = quick.job(handler)
    await quick.push_many(job.bind() for _ in range(3))
    await drain(quick)
    assert len({id(connection) for connection, *_ in seen}) == 3
    for connection, made_in, used_in in seen:
        assert made_in == used_in == connection.closed_in


# K16
@pytest.mark.parametrize("handler", [uses_and_fails, uses_and_is_too_slow])
async def test_services_are_closed_whatever_happens(quick: Tenure, handler: Any) -> None:
    Connection.made.clear()
    register_connection(quick)
    await quick.job(handler).options(timeout=0.1).push()
    await drain(quick, tries=2)
    assert len(Connection.made) == 2
    assert all(connection.closed_in for connection in Connection.made)


async def test_a_factory_that_fails_is_a_failure_of_the_attempt(quick: Tenure) -> None:
    def broken() -> Connection:
        raise OSError("no database")

    quick.services.register_factory(Connection, broken)
    await quick.job(uses).push()
    await drain(quick, tries=2)
    record = await only_failure(quick)
    assert (record.failure.type, record.attempts) == ("OSError", 2)


async def test_asynchronous_factories_serve_asynchronous_handlers(quick: Tenure) -> None:
    async def made() -> AsyncIterator[Connection]:
        await asyncio.sleep(0)
        connection = Connection()
        yield connection
        connection.close()

    quick.services.register_factory(Connection, made)
    await quick.job(uses).push()
    await drain(quick)
    assert seen[0][0].closed_in


async def test_a_missing_service_is_told_when_the_worker_starts(quick: Tenure) -> None:
    quick.job(name="needs")(needs_what_nobody_has)
    with pytest.raises(ConfigurationError, match=r"needs asks for Unregistered \(other\)"):
        await Worker(quick).run()


def register_connection(app: Tenure) -> None:
    def made() -> Iterator[Connection]:
        connection = Connection()
        yield connection
        connection.close()

    app.services.register_factory(Connection, made)


@pytest.mark.parametrize("handler", [note, note_in_thread])
async def test_middleware_stands_around_the_attempt_the_first_one_outermost(quick: Tenure, handler: Any) -> None:
    def layer(name: str) -> None:
        @quick.middleware
        async def around(attempt: Any, call_next: Any) -> Any:
            seen.append((name, attempt.id == current().id))
            mine.set(name)
            try:
                return await call_next()
            finally:
                seen.append((name, "after"))

    layer("outer")
    layer("inner")
    await quick.job(handler).push()
    await drain(quick)
    assert seen == [
        ("outer", True), ("inner", True), ("handler", "inner"), ("inner", "after"), ("outer", "after"),
    ]  # fmt: skip
    assert mine.get() == "untouched"


async def test_what_middleware_raises_is_the_attempts_failure(quick: Tenure) -> None:
    @quick.middleware
    async def refuses(attempt: Any, call_next: Any) -> Any:
        raise PermissionError("not this one")

    await quick.job(note).push()
    await drain(quick, tries=1)
    assert (await only_failure(quick)).failure.type == "PermissionError"
    assert seen == []


async def test_the_lifespan_stands_around_the_workers_life(quick: Tenure) -> None:
    @quick.lifespan
    async def life() -> AsyncIterator[None]:
        seen.append("opened")
        register_connection(quick)
        yield
        seen.append("closed")

    await quick.job(uses).push()
    await drain(quick)
    assert seen[0] == "opened"
    assert isinstance(seen[1][0], Connection)
    assert seen[2] == "closed"
    assert await nothing_left(quick)


async def test_a_lifespan_that_cannot_open_ends_the_worker_before_it_claims(quick: Tenure) -> None:
    @quick.lifespan
    async def life() -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    await quick.job(note).push()
    with pytest.raises(OSError, match="no database"):
        await drain(quick)
    assert (await quick.counts("default")).ready == 1

"""What a user's program looks like to a type checker. Never imported: `assert_type` is judged by mypy and pyright."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, assert_type

from sqlalchemy.ext.asyncio import AsyncSession

from tenure import (
    AsyncJob,
    Call,
    Current,
    Injected,
    Job,
    JobHandle,
    JobState,
    Progress,
    Sensitive,
    SyncJob,
    Tenure,
    current,
)

app = Tenure()
session = AsyncSession()


class Db: ...


@app.job
async def fetch(url: str) -> bytes:
    return b""


@app.job(executor="process", retry_on={TimeoutError: 30, OSError: timedelta(minutes=1)}, give_up_on=(ValueError,))
def parse(raw: bytes, *, strict: bool = False) -> list[int]:
    return []


@app.job(queue="db", retry_on=[TimeoutError])
async def store(rows: list[int], *, db: Db = Injected) -> None: ...


@app.job
def total(rows: list[int]) -> int:
    return 1


@app.job
def wide(x: int | None) -> str:
    return ""


@app.job(name="mail.welcome", aliases=["welcome"], max_attempts=5, timeout=timedelta(minutes=1), priority=3)
async def welcome(email: str, name: str, token: Annotated[str, Sensitive]) -> None: ...


@app.job(queue="r")
@dataclass(frozen=True)
class Report:
    n: int

    async def handle(self, db: Db) -> int:
        return hash(db)


@app.job
class Plain:
    def __init__(self, n: int) -> None: ...

    def handle(self) -> str:
        return ""


async def chains() -> None:
    assert_type(fetch.bind("u").then(parse, strict=True).then(store), Call[None])
    assert_type(fetch.bind("u").then(parse).then(total).then(wide), Call[str])
    assert_type(fetch.bind("u").then(parse.options(priority=5), strict=True), Call[list[int]])


async def pushes() -> None:
    assert_type(await fetch.push("u"), JobHandle[bytes])
    assert_type(await store.push([1]), JobHandle[None])
    assert_type(await fetch.options(delay=30, priority=10, at=datetime.now(UTC)).push("u"), JobHandle[bytes])
    assert_type(await fetch.options(delay=30)("u"), bytes)
    assert_type(await app.push(Report(5), delay=3), JobHandle[int])
    assert_type(await fetch.options(transaction=session).push("u"), JobHandle[bytes])
    assert_type(await app.push_many([fetch.bind("u")], after_commit=session), list[JobHandle[bytes]])
    assert_type(parse.options(after_commit="default").push_sync(b""), JobHandle[list[int]])
    assert_type(await app.push(Plain(5)), JobHandle[str])
    assert_type(await app.push(fetch.bind("u"), meta={"tenant": 7}), JobHandle[bytes])
    assert_type(await app.push_many(fetch.bind(str(i)) for i in range(100_000)), list[JobHandle[bytes]])
    assert_type(app.bind(Report(5)).options(delay=3), Call[int])
    assert_type(app.bind(Plain(5)), Call[str])


def blocking_pushes() -> None:
    assert_type(fetch.push_sync("u"), JobHandle[bytes])
    assert_type(app.push_sync(Report(5), delay=timedelta(seconds=3)), JobHandle[int])
    assert_type(app.push_sync(Plain(5)), JobHandle[str])
    assert_type(app.push_many_sync([total.bind([1])]), list[JobHandle[int]])
    assert_type(total.push_sync([1]).result_sync(timeout=1), int)
    assert_type(total.push_sync([1]).wait_sync(), JobState)


async def results() -> None:
    handle = await fetch.push("u")
    assert_type(await handle.result(timeout=1), bytes)
    assert_type(await handle.status(), JobState)
    assert_type(await handle.wait(timeout=1), JobState)
    assert_type(await handle.progress(), Progress | None)
    assert_type(handle.progress_sync(), Progress | None)
    assert_type(await (await app.push(Report(5), result_ttl=60)).result(timeout=1), int)
    assert_type(await (await store.options(result_ttl=timedelta(hours=1)).push([1])).result(timeout=1), None)
    assert_type(await asyncio.gather(*(one.result(timeout=1) for one in [handle])), list[bytes])
    assert_type(handle.id, str)
    assert_type(current(), Current)
    assert_type(current().progress(0.4, "half way"), None)


async def direct_calls() -> None:
    coroutine: Coroutine[Any, Any, bytes] = fetch("u")
    assert_type(await coroutine, bytes)
    assert_type(await fetch("u"), bytes)
    assert_type(parse(b""), list[int])
    report: Report = Report(5)
    assert_type(await report.handle(Db()), int)


def kinds() -> None:
    asynchronous: AsyncJob[[str], bytes] = fetch
    plain: SyncJob[[list[int]], int] = total
    either: list[Job[..., Any]] = [asynchronous, plain]
    either.clear()

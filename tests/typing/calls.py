"""What a user's program looks like to a type checker. Never imported: `assert_type` is judged by mypy and pyright."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Annotated, Any, assert_type

from sqlalchemy.ext.asyncio import AsyncSession

from tenure import (
    AsyncJob,
    Batch,
    Call,
    Chain,
    CompositionHandle,
    CompositionStatus,
    Current,
    Injected,
    Job,
    JobHandle,
    JobState,
    Member,
    Progress,
    Sensitive,
    SyncJob,
    Tenure,
    Workflow,
    WorkflowStep,
    correlated,
    correlation_id,
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
    assert_type(await app.push(fetch.bind("u").then(parse)), JobHandle[list[int]])
    assert_type(app.push_sync(app.bind(Report(5)).then(wide), result_ttl=60), JobHandle[str])


async def compositions() -> None:
    chain = app.chain(fetch.bind("u"), Report(5), fetch.bind("u").then(parse), name="nightly")
    batch = app.batch((fetch.bind(str(i)) for i in range(100_000)), on_finish=total.bind([1]), result_ttl=60)
    workflow = app.workflow(id="w", retention=timedelta(days=1))
    first = workflow.add(chain, name="first")
    second = workflow.add(Plain(5), after=first)
    workflow.add(batch, after=[first, second, "first"])
    assert_type(chain, Chain)
    assert_type(batch, Batch)
    assert_type(workflow, Workflow)
    assert_type(second, WorkflowStep)
    assert_type(await app.batch([chain, Report(5), batch]).push(connection="reports"), CompositionHandle)
    assert_type(workflow.push_sync(), CompositionHandle)
    handle = await workflow.push()
    assert_type(await handle.status(), CompositionStatus | None)
    assert_type(await handle.wait(timeout=5), CompositionStatus | None)
    assert_type([member async for member in handle.results()], list[Member])
    assert_type(list(handle.results_sync()), list[Member])
    assert_type(await handle.cancel(), bool)
    assert_type(await app.composition("w", queue="r"), CompositionHandle | None)
    assert_type(await app.prune_compositions(hours=24), int)
    assert_type(await current().batch.add(fetch.bind("u"), Report(5)), None)


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


@dataclass(frozen=True)
class OrderPaid:
    order: int


@app.listener(OrderPaid, queue="events", after_commit=True)
async def bill(event: OrderPaid, *, db: Db = Injected) -> str:
    return ""


@app.listener(OrderPaid)
def thank(event: OrderPaid) -> int:
    return 1


async def events() -> None:
    assert_type(await app.emit(OrderPaid(7), after_commit=session), list[JobHandle[Any]])
    assert_type(await bill.push(OrderPaid(7)), JobHandle[str])
    assert_type(thank(OrderPaid(7)), int)


async def layers() -> None:
    message = EmailMessage()
    assert_type(await app.mail.push(message, via="transactional", delay=3), JobHandle[None])
    assert_type(app.mail.bind(message), Call[None])
    assert_type(await app.notify(title="Disk", body="full", channels=["ops"], kind="failure"), list[JobHandle[None]])
    assert_type(app.notify.sync(body="full", channels=["ops"]), list[JobHandle[None]])
    with correlated() as given:
        assert_type(given, str)
    assert_type(correlation_id(), str | None)


def kinds() -> None:
    asynchronous: AsyncJob[[str], bytes] = fetch
    plain: SyncJob[[list[int]], int] = total
    either: list[Job[..., Any]] = [asynchronous, plain]
    either.clear()

"""Times are the store's, attempts are counted, and a job that is held never expires."""

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
import time_machine

from tenure import Backoff, JobState, Tenure
from tenure.config import Settings
from tenure.drivers.redis import RedisQueue
from tenure.events import JobFailed, JobReleased, JobSucceeded, RenewalFailed, SettlementLost
from tenure.naming import new_token
from tenure.queue import Ack, Fail, Failure, Keeper, Lease, Push, Queue, Release, Renewal, SetAside, Settled, Settlement
from tests.support.processes import eventually_async
from tests.support.servers import Server, redis_like
from tests.support.topologies import client
from tests.worker.conftest import forget
from tests.worker.support import heard, until, until_counts, working

HOUR = datetime.timedelta(hours=1)
gates: list[asyncio.Event] = []
"""What the handlers of a test wait for: one of its own event loop."""


@pytest.fixture(autouse=True)
async def released() -> asyncio.Event:
    gates[:] = [asyncio.Event()]
    return gates[0]


async def always_fails() -> None:
    raise RuntimeError("no")


async def waits_to_be_released() -> None:
    await gates[0].wait()


async def succeeds() -> None: ...


@pytest.fixture
async def queue(valkey: Server, namespace: str) -> AsyncIterator[RedisQueue]:
    queue = RedisQueue.from_url(valkey.url, namespace=namespace)
    yield queue
    await queue.aclose()
    await forget(valkey, namespace)


def pushes(*ids: str, **options: Any) -> list[Push]:
    return [Push(queue="q", id=one, envelope=b"{}", **options) for one in ids]


async def claimed(queue: RedisQueue, limit: int, lease: float = 30.0, wait: float = 0.0) -> Sequence[Lease]:
    return (await queue.claim(["q"], limit=limit, lease=lease, wait=wait)).leases


def on_a_host_whose_clock_is_wrong(by: datetime.timedelta) -> Any:
    return time_machine.travel(datetime.datetime.now(datetime.UTC) + by, tick=True)


# K2, S14, S9
@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["ahead", "behind"])
async def test_the_clock_of_a_worker_s_host_decides_nothing(queue: RedisQueue, by: datetime.timedelta) -> None:
    """Leases, delays and backoffs begin and end by the server's time, whoever pushes, claims and settles."""
    with on_a_host_whose_clock_is_wrong(by):
        await queue.push(pushes("later", delay=60))
        await queue.push(pushes("first", delay=0.05))
    await queue.push(pushes("second", delay=0.15))
    [first] = await claimed(queue, 1, wait=5)
    with on_a_host_whose_clock_is_wrong(-by):
        [second] = await claimed(queue, 1, wait=5)
        assert (first.id, second.id) == ("first", "second")
        await queue.settle([Release(first, delay=60), Release(second, delay=0.05)])
        [again] = await claimed(queue, 3, lease=60, wait=5)
    assert (again.id, again.attempt) == ("second", 2)
    with on_a_host_whose_clock_is_wrong(by):
        assert await claimed(queue, 3) == []
        counts = await queue.counts("q")
    assert (counts.delayed, counts.leased, counts.lapsed) == (2, 1, 0)


# S9
async def test_what_falls_due_at_the_same_moment_comes_in_the_order_of_its_ids(queue: RedisQueue) -> None:
    ids = [f"{number:03}" for number in range(30)]
    await queue.push(pushes(*reversed(ids), delay=0.05))
    await queue.push(pushes("bell", delay=0.1))
    order: list[str] = []
    while len(order) < 31:
        order += [lease.id for lease in await claimed(queue, 5, wait=5)]
    assert order == [*ids, "bell"]


# S11
async def test_no_key_that_holds_work_ever_expires(queue: RedisQueue, valkey: Server, namespace: str) -> None:
    """What does expire are the last answers to clients: `client:…`, an hour after their last call."""
    await queue.push(pushes("failed", "aside", "held", "released", "ready") + pushes("crashed", crash_limit=2))
    await queue.push(pushes("soon", delay=60) + pushes("high", priority=5))
    leases = {lease.id: lease for lease in await claimed(queue, 10, lease=0.05)}
    await queue.settle([Release(leases.pop("ready")), Release(leases.pop("high"))])
    why = Failure(reason="exception")
    await queue.settle([Fail(leases.pop("failed"), why), SetAside(leases.pop("aside"), "odd")])
    await queue.settle([Release(leases.pop("released")), Release(leases.pop("crashed"), crashed=True)])
    await queue.cancel("q", ["held"])
    await queue.pause("q")
    await queue.request_restart()

    async def lapsed() -> bool:
        return (await queue.counts("q")).lapsed == 1

    await eventually_async(lapsed)
    with client(valkey) as control:
        expiring = {key for key in control.scan_iter(match=f"*{namespace}*") if control.pttl(key) != -1}
        holding = {key.rpartition("}:")[2] for key in control.scan_iter(match=f"{{{namespace}:q}}:*")} - {"wake"}
    assert {"jobs", "running", "ready", "ready:prio", "delayed", "leased", "suspects", "failed", "failed:at",
            "unreadable", "paused", "cancel"} <= holding  # fmt: skip
    assert all(":client:" in key or key.endswith(":wake") for key in expiring), expiring
    await queue.resume("q")
    counts = await queue.counts("q")
    assert (counts.ready, counts.delayed, counts.leased, counts.failed, counts.unreadable) == (4, 1, 1, 1, 1)
    states = dict.fromkeys(("ready", "high", "released", "crashed"), JobState.READY)
    states |= {"held": JobState.RUNNING, "soon": JobState.DELAYED, "failed": JobState.FAILED}
    assert await queue.states("q", list(states)) == list(states.values())


# K6, S13
async def test_only_the_token_of_the_present_lease_settles(app: Tenure) -> None:
    queue = app.queue()
    await queue.push(pushes("a"))
    [old] = (await queue.claim(["q"], limit=1, lease=0.05, wait=0)).leases
    [new] = (await queue.claim(["q"], limit=1, lease=30, wait=5)).leases
    assert (old.id, old.attempt, new.id, new.attempt) == ("a", 1, "a", 2)
    forged = msgspec.structs.replace(new, token=new_token())
    for stale in (old, forged):
        settlements: list[Settlement] = [Ack(stale), Release(stale), Fail(stale, Failure(reason="exception"))]
        assert list(await queue.settle(settlements)) == [Settled.STALE] * 3
        assert list(await queue.renew([stale])) == [Renewal.LOST]
        assert list(queue.keeper().renew([stale])) == [Renewal.LOST]
    counts = await queue.counts("q")
    assert (counts.ready, counts.delayed, counts.leased, counts.failed) == (0, 0, 1, 0)
    assert list(await queue.settle([Ack(new), Ack(new)])) == [Settled.DONE, Settled.STALE]


# ---------------------------------------------------------------------------------------------------------- the worker


@pytest.fixture(params=["sqlite", "valkey"])
async def app(request: pytest.FixtureRequest, tmp_path: Any, namespace: str) -> AsyncIterator[Tenure]:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    if request.param == "valkey":
        url = request.getfixturevalue("valkey").url
    environ = {"TENURE_URL": url, "QUEUE_MAX_ATTEMPTS": "2", "QUEUE_RETRY_BASE_DELAY_SECONDS": "0.001"}
    app = Tenure(namespace=namespace, settings=Settings.from_environ(environ))
    yield app
    await app.aclose()
    if request.param == "valkey":
        await forget(request.getfixturevalue("valkey"), namespace)


# K11
async def test_attempts_wait_twice_as_long_each_time_up_to_the_cap_and_end_at_the_job_s_limit(app: Tenure) -> None:
    given_back, failed = heard(app, JobReleased), heard(app, JobFailed)
    backoff = Backoff(base=0.01, factor=2.0, cap=0.05, jitter=False)
    await app.job(max_attempts=6, backoff=backoff)(always_fails).push()
    async with working(app):
        await until_counts(app, failed=1)
    assert [event.delay for event in given_back] == [min(0.05, 0.01 * 2 ** (attempt - 1)) for attempt in range(1, 6)]
    assert [event.lease.attempt for event in failed] == [6]


# K11, K8
async def test_a_job_that_says_nothing_has_the_attempts_and_the_lease_of_the_configuration(app: Tenure) -> None:
    given_back, failed = heard(app, JobReleased), heard(app, JobFailed)
    await app.job(always_fails).push()
    async with working(app, tries=None):
        await until_counts(app, failed=1)
    assert (len(given_back), [event.lease.attempt for event in failed]) == (1, [2])
    assert 0 <= given_back[0].delay <= 0.001
    assert failed[0].lease.length == 300


# K14
async def test_each_end_of_an_attempt_is_an_event(app: Tenure, released: asyncio.Event) -> None:
    kinds = (JobSucceeded, JobReleased, JobFailed, SettlementLost)
    told = {kind: heard(app, kind) for kind in kinds}
    leases: list[Lease] = []

    @app.middleware
    async def note_the_lease(attempt: Any, call_next: Any) -> Any:
        leases.append(attempt.lease)
        return await call_next()

    await app.job(succeeds).push()
    await app.job(backoff=0)(always_fails).push()
    async with working(app):
        await until_counts(app, failed=1, leased=0)
        lost = await app.job(waits_to_be_released).push()
        await until(lambda: leases[-1].id == lost.id)
        # Somebody else settles it meanwhile: what the handler comes to is too late.
        assert list(await app.queue().settle([Ack(leases[-1])])) == [Settled.DONE]
        released.set()
        await until(lambda: told[SettlementLost])
    assert [len(told[kind]) for kind in kinds] == [1, 1, 1, 1]
    [event] = told[SettlementLost]
    assert (event.lease.id, event.settlement) == (lost.id, "Ack")


# K7
async def test_renewals_that_fail_are_told_once_an_outage_and_go_on_when_it_ends(
    valkey: Server, namespace: str, released: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with redis_like(valkey.binary) as server:
        app = Tenure(server.url, namespace=namespace)
        told = heard(app, RenewalFailed)
        lost = heard(app, SettlementLost)
        await app.job(waits_to_be_released).push()

        def said(text: str) -> bool:
            return any(text in record.getMessage() for record in caplog.records)

        async with working(app, lease=30):
            await until_counts(app, leased=1)
            server.kill9()
            await until(lambda: told)
            server.start()
            await until(lambda: said("renewing leases works again"))
            released.set()
            await until_counts(app, leased=0)
        assert len(told) == 1
        assert lost == []
        assert len([record for record in caplog.records if "renewing leases failed" in record.getMessage()]) == 1
        await app.aclose()


class Counted:
    """A keeper that notes how many of its calls are under way."""

    def __init__(self, inner: Keeper, under_way: list[int]) -> None:
        self._inner = inner
        self._now = 0
        self._under_way = under_way

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        self._now += 1
        self._under_way.append(self._now)
        try:
            return self._inner.renew(leases)
        finally:
            self._now -= 1

    def close(self) -> None:
        self._inner.close()


class Counting:
    """A real driver whose keepers are counted."""

    def __init__(self, inner: Queue) -> None:
        self._inner = inner
        self.under_way: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def keeper(self) -> Counted:
        return Counted(self._inner.keeper(), self.under_way)


# K7
async def test_one_renewal_of_a_worker_is_under_way_at_a_time(
    app: Tenure, released: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = app.job(waits_to_be_released)
    await app.push_many(job.bind() for _ in range(40))
    driver = Counting(app.queue())
    monkeypatch.setattr(app, "queue", lambda *_: driver)
    async with working(app, lease=0.3):
        await until(lambda: len(driver.under_way) >= 5)
        released.set()
        await until_counts(app, leased=0, ready=0)
    assert set(driver.under_way) == {1}


# K2
async def test_a_worker_that_dies_is_replaced_by_any_other_and_no_reaper(app: Tenure) -> None:
    job = app.job(succeeds)
    await job.push()
    [lease] = (await app.queue().claim(["default"], limit=1, lease=0.1, wait=0)).leases
    done = heard(app, JobSucceeded)
    async with working(app):
        await until(lambda: done)
    assert (done[0].lease.id, done[0].lease.attempt, done[0].lease.crashes) == (lease.id, 2, 1)

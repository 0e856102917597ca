"""Whatever somebody else writes under a queue's keys, every operation answers, or raises a ``StoreError``."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from tenure.drivers.redis import RedisQueue
from tenure.errors import StoreError
from tenure.naming import new_job_id
from tenure.queue import Ack, Fail, Failure, JobState, Lease, Push, Release, SetAside
from tenure.results import Progress, ProgressReport
from tests.support.fuzzing import BARRED, HOSTILE, LINES, inputs
from tests.support.servers import Server

HASHES = ("jobs", "running", "failed", "cancel", "kept", "taken")
SORTED = ("leased", "delayed", "ready:prio", "failed:at", "kept:at")
LISTS = ("ready", "suspects", "wake", "gone")
TEXTS = ("fence", "seq", "paused")
Q = "q"
SCORES = st.sampled_from([0.0, 1.0, 5e12, -1.0, float("inf"), float("-inf"), 1e300])
KEPT = st.tuples(st.sampled_from([b"s", b"n", b"f", b"e", b"c", b"p"]), BARRED).map(b"|".join)
PLANTED = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(HASHES), st.sampled_from([b"a", b"b", b"", b"\xff", b"x|y"]) | BARRED, LINES | HOSTILE
        ),
        st.tuples(st.just("kept"), st.sampled_from([b"a", b"b"]), KEPT),
        st.tuples(st.sampled_from(SORTED), BARRED | HOSTILE, SCORES),
        st.tuples(st.sampled_from(LISTS), BARRED | HOSTILE, st.none()),
        st.tuples(st.sampled_from(TEXTS), BARRED | HOSTILE, st.none()),
        st.tuples(st.just("unreadable"), HOSTILE, HOSTILE),
    ),
    min_size=1,
    max_size=6,
)


def plant(client: redis.Redis, start: str, planted: list[tuple[str, bytes, Any]]) -> None:
    raw: Any = client
    for name, first, second in planted:
        key = f"{start}{name}"
        if name in HASHES:
            raw.hset(key, first, second)
        elif name in SORTED:
            raw.zadd(key, {first: second})
        elif name in LISTS:
            raw.rpush(key, first)
        elif name in TEXTS:
            raw.set(key, first)
        else:
            raw.xadd(key, {b"id": first, b"reason": second, b"record": first})


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.torture
@pytest.mark.timeout(300)
@given(planted=PLANTED)
@inputs(0.08)
def test_every_operation_answers(planted: list[tuple[str, bytes, Any]], valkey: Server, runner: asyncio.Runner) -> None:
    namespace = f"f{new_job_id()}"
    start = f"{{{namespace}:{Q}}}:"
    with redis.Redis(unix_socket_path=valkey.socket) as client:
        plant(client, start, planted)
        try:
            runner.run(use(valkey.url, namespace))
        finally:
            client.unlink(*client.scan_iter(match=f"*{namespace}*", count=1000))


async def use(url: str, namespace: str) -> None:
    """Do everything once; errors of the store are answers."""
    queue = RedisQueue.from_url(url, namespace=namespace)
    try:
        held: list[Lease] = []
        for step in (
            lambda: queue.push(
                [Push(queue=Q, id="a", envelope=b"{}"), Push(queue=Q, id="c", envelope=b"{}", priority=3)]
            ),
            lambda: queue.states(Q, ["a", "b", "c"]),
            lambda: queue.counts(Q),
            lambda: claim(queue, held),
            lambda: queue.renew(held),
            lambda: queue.report([ProgressReport(lease, Progress(0.5, "half")) for lease in held]),
            lambda: queue.progress(Q, ["a", "b"]),
            lambda: queue.endings(Q, ["a", "b"]),
            *(
                lambda state=state: queue.jobs(Q, state)
                for state in (JobState.READY, JobState.DELAYED, JobState.RUNNING)
            ),
            lambda: queue.held_by(Q, "somebody"),
            lambda: queue.failed(Q),
            lambda: queue.failed_record(Q, "a"),
            lambda: queue.unreadable(Q),
            lambda: queue.cancel(Q, ["a", "b"]),
            lambda: settle(queue, held),
            lambda: queue.prune(Q, older_than=0),
            lambda: queue.paused([Q]),
            lambda: queue.resume(Q),
            lambda: queue.clear(Q),
            lambda: claim(queue, held),
        ):
            with contextlib.suppress(StoreError):
                await step()  # type: ignore[no-untyped-call]
    finally:
        await queue.aclose()


async def claim(queue: RedisQueue, held: list[Lease]) -> None:
    held += (await queue.claim([Q], limit=10, lease=30, wait=0)).leases


async def settle(queue: RedisQueue, held: list[Lease]) -> None:
    kinds = (Ack, Release, lambda lease: Fail(lease, Failure(reason="exception")), lambda lease: SetAside(lease, "odd"))
    await queue.settle([kinds[number % 4](lease) for number, lease in enumerate(held)])

"""Failed jobs are kept whole until somebody retries or forgets them, each once."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import time

import msgspec

from tenure.queue import Ack, Fail, Failure, Release, Settled
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    failed_jobs,
    failed_once,
    ids,
    job,
    lapsed,
    numbered,
    pass_time,
    push,
    pushed_and_claimed,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_a_failed_job_is_kept_with_its_reason_and_its_envelope(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x", envelope=b"\x00body\n"))
    await done(store.queue, Release(lease))
    lease = await claim_one(store.queue)
    why = Failure(reason="timeout", type="TimeoutError", message="too\nslow", traceback="File …\n" * 50)
    await done(store.queue, Fail(lease, why))
    assert await where(store.queue) == {"failed": 1}
    assert await claim(store.queue) == []
    record = await failed_jobs(store.another()).failed_record(Q, "x")
    assert record is not None
    assert (record.queue, record.id, record.incarnation, record.attempts) == (Q, "x", lease.incarnation, 2)
    assert record.failure == why
    assert record.envelope == b"\x00body\n"
    assert abs(record.failed_at - time.time()) < 60


async def test_free_returns_are_not_among_the_attempts_of_a_failed_job(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x"))
    await done(store.queue, Release(lease, free=True))
    await done(store.queue, Fail(await claim_one(store.queue), WHY))
    record = await failed_jobs(store.queue).failed_record(Q, "x")
    assert record is not None
    assert record.attempts == 1


async def test_a_failure_may_hold_any_text(store: StoreUnderTest) -> None:
    for text in (
        "",
        "|",
        "a|b\n|c",
        "naïve Ω 😀",
        "\x00\x01\x1b[31m",
        '{"a": [1]}\n',
        "x" * 20_000,
        "'; DROP TABLE jobs;--",
    ):
        why = Failure(reason="exception", type=text[:200], message=text, traceback=text)
        record = await failed_once(store.queue, job("x"), why)
        assert record.failure == why
        await failed_jobs(store.queue).forget([record])


async def test_failed_jobs_are_listed_oldest_first_and_in_pages(store: StoreUnderTest) -> None:
    order = ["c", "a", "e", "b", "d"]
    for one in order:
        await failed_once(store.queue, job(one))
        await pass_time(store.queue, 0.002)
    reader = failed_jobs(store.queue)
    assert [record.id for record in await reader.failed(Q)] == order
    assert [record.id for record in await reader.failed(Q, limit=2)] == order[:2]
    assert [record.id for record in await reader.failed(Q, limit=2, offset=3)] == order[3:]
    assert list(await reader.failed(Q, offset=5)) == []
    times = [record.failed_at for record in await reader.failed(Q)]
    assert times == sorted(times)


async def test_failed_jobs_are_kept_per_queue(store: StoreUnderTest) -> None:
    await failed_once(store.queue, job("x", queue="one"))
    reader = failed_jobs(store.queue)
    assert list(await reader.failed("two")) == []
    assert await reader.failed_record("two", "x") is None
    assert await reader.failed_record("one", "y") is None
    assert [record.id for record in await reader.failed("one")] == ["x"]


# S15
async def test_a_stale_failure_is_not_stored(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, lease=SHORT)
    await lapsed(store.queue)
    held = await claim_one(store.queue)
    assert await settle(store.queue, Fail(lease, WHY)) is Settled.STALE
    assert list(await failed_jobs(store.queue).failed(Q)) == []
    await done(store.queue, Ack(held))
    await assert_empty(store.queue)


async def test_a_retried_job_is_new_and_ready_and_no_longer_failed(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x", envelope=b"body"))
    await done(store.queue, Release(lease, crashed=True))
    lease = await claim_one(store.queue)
    await done(store.queue, Release(lease, free=True))
    lease = await claim_one(store.queue)
    await done(store.queue, Fail(lease, WHY))
    reader = failed_jobs(store.queue)
    assert list(await reader.retry(await reader.failed(Q))) == [True]
    assert await where(store.queue) == {"ready": 1}
    again = await claim_one(store.queue)
    assert (again.id, again.envelope) == ("x", b"body")
    assert (again.deliveries, again.free, again.crashes, again.attempt) == (1, 0, 0, 1)
    assert again.incarnation > lease.incarnation
    assert again.fence > lease.fence
    assert await reader.failed_record(Q, "x") is None


async def test_a_retried_job_may_fail_again(store: StoreUnderTest) -> None:
    reader = failed_jobs(store.queue)
    record = await failed_once(store.queue, job("x"))
    await reader.retry([record])
    await done(store.queue, Fail(await claim_one(store.queue), Failure(reason="timeout")))
    (second,) = await reader.failed(Q)
    assert (second.failure.reason, second.attempts) == ("timeout", 1)
    assert second.incarnation > record.incarnation
    assert await where(store.queue) == {"failed": 1}


async def test_a_failed_job_is_retried_once(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue)
    reader = failed_jobs(store.queue)
    assert list(await reader.retry([record, record])) == [True, False]
    assert list(await failed_jobs(store.another()).retry([record])) == [False]
    assert await where(store.queue) == {"ready": 1}


# S15
async def test_two_retries_at_the_same_time_have_one_winner(store: StoreUnderTest) -> None:
    one, two = failed_jobs(store.queue), failed_jobs(store.another())
    await push(store.queue, *numbered(30))
    await done(store.queue, *(Fail(lease, WHY) for lease in await claim(store.queue, 30)))
    records = await one.failed(Q)
    answers = await asyncio.gather(one.retry(records), two.retry(records), one.retry(records[::-1]))
    wins = [*answers[0], *answers[1], *answers[2]].count(True)
    assert wins == 30
    assert await where(store.queue) == {"ready": 30}
    assert len(set(ids(await drained(store.queue, 30)))) == 30


async def test_a_record_of_an_earlier_failure_neither_retries_nor_forgets_a_later_one(store: StoreUnderTest) -> None:
    reader = failed_jobs(store.queue)
    earlier = await failed_once(store.queue, job("x"))
    await reader.retry([earlier])
    await done(store.queue, Fail(await claim_one(store.queue), WHY))
    assert list(await reader.retry([earlier])) == [False]
    assert list(await reader.forget([earlier])) == [False]
    assert await where(store.queue) == {"failed": 1}


async def test_a_record_of_a_failure_does_not_touch_the_job_that_came_of_its_retry(store: StoreUnderTest) -> None:
    reader = failed_jobs(store.queue)
    record = await failed_once(store.queue, job("x"))
    await reader.retry([record])
    assert list(await reader.retry([record])) == [False]
    assert list(await reader.forget([record])) == [False]
    assert ids(await drained(store.queue, 1)) == ["x"]
    assert list(await reader.retry([record])) == [False]
    await assert_empty(store.queue)


async def test_a_forgotten_job_is_gone(store: StoreUnderTest) -> None:
    reader = failed_jobs(store.queue)
    record = await failed_once(store.queue)
    assert list(await reader.forget([record, record])) == [True, False]
    assert list(await reader.retry([record])) == [False]
    assert list(await reader.failed(Q)) == []
    await assert_empty(store.queue)


async def test_operations_on_failed_jobs_are_answered_in_order_and_over_queues(store: StoreUnderTest) -> None:
    reader = failed_jobs(store.queue)
    a = await failed_once(store.queue, job("a", queue="one"))
    b = await failed_once(store.queue, job("b", queue="two"))
    c = await failed_once(store.queue, job("c", queue="one"))
    never = msgspec.structs.replace(a, id="never")
    assert list(await reader.retry([never, c, b])) == [False, True, True]
    assert list(await reader.forget([b, a, never])) == [False, True, False]
    assert [await where(store.queue, name) for name in ("one", "two")] == [{"ready": 1}, {"ready": 1}]
    assert list(await reader.retry([])) == []


async def test_clearing_and_cancelling_leave_failed_jobs_alone(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue)
    assert await store.queue.clear(Q) == 0
    assert [one.value for one in await store.queue.cancel(Q, [record.id])] == ["not_found"]
    assert await where(store.queue) == {"failed": 1}

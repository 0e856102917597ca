"""At most one job of a queue with the same unique text waits or runs, and nothing that ends keeps it (P1)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure.queue import (
    Ack,
    Cancelled,
    Doom,
    Drop,
    Fail,
    Failure,
    Lease,
    Push,
    Pushed,
    Queue,
    Release,
    SetAside,
    Settled,
    Settlement,
)
from tenure.testing.contract.composing import unique
from tenure.testing.contract.operators import pruning
from tenure.testing.contract.racing import contenders
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    crashed,
    done,
    drained,
    failed_jobs,
    failed_once,
    ids,
    job,
    lapsed,
    pass_time,
    push,
    pushed_and_claimed,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

U = unique("u")


def needs_unique(store: StoreUnderTest) -> Queue:
    if not store.queue.capabilities.unique:
        pytest.skip(f"the driver {store.queue.capabilities.driver!r} has no unique jobs")
    return store.queue


def one(job_id: str, text: str = U, **options: Any) -> Push:
    return job(job_id, unique=text, **options)


async def tried(queue: Queue, job_id: str = "y", text: str = U) -> tuple[str, str]:
    """Push another job with the text; return the id that is told, and the outcome."""
    (answer,) = await queue.push([one(job_id, text)])
    assert answer.error is None
    return answer.id, answer.outcome


async def held(queue: Queue, holder: str = "x") -> None:
    assert await tried(queue, f"not-{holder}") == (holder, "held")


async def freed(queue: Queue, job_id: str = "y") -> None:
    """Assert that another job can be pushed, and has the text then."""
    assert await tried(queue, job_id) == (job_id, "stored")
    await held(queue, job_id)


@pytest.mark.parametrize("delay", [0.0, 60.0], ids=["ready", "delayed"])
async def test_a_unique_job_that_waits_holds_others_and_its_id_is_told(store: StoreUnderTest, delay: float) -> None:
    queue = needs_unique(store)
    await push(queue, one("x", delay=delay, envelope=b"first"))
    await held(queue)
    await held(store.another())
    assert await where(queue) == {"delayed" if delay else "ready": 1}
    if not delay:
        assert [(lease.id, lease.envelope) for lease in await claim(queue, 10)] == [("x", b"first")]


async def test_a_unique_job_that_runs_holds_others_also_when_its_lease_has_lapsed(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    lease = await pushed_and_claimed(queue, one("x"), lease=SHORT)
    await held(queue)
    await lapsed(queue)
    await held(queue)
    again = await claim_one(queue)
    await held(queue)
    # Neither what is stale nor a renewal changes anything.
    for settlement in (Ack(lease), Drop(lease), Fail(lease, WHY), SetAside(lease, "no"), Release(lease)):
        assert await settle(queue, settlement) is Settled.STALE
    await held(queue)
    await done(queue, Ack(again))
    await freed(queue)


async def test_a_unique_job_that_is_given_back_holds_others_still(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await done(queue, Release(await pushed_and_claimed(queue, one("x"))))
    await held(queue)
    await done(queue, Release(await claim_one(queue), delay=0.05, free=True))
    await held(queue)
    await pass_time(queue, 0.06)
    await held(queue)
    await done(queue, Ack(await claim_one(queue)))
    await freed(queue)


async def test_a_unique_suspect_holds_others(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await push(queue, one("x", crash_limit=2))
    await crashed(queue, 1)
    await held(queue)
    await done(queue, Ack(await claim_one(queue)))
    await freed(queue)


async def test_of_two_unique_jobs_in_one_call_the_second_is_held_by_the_first(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    v = unique("v")
    answers = await queue.push([one("a"), job("b"), one("c"), one("d", v), one("e"), one("f", v), one("a")])
    assert [(answer.id, answer.outcome) for answer in answers] == [
        ("a", "stored"),
        ("b", "stored"),
        ("a", "held"),
        ("d", "stored"),
        ("a", "held"),
        ("d", "held"),
        ("a", "held"),
    ]
    assert ids(await drained(queue, 3)) == ["a", "b", "d"]
    await assert_empty(queue)


async def test_many_unique_jobs_in_one_call_are_each_stored_once(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    texts = [unique(str(number)) for number in range(600)]
    answers = await queue.push([*(one(f"a{n}", text) for n, text in enumerate(texts))])
    assert {answer.outcome for answer in answers} == {"stored"}
    answers = await queue.push([*(one(f"b{n}", text) for n, text in enumerate(texts))])
    assert list(answers) == [Pushed(f"a{number}", "held") for number in range(600)]
    assert len(await drained(queue, 600, batch=200)) == 600
    await assert_empty(queue)


async def test_other_texts_other_queues_and_other_namespaces_hold_nothing(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await push(queue, one("x"), job("plain-1"), job("plain-2"), one("v", unique("v")), one("x", queue="other"))
    await push(store.elsewhere(), one("x"))
    await held(queue)


async def test_an_id_that_exists_is_held_by_itself(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await push(queue, one("x"), job("y"))
    assert await tried(queue, "y") == ("y", "held")
    assert await tried(queue, "x", unique("v")) == ("x", "held")
    await held(queue)
    # What was held has taken nothing.
    assert await tried(queue, "v", unique("v")) == ("v", "stored")


ENDS: dict[str, Callable[[Lease], Settlement]] = {
    "ack": Ack,
    "drop": Drop,
    "fail": lambda lease: Fail(lease, WHY),
    "expired": lambda lease: Fail(lease, Failure(reason="expired")),
    "set aside": lambda lease: SetAside(lease, "unreadable"),
}


@pytest.mark.parametrize("keep", [0.0, 60.0], ids=["", "kept"])
@pytest.mark.parametrize("end", ENDS)
async def test_every_settlement_that_ends_a_unique_job_frees_its_text(
    store: StoreUnderTest, end: str, keep: float
) -> None:
    queue = needs_unique(store)
    if keep and not queue.capabilities.results:
        pytest.skip(f"the driver {queue.capabilities.driver!r} keeps no results (Results)")
    lease = await pushed_and_claimed(queue, one("x", keep=keep))
    await held(queue)
    await done(queue, ENDS[end](lease))
    await freed(queue)


async def test_a_settlement_and_a_push_of_the_next_follow_each_other_for_ever(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    for number in range(20):
        lease = await pushed_and_claimed(queue, one(f"x{number % 2}"))
        await done(queue, Ack(lease))
    await assert_empty(queue)


@pytest.mark.parametrize("delay", [0.0, 60.0], ids=["ready", "delayed"])
async def test_a_cancel_of_a_unique_job_that_waits_frees_its_text(store: StoreUnderTest, delay: float) -> None:
    queue = needs_unique(store)
    await push(queue, one("x", delay=delay))
    assert list(await queue.cancel(Q, ["x"])) == [Cancelled.REMOVED]
    await freed(queue)


async def test_a_unique_job_that_is_to_be_cancelled_holds_others_until_it_is(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    lease = await pushed_and_claimed(queue, one("x"))
    if list(await queue.cancel(Q, ["x"])) != [Cancelled.REQUESTED]:
        pytest.skip(f"the driver {queue.capabilities.driver!r} cannot cancel what runs")
    await held(queue)
    assert await settle(queue, Release(lease)) is Settled.CANCELLED
    await freed(queue)


async def test_a_cancel_of_one_that_died_frees_its_text_when_it_is_released(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await pushed_and_claimed(queue, one("x"), lease=SHORT)
    if list(await queue.cancel(Q, ["x"])) != [Cancelled.REQUESTED]:
        pytest.skip(f"the driver {queue.capabilities.driver!r} cannot cancel what runs")
    await lapsed(queue)
    lease = await claim_one(queue)
    assert lease.doomed is Doom.CANCELLED
    await held(queue)
    assert await settle(queue, Release(lease)) is Settled.CANCELLED
    await freed(queue)


async def test_a_unique_job_whose_time_has_passed_holds_others_until_it_has_failed(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await push(queue, one("x", expires_in=0.02))
    await pass_time(queue, 0.05)
    await held(queue)
    lease = await claim_one(queue)
    assert lease.doomed is Doom.EXPIRED
    await done(queue, Fail(lease, Failure(reason="expired")))
    await freed(queue)


async def test_a_clear_frees_the_texts_of_what_waited_at_once_and_of_nothing_else(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await pushed_and_claimed(queue, one("runs", unique("r")))
    await push(queue, one("x"), one("later", unique("l"), delay=60), *(job(f"j{n}") for n in range(300)))
    assert await queue.clear(Q) == 302
    assert await tried(queue, "x") == ("x", "stored")
    assert await tried(queue, "later-2", unique("l")) == ("later-2", "stored")
    assert await tried(queue, "runs-2", unique("r")) == ("runs", "held")
    # Whatever a driver sweeps later takes nothing from those that have the texts now.
    assert ids(await claim(queue, 10)) == ["x", "later-2"]
    await held(queue)
    assert await tried(queue, "later-3", unique("l")) == ("later-2", "held")


async def test_an_id_that_was_cleared_and_pushed_anew_without_a_text_holds_nothing(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await push(queue, one("x"))
    assert await queue.clear(Q) == 1
    await push(queue, job("x"))
    await freed(queue, "y")
    assert ids(await drained(queue, 2)) == ["x", "y"]
    await freed(queue, "z")


async def test_the_end_of_another_job_frees_nothing(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    record = await failed_once(queue, one("old"))
    await push(queue, one("x"), job("other"))
    assert list(await failed_jobs(queue).forget([record])) == [True]
    await held(queue)
    assert list(await queue.cancel(Q, ["old", "other", "not-x"])) == [
        Cancelled.NOT_FOUND,
        Cancelled.REMOVED,
        Cancelled.NOT_FOUND,
    ]
    await held(queue)
    await done(queue, Ack(await claim_one(queue)))
    await freed(queue)


async def test_a_failed_job_has_no_text_when_it_is_pruned(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    await failed_once(queue, one("old"))
    await push(queue, one("x"))
    assert await pruning(queue).prune(Q, older_than=0) == 1
    await held(queue)


async def test_a_retry_takes_the_text_again(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    record = await failed_once(queue, one("x"))
    assert list(await failed_jobs(queue).retry([record])) == [True]
    await held(queue)
    lease = await claim_one(queue)
    await held(queue)
    await done(queue, Ack(lease))
    await freed(queue)


async def test_a_retry_changes_nothing_while_another_job_has_the_text(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    reader = failed_jobs(queue)
    record = await failed_once(queue, one("x"))
    await push(queue, one("y"))
    assert list(await reader.retry([record])) == [False]
    assert await reader.failed_record(Q, "x") == record
    assert await where(queue) == {"ready": 1, "failed": 1}
    lease = await claim_one(queue)
    assert lease.id == "y"
    assert list(await reader.retry([record])) == [False]
    await done(queue, Ack(lease))
    assert list(await reader.retry([record])) == [True]
    await held(queue)
    assert await where(queue) == {"ready": 1}


async def test_of_two_failed_jobs_with_one_text_one_is_retried(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    reader = failed_jobs(queue)
    records = [await failed_once(queue, one("x")), await failed_once(queue, one("y"))]
    assert list(await reader.retry(records)) == [True, False]
    assert await where(queue) == {"ready": 1, "failed": 1}
    await held(queue)


async def test_a_blocking_pusher_is_held_by_a_unique_job_too(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    pusher = queue.pusher()
    try:
        answers = await asyncio.to_thread(pusher.push, [one("x"), one("y")])
        assert [(answer.id, answer.outcome) for answer in answers] == [("x", "stored"), ("x", "held")]
        answers = await asyncio.to_thread(pusher.push, [one("z")])
        assert [(answer.id, answer.outcome) for answer in answers] == [("x", "held")]
    finally:
        await asyncio.to_thread(pusher.close)
    await held(queue)


async def test_pushes_of_one_text_at_once_store_one_job(store: StoreUnderTest) -> None:
    queue, other = needs_unique(store), store.another()
    for number in range(10):
        text = unique(f"text {number}")
        calls = [each.push([one(f"{name}{number}", text)]) for each, name in ((queue, "a"), (other, "b"), (queue, "c"))]
        answers = [answer for (answer,) in await asyncio.gather(*calls)]
        assert sorted(answer.outcome for answer in answers) == ["held", "held", "stored"]
        assert len({answer.id for answer in answers}) == 1
    assert await where(queue) == {"ready": 10}


async def test_one_text_pushed_by_several_processes_is_one_job(store: StoreUnderTest) -> None:
    queue = needs_unique(store)
    texts = [unique(str(number)) for number in range(200)]
    async with contenders(store, "contend", [{"seed": seed, "texts": texts} for seed in range(3)]) as racers:
        reports = await asyncio.gather(*(racer.hear() for racer in racers))
    for text in texts:
        answers = [report["answers"][text] for report in reports]
        assert sorted(outcome for _, outcome in answers) == ["held", "held", "stored"]
        assert len({job_id for job_id, _ in answers}) == 1
    assert await where(queue) == {"ready": 200}


async def test_pushes_and_ends_that_race_leave_at_most_one_job_at_a_time(store: StoreUnderTest) -> None:
    queue, other = needs_unique(store), store.another()
    stored = ran = 0
    for number in range(60):
        (answer,), leases = await asyncio.gather(other.push([one(f"x{number}")]), claim(queue, 5))
        assert len(leases) <= 1
        stored += answer.outcome == "stored"
        answers = await asyncio.gather(
            queue.settle([*map(Ack, leases)]), other.push([one(f"y{number}")]), queue.push([one(f"z{number}")])
        )
        ran += list(answers[0]).count(Settled.DONE)
        stored += sum(one.outcome == "stored" for (one,) in answers[1:])
        counts = await queue.counts(Q)
        assert counts.ready + counts.leased == stored - ran <= 1
    assert ran > 10

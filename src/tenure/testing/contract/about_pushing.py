"""A push stores each job once, whatever state its id is in (P1)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

from tenure.queue import Ack, Drop, Fail, Release
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
    jobs,
    lapsed,
    numbered,
    push,
    pushed_and_claimed,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_a_pushed_job_is_stored_and_ready(store: StoreUnderTest) -> None:
    await push(store.queue, job())
    assert await where(store.queue) == {"ready": 1}
    assert await where(store.another()) == {"ready": 1}


async def test_a_push_answers_for_each_job_in_order(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs("b", "d"))
    answers = await store.queue.push(jobs("a", "b", "c", "d"))
    assert [(one.id, one.outcome, one.error) for one in answers] == [
        ("a", "stored", None),
        ("b", "held", None),
        ("c", "stored", None),
        ("d", "held", None),
    ]
    assert ids(await claim(store.queue, 10)) == ["b", "d", "a", "c"]


async def test_a_push_of_no_jobs_changes_nothing(store: StoreUnderTest) -> None:
    assert list(await store.queue.push([])) == []
    await assert_empty(store.queue)


async def test_an_id_that_is_ready_is_held_and_nothing_changes(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", envelope=b"first"))
    priority = 5 if store.queue.capabilities.priorities else 0
    (answer,) = await store.another().push([job("x", envelope=b"second", priority=priority, delay=60)])
    assert answer.outcome == "held"
    assert await where(store.queue) == {"ready": 1}
    assert [lease.envelope for lease in await drained(store.queue, 1)] == [b"first"]


async def test_an_id_that_is_delayed_is_held_and_keeps_its_delay(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", delay=60))
    (answer,) = await store.queue.push([job("x")])
    assert answer.outcome == "held"
    assert await where(store.queue) == {"delayed": 1}
    assert await claim(store.queue) == []


async def test_an_id_that_runs_is_held(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x"))
    (answer,) = await store.queue.push([job("x")])
    assert answer.outcome == "held"
    assert await where(store.queue) == {"leased": 1}
    await done(store.queue, Ack(lease))
    await assert_empty(store.queue)


async def test_an_id_whose_lease_has_lapsed_is_held(store: StoreUnderTest) -> None:
    await pushed_and_claimed(store.queue, job("x"), lease=SHORT)
    await lapsed(store.queue)
    (answer,) = await store.queue.push([job("x")])
    assert answer.outcome == "held"
    assert len(await drained(store.queue, 1)) == 1


async def test_an_id_that_was_released_is_held(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x"))
    await done(store.queue, Release(lease))
    (answer,) = await store.queue.push([job("x")])
    assert answer.outcome == "held"
    assert (await claim_one(store.queue)).deliveries == 2


async def test_an_id_that_has_failed_is_held(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x"))
    await done(store.queue, Fail(lease, WHY))
    (answer,) = await store.queue.push([job("x")])
    assert answer.outcome == "held"
    assert await where(store.queue) == {"failed": 1}


async def test_an_id_repeated_inside_one_push_is_stored_once(store: StoreUnderTest) -> None:
    answers = await store.queue.push([job("x", envelope=b"1"), job("y"), job("x", envelope=b"2", delay=60)])
    assert [one.outcome for one in answers] == ["stored", "stored", "held"]
    assert await where(store.queue) == {"ready": 2}
    assert [lease.envelope for lease in await drained(store.queue, 2) if lease.id == "x"] == [b"1"]


async def test_an_id_whose_job_is_done_makes_a_new_job(store: StoreUnderTest) -> None:
    first = await pushed_and_claimed(store.queue, job("x", envelope=b"1"))
    await done(store.queue, Ack(first))
    second = await pushed_and_claimed(store.queue, job("x", envelope=b"2"))
    assert second.envelope == b"2"
    assert second.incarnation > first.incarnation
    assert second.fence > first.fence
    assert (second.deliveries, second.attempt, second.crashes, second.free) == (1, 1, 0, 0)


async def test_an_id_whose_job_was_dropped_makes_a_new_job(store: StoreUnderTest) -> None:
    await done(store.queue, Drop(await pushed_and_claimed(store.queue, job("x"))))
    assert (await pushed_and_claimed(store.queue, job("x"))).deliveries == 1


async def test_an_id_whose_waiting_job_was_cancelled_makes_a_new_job(store: StoreUnderTest) -> None:
    for delay in (0.0, 60.0):
        await push(store.queue, job("x", delay=delay))
        await store.queue.cancel(Q, ["x"])
        await push(store.queue, job("x", envelope=b"new"))
        assert [lease.envelope for lease in await drained(store.queue, 1)] == [b"new"]
        await assert_empty(store.queue)


async def test_an_id_whose_failed_job_was_forgotten_makes_a_new_job(store: StoreUnderTest) -> None:
    record = await failed_once(store.queue, job("x"))
    assert list(await failed_jobs(store.queue).forget([record])) == [True]
    assert (await pushed_and_claimed(store.queue, job("x"))).deliveries == 1


async def test_the_same_id_in_two_queues_is_two_jobs(store: StoreUnderTest) -> None:
    await push(store.queue, job("x", envelope=b"q"), job("x", queue="other", envelope=b"other"))
    leases = await claim(store.queue, 10, queues=[Q, "other"])
    assert [(lease.queue, lease.id, lease.envelope) for lease in leases] == [(Q, "x", b"q"), ("other", "x", b"other")]
    await done(store.queue, Ack(leases[0]))
    assert await where(store.queue, "other") == {"leased": 1}


async def test_one_push_reaches_several_queues_and_is_answered_in_order(store: StoreUnderTest) -> None:
    await push(store.queue, job("b", queue="two"))
    pushes = [job(name, queue=queue) for name in "abcd" for queue in ("one", "two", "three")]
    answers = await store.queue.push(pushes)
    assert [one.id for one in answers] == [one.id for one in pushes]
    assert [index for index, one in enumerate(answers) if one.outcome == "held"] == [4]
    for queue, order in (("one", "abcd"), ("two", "bacd"), ("three", "abcd")):
        assert "".join(ids(await claim(store.queue, 10, queues=[queue]))) == order


async def test_more_jobs_than_one_call_carries_are_stored_in_order(store: StoreUnderTest) -> None:
    pushes = numbered(1201)
    await push(store.queue, *pushes)
    assert await where(store.queue) == {"ready": 1201}
    assert ids(await drained(store.queue, 1201, batch=100)) == [one.id for one in pushes]


async def test_more_bytes_than_one_call_carries_are_stored_whole(store: StoreUnderTest) -> None:
    pushes = [job(f"big-{number:02}", envelope=bytes([number]) * 60_000) for number in range(40)]
    await push(store.queue, *pushes)
    leases = await drained(store.queue, 40, batch=10)
    assert [(lease.id, lease.envelope) for lease in leases] == [(one.id, one.envelope) for one in pushes]


async def test_an_envelope_larger_than_one_call_carries_is_stored_or_refused_whole(store: StoreUnderTest) -> None:
    huge = b"x" * (3 * 1024 * 1024)
    answers = await store.queue.push([job("before"), job("huge", envelope=huge), job("after")])
    stored = [one.id for one in answers if one.outcome == "stored"]
    assert [one.outcome for one in answers if one.id not in stored] == ["refused"] * (3 - len(stored))
    leases = await drained(store.queue, len(stored))
    assert ids(leases) == stored
    assert all(lease.envelope == huge for lease in leases if lease.id == "huge")

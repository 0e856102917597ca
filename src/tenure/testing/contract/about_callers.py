"""A cancelled caller leaves no call half made, and the next answer belongs to the next call."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from tenure.queue import Ack, Claimed, Lease
from tenure.testing.contract.steps import (
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    eventually,
    ids,
    job,
    numbered,
    push,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

T = TypeVar("T")


async def cut_short(call: Coroutine[Any, Any, T], after: float) -> T | None:
    """Run the call and cancel it after so many seconds; return its answer if it was faster."""
    task = asyncio.create_task(call)
    await asyncio.wait([task], timeout=after)
    task.cancel()
    (answer,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(answer, asyncio.CancelledError):
        return None
    assert not isinstance(answer, BaseException), answer
    return answer


async def test_a_cancelled_wait_takes_no_job_that_comes_later(store: StoreUnderTest) -> None:
    assert await cut_short(claim(store.queue, wait=20), 0.1) is None
    await push(store.another(), job("x"))
    lease = await claim_one(store.queue, wait=5)
    assert (lease.id, lease.attempt) == ("x", 1)


async def test_what_a_cancelled_claim_brought_is_given_back_free_of_charge(store: StoreUnderTest) -> None:
    dice = random.Random(3)  # noqa: S311 - moments that can be had again
    await push(store.queue, *numbered(10))
    kept: list[Lease] = []
    for _ in range(60):
        claimed = await cut_short(store.queue.claim([Q], limit=3, lease=60, wait=0), dice.random() * 0.004)
        if isinstance(claimed, Claimed):
            await done(store.queue, *map(Ack, claimed.leases))
            kept += claimed.leases
            if len(kept) >= 10:
                break
    assert len(set(ids(kept))) == len(kept)

    async def at_rest() -> bool:
        return (await store.queue.counts(Q)).leased == 0

    await eventually(at_rest, what="what cancelled claims brought is back")
    kept += await drained(store.queue, 10 - len(kept))
    assert len(set(ids(kept))) == 10
    assert {(lease.attempt, lease.crashes) for lease in kept} == {(1, 0)}
    assert all(lease.deliveries - lease.free == 1 for lease in kept)


async def test_a_claim_cancelled_while_a_push_wakes_it_loses_no_job(store: StoreUnderTest) -> None:
    dice = random.Random(4)  # noqa: S311 - moments that can be had again
    pusher = store.another()
    got: list[str] = []
    for number in range(40):
        claiming = asyncio.create_task(cut_short(claim(store.queue, wait=20), 0.01 + dice.random() * 0.01))
        await asyncio.sleep(dice.random() * 0.02)
        await push(pusher, job(f"j{number}"))
        leases = await claiming or []
        got += ids(leases)
        await done(store.queue, *map(Ack, leases))

    async def at_rest() -> bool:
        return (await store.queue.counts(Q)).leased == 0

    await eventually(at_rest, what="what cancelled claims brought is back")
    left = await drained(store.queue, 40 - len(got))
    assert {lease.attempt for lease in left} <= {1}
    assert sorted(got + ids(left)) == sorted(f"j{number}" for number in range(40))


async def test_a_cancelled_push_makes_each_job_once_or_not_at_all(store: StoreUnderTest) -> None:
    dice = random.Random(5)  # noqa: S311 - moments that can be had again
    names = [f"j{number}" for number in range(60)]
    told = []
    for name in names:
        answers = await cut_short(store.queue.push([job(name)]), dice.random() * 0.003)
        told += [one.id for one in answers or () if one.outcome == "stored"]
    again = await store.queue.push([job(name) for name in names])
    assert {one.outcome for one in again if one.id in told} <= {"held"}
    assert sorted(ids(await drained(store.queue, 60))) == sorted(names)
    await assert_empty(store.queue)


async def test_a_cancelled_settlement_is_made_once_or_not_at_all(store: StoreUnderTest) -> None:
    dice = random.Random(6)  # noqa: S311 - moments that can be had again
    await push(store.queue, *numbered(40))
    leases = await claim(store.queue, 40)
    for lease in leases:
        await cut_short(store.queue.settle([Ack(lease)]), dice.random() * 0.003)
    answers = await store.queue.settle([Ack(lease) for lease in leases])
    assert {answer.value for answer in answers} <= {"done", "stale", "repeated"}
    await assert_empty(store.queue)


async def test_a_cancelled_call_does_not_leave_its_answer_to_the_next(store: StoreUnderTest) -> None:
    dice = random.Random(7)  # noqa: S311 - moments that can be had again
    await push(store.queue, *numbered(5), job("d", delay=60))
    held = await claim(store.queue, 2)
    for number in range(50):
        after = dice.random() * 0.002
        await cut_short(store.queue.counts(Q), after)
        await cut_short(store.queue.renew(held), after)
        await cut_short(store.queue.cancel(Q, ["never"]), after)
        await cut_short(store.queue.push([job("d")]), after)
        assert [one.value for one in await store.queue.cancel(Q, ["never", "never"])] == ["not_found"] * 2
        assert [one.value for one in await store.queue.renew(held)] == ["held"] * 2
        assert await where(store.queue) == {"ready": 3, "delayed": 1, "leased": 2}
        (answer,) = await store.queue.push([job(f"n{number}", queue="other")])
        assert (answer.id, answer.outcome) == (f"n{number}", "stored")


async def test_many_callers_at_once_are_each_answered_for_themselves(store: StoreUnderTest) -> None:
    async def caller(number: int) -> None:
        name = f"q{number % 5}"
        (pushed,) = await store.queue.push([job(f"j{number}", queue=name)])
        assert (pushed.id, pushed.outcome) == (f"j{number}", "stored")
        lease = await claim_one(store.queue, queues=[name], wait=10)
        assert lease.queue == name
        assert [one.value for one in await store.queue.renew([lease])] == ["held"]
        await done(store.queue, Ack(lease))

    await asyncio.gather(*map(caller, range(60)))
    for number in range(5):
        assert await where(store.queue, f"q{number}") == {}

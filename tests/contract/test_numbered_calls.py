"""A reply that is lost on its way changes nothing: the library repeats the call, and the repeat has no effect (P1).

The proxy stands between one driver and the server; another driver, past it, sees what the store really holds.
"""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tenure.drivers.redis.layout import LISTS, STREAMS
from tenure.errors import OutcomeUnknown
from tenure.queue import Ack, Fail, JobState, Release, Renewal, Settled, Settlement
from tenure.testing.contract.steps import (
    WHY,
    Q,
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    eventually,
    failed_jobs,
    failed_once,
    ids,
    job,
    numbered,
    push,
    pushed_and_claimed,
    settle,
    where,
)
from tests.contract import bridges
from tests.contract.bridges import Bridge
from tests.contract.conftest import SERVERS
from tests.support.proxy import Fault

DRIVERS = ["redis", "valkey", "valkey-streams"]
SCRIPT = b"EVALSHA"


@pytest.fixture
async def bridge(driver: str, namespace: str, request: pytest.FixtureRequest) -> AsyncIterator[Bridge]:
    layout = STREAMS if driver.endswith("-streams") else LISTS
    async with bridges.opened(request.getfixturevalue(SERVERS[driver]), namespace, layout=layout) as bridge:
        yield bridge


async def happened(fault: Fault) -> None:
    """Return when the fault has hit, without standing in the way of the call that it hits."""
    await asyncio.to_thread(fault.wait)


async def test_a_push_whose_reply_is_cut_makes_exactly_one_job(bridge: Bridge) -> None:
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    answers = await bridge.shaky.push([job("x"), job("y"), job("x")])
    assert fault.happened
    assert [(one.id, one.outcome) for one in answers] == [("x", "stored"), ("y", "stored"), ("x", "held")]
    assert await where(bridge.direct) == {"ready": 2}
    assert ids(await drained(bridge.direct, 2)) == ["x", "y"]


async def test_a_push_whose_reply_is_torn_in_the_middle_makes_exactly_one_job(bridge: Bridge) -> None:
    fault = bridge.proxy.cut_next_reply(match=SCRIPT, keep=6)
    await push(bridge.shaky, job("x"))
    assert fault.happened
    assert await where(bridge.direct) == {"ready": 1}


async def test_a_push_that_never_arrived_is_sent_again(bridge: Bridge) -> None:
    fault = bridge.proxy.cut_next_request(match=SCRIPT)
    await push(bridge.shaky, job("x"))
    assert fault.happened
    assert await where(bridge.direct) == {"ready": 1}


@pytest.mark.parametrize("end", ["acked", "cancelled", "cleared"])
async def test_a_push_whose_job_ended_before_the_repeat_arrives_makes_no_second_job(bridge: Bridge, end: str) -> None:
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    pushing = asyncio.create_task(bridge.shaky.push([job("x")]))
    bridge.proxy.refuse()
    await happened(fault)
    if end == "acked":
        await done(bridge.direct, Ack(await claim_one(bridge.direct)))
    elif end == "cancelled":
        assert [one.value for one in await bridge.direct.cancel(Q, ["x"])] == ["removed"]
    else:
        assert await bridge.direct.clear(Q) == 1
    await assert_empty(bridge.direct)
    assert not pushing.done()
    bridge.proxy.heal()
    (answer,) = await pushing
    assert (answer.id, answer.outcome) == ("x", "stored")
    await assert_empty(bridge.direct)


async def test_a_push_in_several_parts_survives_a_cut_in_each(bridge: Bridge) -> None:
    faults = [bridge.proxy.cut_next_reply(match=SCRIPT) for _ in range(3)]
    pushes = numbered(1200)
    await push(bridge.shaky, *pushes)
    assert all(fault.happened for fault in faults)
    assert ids(await drained(bridge.direct, 1200, batch=200)) == [one.id for one in pushes]


@pytest.mark.parametrize("kind", ["ack", "release", "delayed", "crashed", "fail"])
async def test_a_settlement_whose_reply_is_cut_is_made_once_and_is_not_called_stale(bridge: Bridge, kind: str) -> None:
    lease = await pushed_and_claimed(bridge.shaky, job("x", crash_limit=9))
    kinds: dict[str, tuple[Settlement, dict[str, int]]] = {
        "ack": (Ack(lease), {}),
        "release": (Release(lease), {"ready": 1}),
        "delayed": (Release(lease, delay=60), {"delayed": 1}),
        "crashed": (Release(lease, crashed=True), {"ready": 1}),
        "fail": (Fail(lease, WHY), {"failed": 1}),
    }
    settlement, left = kinds[kind]
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    assert await settle(bridge.shaky, settlement) in {Settled.DONE, Settled.REPEATED}
    assert fault.happened
    assert await where(bridge.direct) == left
    assert await settle(bridge.shaky, settlement) is Settled.STALE
    if left == {"ready": 1}:
        again = await claim_one(bridge.direct)
        assert (again.deliveries, again.crashes) == (2, kind == "crashed")


async def test_an_acknowledgement_whose_reply_is_cut_keeps_its_result_once_and_not_that_of_a_later_life(
    bridge: Bridge,
) -> None:
    lease = await pushed_and_claimed(bridge.shaky, job("x", keep=60.0))
    bridge.proxy.blackhole()
    settling = asyncio.create_task(settle(bridge.shaky, Ack(lease, b"first")))

    async def ended() -> bool:
        return await bridge.direct.states(Q, ["x"]) == [JobState.SUCCEEDED]

    await eventually(ended)
    # While its answer is on the way, the id begins a new life, which ends before the call comes again.
    await done(bridge.direct, Ack(await pushed_and_claimed(bridge.direct, job("x", keep=60.0)), b"second"))
    bridge.proxy.heal()
    assert await settling in {Settled.DONE, Settled.REPEATED}
    (end,) = await bridge.direct.endings(Q, ["x"])
    assert end is not None
    assert end.result == b"second"


async def test_a_release_whose_job_runs_again_before_the_repeat_arrives_does_not_touch_the_new_lease(
    bridge: Bridge,
) -> None:
    lease = await pushed_and_claimed(bridge.shaky, job("x"))
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    releasing = asyncio.create_task(settle(bridge.shaky, Release(lease)))
    bridge.proxy.refuse()
    await happened(fault)
    held = await claim_one(bridge.direct)
    assert not releasing.done()
    bridge.proxy.heal()
    assert await releasing in {Settled.DONE, Settled.REPEATED}
    assert await bridge.direct.renew([held]) == [Renewal.HELD]
    assert await where(bridge.direct) == {"leased": 1}
    await done(bridge.direct, Ack(held))


async def test_a_mixed_settlement_whose_reply_is_cut_is_answered_as_it_was_made(bridge: Bridge) -> None:
    await push(bridge.shaky, *numbered(5))
    leases = await claim(bridge.shaky, 5)
    await done(bridge.direct, Ack(leases[1]))
    assert [one.value for one in await bridge.direct.cancel(Q, [leases[2].id])] == ["requested"]
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    answers = await bridge.shaky.settle(
        [Ack(leases[0]), Ack(leases[1]), Release(leases[2]), Fail(leases[3], WHY), Release(leases[4])]
    )
    assert fault.happened
    said = ["repeated" if answer is Settled.DONE else answer.value for answer in answers]
    assert said in (
        ["repeated", "stale", "cancelled", "repeated", "repeated"],
        ["repeated", "stale", *["repeated"] * 3],
    )
    assert await where(bridge.direct) == {"ready": 1, "failed": 1}


async def test_a_claim_whose_reply_is_cut_comes_back_at_once(bridge: Bridge) -> None:
    await push(bridge.direct, *numbered(3), job("suspect", crash_limit=2))
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    before = time.monotonic()
    leases = await claim(bridge.shaky, 10, lease=300)
    assert fault.happened
    assert time.monotonic() - before < 10
    assert [(lease.id, lease.deliveries) for lease in leases] == [(f"j{n:05}", 1) for n in range(3)] + [("suspect", 1)]
    assert {lease.envelope for lease in leases} == {job().envelope}
    # Counted from before the first sending: the store gave them then.
    assert all(lease.deadline - 300 <= time.monotonic() for lease in leases)
    assert await where(bridge.direct) == {"leased": 4}
    assert await claim(bridge.direct, 10) == []
    await done(bridge.shaky, *map(Ack, leases))
    await assert_empty(bridge.direct)


async def test_the_leases_of_a_claim_whose_reply_was_cut_are_found_by_their_holder(bridge: Bridge) -> None:
    await push(bridge.direct, *numbered(3))
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    claiming = asyncio.create_task(claim(bridge.shaky, 3, holder="process1"))
    bridge.proxy.refuse()
    await happened(fault)
    found = (await bridge.direct.held_by(Q, "process1")).leases
    assert not claiming.done(), "the holder itself never got them"
    await done(bridge.direct, *(Release(lease, crashed=True) for lease in found))
    assert await where(bridge.direct) == {"ready": 3}
    bridge.proxy.heal()
    assert await claiming == [], "and gets none of them by repeating its claim"


async def test_a_claim_repeated_after_a_long_outage_brings_only_what_it_still_holds(bridge: Bridge) -> None:
    await push(bridge.direct, *numbered(3))
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    claiming = asyncio.create_task(claim(bridge.shaky, 10, lease=0.2))
    bridge.proxy.refuse()
    await happened(fault)

    async def reclaimed() -> list[str]:
        return ids(await claim(bridge.direct, 2))

    other = await eventually(reclaimed, what="the leases lapse")
    bridge.proxy.heal()
    leases = await claiming
    assert not set(ids(leases)) & set(other)
    assert await bridge.direct.renew(leases) == [Renewal.HELD] * len(leases)


async def test_a_claim_whose_cut_reply_was_empty_goes_on(bridge: Bridge) -> None:
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    assert await claim(bridge.shaky, 10) == []
    assert fault.happened
    await push(bridge.direct, job("x"))
    assert ids(await claim(bridge.shaky, 10)) == ["x"]


async def test_a_claim_cut_in_one_queue_still_serves_the_others(bridge: Bridge) -> None:
    await push(bridge.direct, job("a", queue="one"), job("b", queue="two"))
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    leases = await claim(bridge.shaky, 10, queues=["one", "two"])
    assert fault.happened
    assert [(lease.queue, lease.id, lease.deliveries) for lease in leases] == [("one", "a", 1), ("two", "b", 1)]


async def test_a_renewal_whose_reply_is_cut_is_answered(bridge: Bridge) -> None:
    lease = await pushed_and_claimed(bridge.shaky)
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    assert await bridge.shaky.renew([lease]) == [Renewal.HELD]
    assert fault.happened


async def test_a_clear_whose_reply_is_cut_tells_the_exact_number(bridge: Bridge) -> None:
    await push(bridge.direct, *numbered(7), *(job(delay=60) for _ in range(3)))
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    clearing = asyncio.create_task(bridge.shaky.clear(Q))
    bridge.proxy.refuse()
    await happened(fault)
    await push(bridge.direct, job("later"))
    bridge.proxy.heal()
    assert await clearing == 10
    assert await where(bridge.direct) == {"ready": 1}


async def test_a_cancel_whose_reply_is_cut_tells_what_it_did(bridge: Bridge) -> None:
    await push(bridge.direct, job("x"))
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    assert [one.value for one in await bridge.shaky.cancel(Q, ["x", "y"])] == ["removed", "not_found"]
    assert fault.happened
    await assert_empty(bridge.direct)


async def test_a_retry_whose_reply_is_cut_is_made_once(bridge: Bridge) -> None:
    record = await failed_once(bridge.shaky, job("x"))
    await failed_jobs(bridge.shaky).retry([record])
    await done(bridge.shaky, Fail(await claim_one(bridge.shaky), WHY))
    records = await bridge.shaky.failed(Q)
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    assert list(await bridge.shaky.retry(records)) == [True]
    assert fault.happened
    assert await where(bridge.direct) == {"ready": 1}


async def test_a_call_under_a_number_that_the_store_has_forgotten_is_made_once(bridge: Bridge) -> None:
    assert await bridge.forget_clients()
    await push(bridge.shaky, job("x"))
    assert await bridge.forget_clients()
    lease = await claim_one(bridge.shaky)
    assert lease.deliveries == 1
    await bridge.forget_clients()
    assert await settle(bridge.shaky, Ack(lease)) is Settled.DONE
    await bridge.forget_clients()
    assert await bridge.shaky.clear(Q) == 0
    await assert_empty(bridge.direct)


async def test_a_repeat_that_the_store_can_not_answer_ends_as_unknown_and_writes_nothing(bridge: Bridge) -> None:
    fault = bridge.proxy.cut_next_reply(match=SCRIPT)
    pushing = asyncio.create_task(bridge.shaky.push([job("x")]))
    bridge.proxy.refuse()
    await happened(fault)
    await done(bridge.direct, Ack(await claim_one(bridge.direct)))
    await bridge.forget_clients()
    bridge.proxy.heal()
    (answer,) = await pushing
    assert answer.outcome == "unknown"
    assert isinstance(answer.error, OutcomeUnknown)
    await assert_empty(bridge.direct)
    await push(bridge.shaky, job("x"))
    assert ids(await drained(bridge.direct, 1)) == ["x"]


async def test_swallowed_replies_make_no_job_twice(bridge: Bridge) -> None:
    await push(bridge.shaky, job("before"))
    executed = bridge.proxy.count(SCRIPT)
    bridge.proxy.blackhole()
    pushing = asyncio.create_task(bridge.shaky.push([job("x")]))

    async def arrived() -> bool:
        return bridge.proxy.count(SCRIPT) > executed

    await eventually(arrived, what="the server has executed the push")
    bridge.proxy.heal()
    (answer,) = await pushing
    assert answer.outcome == "stored"
    assert ids(await drained(bridge.direct, 2)) == ["before", "x"]


async def test_connections_cut_while_idle_lose_nothing(bridge: Bridge) -> None:
    for number in range(5):
        assert await asyncio.to_thread(bridge.proxy.kill_connections) >= 0
        await push(bridge.shaky, job(f"j{number}"))
        lease = await claim_one(bridge.shaky)
        assert lease.deliveries == 1
        await asyncio.to_thread(bridge.proxy.kill_connections)
        assert await settle(bridge.shaky, Ack(lease)) is Settled.DONE
    await assert_empty(bridge.direct)


async def test_a_waiting_claim_outlives_the_loss_of_its_connections(bridge: Bridge) -> None:
    claiming = asyncio.create_task(claim(bridge.shaky, wait=20))
    await where(bridge.direct)
    for _ in range(3):
        await asyncio.to_thread(bridge.proxy.kill_connections)
        await where(bridge.direct)
    await push(bridge.direct, job("x"))
    assert ids(await asyncio.wait_for(claiming, 10)) == ["x"]


async def test_a_claim_cancelled_while_its_reply_is_on_the_way_gives_back_what_it_brings(bridge: Bridge) -> None:
    await push(bridge.direct, *numbered(3))
    executed = bridge.proxy.count(SCRIPT)
    bridge.proxy.delay(0.2)
    claiming = asyncio.create_task(claim(bridge.shaky, 10, lease=300))

    async def granted() -> bool:
        return bridge.proxy.count(SCRIPT) > executed

    await eventually(granted, what="the store has given the leases")
    claiming.cancel()
    bridge.proxy.heal()
    with pytest.raises(asyncio.CancelledError):
        await claiming

    async def given_back() -> bool:
        return await where(bridge.direct) == {"ready": 3}

    await eventually(given_back, what="the leases are given back")
    leases = await claim(bridge.direct, 10)
    assert {(lease.deliveries, lease.free, lease.attempt) for lease in leases} == {(2, 1, 1)}


async def test_a_push_cancelled_while_its_reply_is_on_the_way_is_made_once(bridge: Bridge) -> None:
    executed = bridge.proxy.count(SCRIPT)
    bridge.proxy.delay(0.2)
    pushing = asyncio.create_task(bridge.shaky.push([job("x")]))

    async def stored() -> bool:
        return bridge.proxy.count(SCRIPT) > executed

    await eventually(stored, what="the store has the job")
    pushing.cancel()
    bridge.proxy.heal()
    await asyncio.gather(pushing, return_exceptions=True)
    (answer,) = await bridge.shaky.push([job("x")])
    assert answer.outcome == "held"
    assert ids(await drained(bridge.direct, 1)) == ["x"]

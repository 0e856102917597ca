"""What a job returned is given to the next as it was handed in, however often that is delivered (P13)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import pytest

from tenure.compositions import START, Gate, Kind, Node, When
from tenure.queue import Ack, Cancelled, Fail, Lease, Release
from tenure.testing.contract.composing import begun, chain, member, over, ran, tally
from tenure.testing.contract.operators import pruning, results
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    Q,
    claim,
    claim_one,
    done,
    failed_jobs,
    job,
    lapsed,
    pass_time,
    push,
)
from tenure.testing.contract.store import StoreUnderTest

RESULTS = [b"", b"null", b"[1]", b"\x00\xff|\n|\r\n$-1\r\n", b"r" * 200_000, '"Grüße"'.encode()]


async def second(store: StoreUnderTest, result: bytes | None) -> Lease:
    """Return the lease of the second job of a chain, whose first returned this."""
    await begun(store.queue, chain(2, results=True), kind=Kind.CHAIN)
    await done(store.queue, Ack(await claim_one(store.queue), result))
    return await claim_one(store.queue)


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: str(len(result)))
async def test_a_result_is_passed_on_byte_for_byte(store: StoreUnderTest, result: bytes) -> None:
    lease = await second(store, result)
    assert (lease.input, lease.gives) == (result, False)


async def test_each_job_of_a_chain_has_what_the_one_before_it_returned(store: StoreUnderTest) -> None:
    await begun(store.queue, chain(4, results=True), kind=Kind.CHAIN)
    seen = []
    for number in range(4):
        lease = await claim_one(store.another())
        seen.append((lease.id, lease.input, lease.gives))
        await done(store.queue, Ack(lease, b"from %d" % number if lease.gives else None))
    assert seen == [
        ("c.0", None, True),
        ("c.1", b"from 0", True),
        ("c.2", b"from 1", True),
        ("c.3", b"from 2", False),
    ]


async def test_a_result_that_there_is_not_is_none_to_the_next(store: StoreUnderTest) -> None:
    assert (await second(store, None)).input is None


async def test_a_job_that_does_not_take_a_result_has_none(store: StoreUnderTest) -> None:
    await begun(store.queue, [Gate(number=START, next=(0,)), member(0, 1, gives=True), member(1)])
    await done(store.queue, Ack(await claim_one(store.queue), b"secret"))
    assert (await claim_one(store.queue)).input is None


async def test_a_result_that_was_not_asked_for_is_not_passed_on(store: StoreUnderTest) -> None:
    await begun(store.queue, [Gate(number=START, next=(0,)), member(0, 1), member(1, takes=True)])
    await done(store.queue, Ack(await claim_one(store.queue), b"secret"))
    assert (await claim_one(store.queue)).input is None


async def test_results_of_one_call_are_each_given_to_the_right_job(store: StoreUnderTest) -> None:
    nodes: list[Node] = [Gate(number=START, next=tuple(range(40)))]
    for number in range(40):
        nodes += [member(number, number + 40, gives=True), member(number + 40, takes=True)]
    await begun(store.queue, nodes)
    leases = await claim(store.queue, 40)
    await done(store.queue, *(Ack(lease, lease.id.encode()) for lease in leases))
    given = {lease.id: lease.input for lease in await claim(store.queue, 40)}
    assert given == {f"c.{number + 40}": b"c.%d" % number for number in range(40)}


async def test_a_delayed_job_has_its_argument_when_it_is_due(store: StoreUnderTest) -> None:
    nodes: list[Node] = [Gate(number=START, next=(0,)), member(0, 1, gives=True), member(1, takes=True, delay=0.05)]
    await begun(store.queue, nodes)
    await done(store.queue, Ack(await claim_one(store.queue), b"kept"))
    assert (await claim_one(store.queue, wait=10)).input == b"kept"


async def test_an_argument_stays_with_its_job_however_often_it_is_delivered(store: StoreUnderTest) -> None:
    lease = await second(store, b"kept")
    await done(store.queue, Release(lease))
    lease = await claim_one(store.queue)
    assert lease.input == b"kept"
    await done(store.queue, Release(lease, delay=0.03))
    lease = await claim_one(store.queue, wait=10)
    assert lease.input == b"kept"
    await done(store.queue, Release(lease, crashed=True))
    lease = await claim_one(store.queue, lease=SHORT)
    assert lease.input == b"kept"
    await lapsed(store.queue)
    lease = await claim_one(store.another())
    assert (lease.input, lease.deliveries, lease.composition) == (b"kept", 5, "c")
    assert await ran(store.queue, Ack(lease)) == []
    assert await tally(store.queue) == ("completed", 2, 2, 0, 0)


async def test_a_result_may_be_kept_and_passed_on(store: StoreUnderTest) -> None:
    results(store.queue)
    nodes: list[Node] = [
        Gate(number=START, next=(0,)),
        member(0, 1, gives=True, keep=60.0),
        member(1, takes=True, keep=60.0),
    ]
    await begun(store.queue, nodes)
    await done(store.queue, Ack(await claim_one(store.queue), b"both"))
    lease = await claim_one(store.queue)
    assert (lease.input, lease.keep) == (b"both", 60.0)
    await done(store.queue, Ack(lease, b"last"))
    found = await results(store.queue).endings(Q, ["c.0", "c.1"])
    assert [one and one.result for one in found] == [b"both", b"last"]


async def test_a_job_that_runs_after_a_failure_has_no_result_of_it(store: StoreUnderTest) -> None:
    nodes: list[Node] = [Gate(number=START, next=(0,)), member(0, 1, gives=True), member(1, takes=True, when=When.ANY)]
    await begun(store.queue, nodes)
    await done(store.queue, Fail(await claim_one(store.queue), WHY))
    lease = await claim_one(store.queue)
    assert (lease.id, lease.input) == ("c.1", None)


async def test_a_failed_member_that_is_retried_is_a_job_of_its_own_with_its_argument(store: StoreUnderTest) -> None:
    reader = failed_jobs(store.queue)
    await begun(store.queue, chain(3, results=True), kind=Kind.CHAIN)
    await done(store.queue, Ack(await claim_one(store.queue), b"kept"))
    await done(store.queue, Fail(await claim_one(store.queue), WHY))
    assert await tally(store.queue) == ("failed", 3, 1, 1, 1)
    assert list(await reader.retry(await reader.failed(Q))) == [True]
    for _ in range(2):
        lease = await claim_one(store.queue)
        assert (lease.id, lease.input, lease.gives, lease.composition) == ("c.1", b"kept", False, "")
        await done(store.queue, Fail(lease, WHY))
        assert list(await reader.retry(await reader.failed(Q))) == [True]
    assert await ran(store.queue) == ["c.1"]
    assert await tally(store.queue) == ("failed", 3, 1, 1, 1)
    await over(store.queue)


async def test_a_failed_member_that_is_forgotten_or_pruned_changes_nothing(store: StoreUnderTest) -> None:
    reader = failed_jobs(store.queue)
    for number, of in enumerate(("a", "b")):
        await begun(store.queue, chain(2, of=of), of=of, kind=Kind.CHAIN)
        await done(store.queue, Fail(await claim_one(store.queue), WHY))
        if number:
            assert list(await reader.forget(await reader.failed(Q))) == [True]
        else:
            assert await pruning(store.queue).prune(Q, older_than=0) == 1
        assert await tally(store.queue, of) == ("failed", 2, 0, 1, 1)


async def test_a_cleared_or_cancelled_jobs_argument_is_not_found_by_the_next_of_its_id(store: StoreUnderTest) -> None:
    lease = await second(store, b"old")
    await done(store.queue, Release(lease))
    assert list(await store.queue.cancel(Q, ["c.1"])) == [Cancelled.REMOVED]
    await push(store.queue, job("c.1"))
    lease = await claim_one(store.queue)
    assert (lease.input, lease.composition) == (None, "")
    await done(store.queue, Ack(lease))
    await pass_time(store.queue, 0.01)
    assert await tally(store.queue) == ("cancelled", 2, 1, 0, 1)

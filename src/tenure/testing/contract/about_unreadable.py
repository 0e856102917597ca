"""What cannot be read is set aside whole and counted, and stops nothing (P11)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

from collections.abc import Awaitable, Callable

import pytest

from tenure.queue import Ack, SetAside, Settled
from tenure.testing.contract.steps import (
    SHORT,
    Q,
    claim,
    claim_one,
    done,
    drained,
    ids,
    job,
    lapsed,
    push,
    pushed_and_claimed,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

Plant = Callable[[str, str, bytes], Awaitable[None]]


def planting(store: StoreUnderTest) -> Plant:
    if store.put_raw is None:
        pytest.skip(f"the store of {store.queue.capabilities.driver!r} cannot hold a broken record")
    return store.put_raw


async def test_a_job_that_is_set_aside_is_counted_and_never_comes_again(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x", envelope=b"\xff not an envelope"))
    await done(store.queue, SetAside(lease, "not an envelope (DecodeError)"))
    assert await where(store.queue) == {"unreadable": 1}
    assert await claim(store.queue, 10) == []


async def test_a_job_is_set_aside_only_under_its_current_lease(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, job("x"), lease=SHORT)
    await lapsed(store.queue)
    held = await claim_one(store.another())
    assert await settle(store.queue, SetAside(lease, "no")) is Settled.STALE
    assert await where(store.queue) == {"leased": 1}
    await done(store.queue, SetAside(held, "no"))
    assert await settle(store.queue, SetAside(held, "no")) is Settled.STALE
    assert await where(store.queue) == {"unreadable": 1}


async def test_clearing_leaves_what_was_set_aside(store: StoreUnderTest) -> None:
    await done(store.queue, SetAside(await pushed_and_claimed(store.queue), "no"))
    await push(store.queue, job())
    assert await store.queue.clear(Q) == 1
    assert await where(store.queue) == {"unreadable": 1}


# K12
@pytest.mark.parametrize(
    "record",
    [b"", b"\n", b"|", b"junk", b"\xff\xfe\x00", b"1|0|0|0", b"x|y|z|w\n{}", b"-1|-2|-3\n{}", b"1" * 5000],
    ids=["empty", "line", "bar", "junk", "binary", "half", "letters", "negative", "long"],
)
async def test_a_broken_record_is_set_aside_by_the_claim_that_meets_it(store: StoreUnderTest, record: bytes) -> None:
    plant = planting(store)
    await push(store.queue, job("before"))
    await plant(Q, "broken", record)
    await push(store.queue, job("after"))
    got: list[str] = []
    aside: list[tuple[str, str]] = []
    for _ in range(3):
        claimed = await store.queue.claim([Q], limit=10, lease=60, wait=0)
        got += ids(list(claimed.leases))
        aside += [(one.queue, one.id) for one in claimed.unreadable]
        await done(store.queue, *map(Ack, claimed.leases))
    assert got == ["before", "after"]
    assert aside == [(Q, "broken")]
    assert await where(store.queue) == {"unreadable": 1}


async def test_broken_records_do_not_keep_a_claim_from_waiting(store: StoreUnderTest) -> None:
    plant = planting(store)
    await plant(Q, "broken", b"junk")
    claimed = await store.queue.claim([Q], limit=1, lease=60, wait=0.1)
    assert ([one.id for one in claimed.unreadable], list(claimed.leases)) == (["broken"], [])
    await push(store.queue, job("x"))
    assert ids(await drained(store.queue, 1)) == ["x"]

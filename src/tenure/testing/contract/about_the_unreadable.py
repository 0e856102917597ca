"""What was set aside can be looked at, taken out byte for byte, and dropped."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import time

import pytest

from tenure.errors import InvalidOption
from tenure.queue import Queue, SetAside
from tenure.testing.contract.operators import unreadable_store
from tenure.testing.contract.steps import (
    SHORT,
    Q,
    assert_empty,
    claim_one,
    done,
    inspector,
    job,
    lapsed,
    pass_time,
    push,
    pushed_and_claimed,
    settle,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

BYTES = b"\x00\xff\xfe not JSON \r\n| \x1b[31m" + bytes(range(256))
CANARY = b"c4n4ry-5ecret"


async def set_aside(queue: Queue, job_id: str, record: bytes = BYTES, *, name: str = Q, reason: str = "no") -> None:
    """Push a record to an empty queue and set it aside."""
    lease = await pushed_and_claimed(queue, job(job_id, envelope=record, queue=name))
    await done(queue, SetAside(lease, reason))


async def test_a_record_that_was_set_aside_is_listed_with_what_is_known_of_it(store: StoreUnderTest) -> None:
    await set_aside(store.queue, "x", reason="not an envelope (DecodeError)")
    (record,) = await unreadable_store(store.another()).unreadable(Q)
    assert (record.queue, record.id, record.reason) == (Q, "x", "not an envelope (DecodeError)")
    assert record.key
    assert abs(record.set_aside_at - time.time()) < 60
    assert record.size >= len(BYTES)


async def test_records_are_listed_oldest_first(store: StoreUnderTest) -> None:
    order = ["c", "a", "d", "b"]
    for one in order:
        await set_aside(store.queue, one)
        await pass_time(store.queue, 0.002)
    records = await unreadable_store(store.queue).unreadable(Q)
    assert [record.id for record in records] == order
    times = [record.set_aside_at for record in records]
    assert times == sorted(times)
    assert len({record.key for record in records}) == len(order)


async def test_records_are_read_in_pages_each_behind_the_last_key(store: StoreUnderTest) -> None:
    for number in range(7):
        await set_aside(store.queue, f"x{number}")
        await pass_time(store.queue, 0.002)
    reader = unreadable_store(store.queue)
    seen: list[str] = []
    after = ""
    while page := await reader.unreadable(Q, limit=3, after=after):
        assert len(page) <= 3
        seen += [record.id for record in page]
        assert len(seen) <= 7, "the listing goes round and round"
        after = page[-1].key
    assert seen == [f"x{number}" for number in range(7)]


async def test_reading_goes_on_behind_a_record_that_was_dropped_meanwhile(store: StoreUnderTest) -> None:
    for one in ("a", "b", "c"):
        await set_aside(store.queue, one)
        await pass_time(store.queue, 0.002)
    reader = unreadable_store(store.queue)
    first, second, _ = await reader.unreadable(Q)
    await reader.drop_unreadable(Q, [first.key, second.key])
    assert [record.id for record in await reader.unreadable(Q, after=second.key)] == ["c"]


# K12
@pytest.mark.parametrize("record", [b"", b"x", BYTES, BYTES * 200], ids=["empty", "one", "binary", "long"])
async def test_a_record_comes_back_byte_for_byte(store: StoreUnderTest, record: bytes) -> None:
    await set_aside(store.queue, "x", record)
    reader = unreadable_store(store.another())
    (told,) = await reader.unreadable(Q)
    content = await reader.unreadable_bytes(Q, told.key)
    # A driver may keep a header of its own in front of the envelope; what was pushed is whole behind it.
    assert content is not None
    assert content.endswith(record)
    assert len(content) == told.size
    assert await reader.unreadable_bytes(Q, told.key) == content, "reading it does not remove it"
    assert await where(store.queue) == {"unreadable": 1}


async def test_a_broken_record_that_a_claim_met_comes_back_byte_for_byte(store: StoreUnderTest) -> None:
    if store.put_raw is None:
        pytest.skip(f"the store of {store.queue.capabilities.driver!r} cannot hold a broken record")
    await store.put_raw(Q, "broken", b"\xff\x00|junk\n" + BYTES)
    await store.queue.claim([Q], limit=1, lease=60, wait=0)
    (told,) = await unreadable_store(store.queue).unreadable(Q)
    assert (told.id, told.size) == ("broken", 8 + len(BYTES))
    assert await unreadable_store(store.queue).unreadable_bytes(Q, told.key) == b"\xff\x00|junk\n" + BYTES


async def test_a_listing_says_nothing_of_the_bytes(store: StoreUnderTest) -> None:
    await set_aside(store.queue, "x", CANARY)
    assert CANARY.decode() not in repr(await unreadable_store(store.queue).unreadable(Q))


async def test_a_drop_removes_one_record_and_the_count_falls(store: StoreUnderTest) -> None:
    for one in ("a", "b", "c"):
        await set_aside(store.queue, one)
    reader = unreadable_store(store.queue)
    keys = {record.id: record.key for record in await reader.unreadable(Q)}
    assert list(await reader.drop_unreadable(Q, [keys["b"]])) == [True]
    assert {record.id for record in await reader.unreadable(Q)} == {"a", "c"}
    assert await where(store.queue) == {"unreadable": 2}
    assert await reader.unreadable_bytes(Q, keys["b"]) is None
    assert await reader.unreadable_bytes(Q, keys["a"]) is not None


async def test_a_record_that_was_dropped_is_gone_for_others(store: StoreUnderTest) -> None:
    await set_aside(store.queue, "x")
    one, other = unreadable_store(store.queue), unreadable_store(store.another())
    (record,) = await other.unreadable(Q)
    assert list(await one.drop_unreadable(Q, [record.key])) == [True]
    assert list(await other.drop_unreadable(Q, [record.key])) == [False]
    assert list(await other.unreadable(Q)) == []
    assert await other.unreadable_bytes(Q, record.key) is None
    await assert_empty(store.queue)


async def test_drops_are_answered_in_order_and_a_key_named_twice_is_dropped_once(store: StoreUnderTest) -> None:
    for one in ("a", "b"):
        await set_aside(store.queue, one)
    reader = unreadable_store(store.queue)
    a, b = [record.key for record in await reader.unreadable(Q)]
    assert list(await reader.drop_unreadable(Q, [b, "no-such-key", a, b])) == [True, False, True, False]
    assert list(await reader.drop_unreadable(Q, [])) == []
    await assert_empty(store.queue)


async def test_a_later_record_never_has_the_key_of_one_that_was_dropped(store: StoreUnderTest) -> None:
    reader = unreadable_store(store.queue)
    keys = []
    for _ in range(3):
        await set_aside(store.queue, "x")
        (record,) = await reader.unreadable(Q)
        await reader.drop_unreadable(Q, [record.key])
        keys.append(record.key)
    assert len(set(keys)) == 3


async def test_a_job_that_is_set_aside_again_under_its_id_is_another_record(store: StoreUnderTest) -> None:
    await set_aside(store.queue, "x", b"first")
    await pass_time(store.queue, 0.002)
    await set_aside(store.queue, "x", b"second")
    reader = unreadable_store(store.queue)
    first, second = await reader.unreadable(Q)
    contents = [await reader.unreadable_bytes(Q, record.key) for record in (first, second)]
    assert [content is not None and content[-5:] for content in contents] == [b"first", b"econd"]
    assert await where(store.queue) == {"unreadable": 2}


async def test_records_are_kept_per_queue_and_namespace(store: StoreUnderTest) -> None:
    await set_aside(store.queue, "x", name="one")
    reader = unreadable_store(store.queue)
    (record,) = await reader.unreadable("one")
    await push(store.queue, job(queue="two"))
    for other, name in ((reader, "two"), (unreadable_store(store.elsewhere()), "one")):
        assert list(await other.unreadable(name)) == []
        assert await other.unreadable_bytes(name, record.key) is None
        assert list(await other.drop_unreadable(name, [record.key])) == [False]
    await set_aside(store.queue, "y", name="three")
    assert [one.id for one in await reader.unreadable("three")] == ["y"]
    assert [await where(store.queue, name) for name in ("one", "three")] == [{"unreadable": 1}] * 2


async def test_a_stale_lease_adds_no_record(store: StoreUnderTest) -> None:
    lease = await pushed_and_claimed(store.queue, lease=SHORT)
    await lapsed(store.queue)
    held = await claim_one(store.queue)
    await settle(store.queue, SetAside(lease, "stale"))
    await done(store.queue, SetAside(held, "held"))
    assert [record.reason for record in await unreadable_store(store.queue).unreadable(Q)] == ["held"]


async def test_looking_for_unreadable_records_makes_no_queue(store: StoreUnderTest) -> None:
    reader = unreadable_store(store.queue)
    assert list(await reader.unreadable("never")) == []
    assert await reader.unreadable_bytes("never", "1") is None
    assert list(await reader.drop_unreadable("never", ["1"])) == [False]
    assert list(await inspector(store.queue).queues()) == []


async def test_keys_that_no_record_has_find_nothing(store: StoreUnderTest) -> None:
    await set_aside(store.queue, "x")
    reader = unreadable_store(store.queue)
    for garbage in ("", " ", "x", "-1", "01", "9" * 400, "1 OR 1=1", "\x00", "٣", "ünïcode", "|"):
        assert await reader.unreadable_bytes(Q, garbage) is None
        assert list(await reader.drop_unreadable(Q, [garbage])) == [False]
    assert await where(store.queue) == {"unreadable": 1}


async def test_a_page_of_nothing_is_refused(store: StoreUnderTest) -> None:
    for limit in (0, -1):
        with pytest.raises(InvalidOption):
            await unreadable_store(store.queue).unreadable(Q, limit=limit)

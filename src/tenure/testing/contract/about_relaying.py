"""A call whose number its caller keeps stores its jobs once, however often and however late it is made (P1)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
from collections.abc import Sequence

import pytest

from tenure.naming import new_token
from tenure.queue import Ack, Push, Pushed, Queue, feature
from tenure.relaying import Forgotten, Relays
from tenure.testing.contract.steps import Q, assert_empty, claim, done, drained, ids, job, jobs, numbered, push, where
from tenure.testing.contract.store import StoreUnderTest


async def relay(queue: Queue, client: str, number: int, pushes: Sequence[Push]) -> Sequence[Pushed]:
    """Make the call, or skip."""
    if not feature(queue, Relays):
        pytest.skip(f"the driver {queue.capabilities.driver!r} takes no jobs from a relay (Relays)")
    relays: Relays = queue  # type: ignore[assignment] # it was asked
    return await relays.push_numbered(client, number, pushes)


async def test_a_numbered_call_stores_jobs_in_order_and_holds_those_that_exist(store: StoreUnderTest) -> None:
    client = new_token()
    await relay(store.queue, client, 1, [job("a"), job("b", delay=60)])
    answered = await relay(store.queue, client, 2, jobs("b", "c", "c", "d"))
    assert [(one.id, one.outcome) for one in answered] == [
        ("b", "held"),
        ("c", "stored"),
        ("c", "held"),
        ("d", "stored"),
    ]
    assert ids(await claim(store.queue, 10)) == ["a", "c", "d"]
    assert await where(store.queue) == {"leased": 3, "delayed": 1}


async def test_a_numbered_call_that_is_repeated_changes_nothing_even_when_its_jobs_are_gone(
    store: StoreUnderTest,
) -> None:
    client = new_token()
    await relay(store.queue, client, 1, jobs("a"))
    await relay(store.queue, client, 7, jobs("b", "c"))
    for queue in (store.queue, store.another(), store.queue):
        answered = await relay(queue, client, 7, jobs("b", "c"))
        assert [one.id for one in answered] == ["b", "c"]
        assert not [one.error for one in answered if one.error is not None]
        await done(store.queue, *map(Ack, await claim(store.queue, 10)))
    await assert_empty(store.queue)


async def test_a_number_that_others_have_passed_is_refused_unwritten(store: StoreUnderTest) -> None:
    client = new_token()
    await relay(store.queue, client, 1, jobs("a"))
    await relay(store.queue, client, 1_800_000_000_000_000, jobs("b"))
    for number in (1, 2, 1_799_999_999_999_999):
        with pytest.raises(Forgotten):
            await relay(store.queue, client, number, jobs("x", "a"))
    await relay(store.queue, client, 1_800_000_000_000_001, jobs("c"))
    assert ids(await drained(store.queue, 3)) == ["a", "b", "c"]


async def test_a_number_of_a_client_that_is_not_known_is_refused_unwritten(store: StoreUnderTest) -> None:
    client = new_token()
    with pytest.raises(Forgotten):
        await relay(store.queue, client, 2, jobs("a"))
    await assert_empty(store.queue)
    await relay(store.queue, client, 1, jobs("a"))
    assert ids(await drained(store.queue, 1)) == ["a"]


async def test_numbered_calls_of_several_clients_and_queues_do_not_meet(store: StoreUnderTest) -> None:
    one, other = new_token(), new_token()
    await relay(store.queue, one, 1, jobs("a"))
    await relay(store.queue, other, 1, jobs("b"))
    await relay(store.queue, new_token(), 1, jobs("a", queue="another"))
    await push(store.queue, job("c"))
    assert ids(await drained(store.queue, 3)) == ["a", "b", "c"]
    assert await where(store.queue, "another") == {"ready": 1}


async def test_a_numbered_call_that_two_make_at_once_is_made_once(store: StoreUnderTest) -> None:
    pushes = numbered(500)
    for number in range(1, 4):
        client = new_token()
        await asyncio.gather(*(relay(queue, client, 1, pushes) for queue in (store.queue, store.another())))
        assert (await store.queue.counts(Q)).ready == 500
        assert await store.queue.clear(Q) == 500, number


async def test_a_numbered_call_of_no_jobs_answers_for_none(store: StoreUnderTest) -> None:
    if feature(store.queue, Relays):
        assert list(await relay(store.queue, new_token(), 1, [])) == []
    await assert_empty(store.queue)

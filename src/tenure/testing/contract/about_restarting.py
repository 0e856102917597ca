"""The restart marker: one for the namespace, another one with each request, seen by everybody."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio

from tenure.testing.contract.operators import control
from tenure.testing.contract.steps import Q, claim_one, inspector, job, push, where
from tenure.testing.contract.store import StoreUnderTest


async def test_there_is_no_restart_marker_before_the_first_request(store: StoreUnderTest) -> None:
    assert await control(store.queue).restart_marker() is None


# S8
async def test_another_instance_sees_the_marker_that_a_request_returned(store: StoreUnderTest) -> None:
    other = control(store.another())
    assert await other.restart_marker() is None
    marker = await control(store.queue).request_restart()
    assert marker
    assert await other.restart_marker() == marker
    assert await other.restart_marker() == marker, "reading it does not change it"


async def test_the_marker_changes_with_each_request(store: StoreUnderTest) -> None:
    markers = [await control(one).request_restart() for one in (store.queue, store.another(), store.queue)]
    assert len(set(markers)) == 3
    assert await control(store.another()).restart_marker() == markers[-1]


async def test_requests_at_the_same_time_leave_one_of_their_markers(store: StoreUnderTest) -> None:
    one, other = control(store.queue), control(store.another())
    markers = await asyncio.gather(*(driver.request_restart() for driver in (one, other) * 5))
    assert len(set(markers)) == 10
    assert await one.restart_marker() == await other.restart_marker()
    assert await one.restart_marker() in markers


async def test_a_marker_belongs_to_one_namespace(store: StoreUnderTest) -> None:
    await control(store.queue).request_restart()
    assert await control(store.elsewhere()).restart_marker() is None


async def test_a_restart_touches_neither_jobs_nor_queues(store: StoreUnderTest) -> None:
    await control(store.queue).request_restart()
    assert list(await inspector(store.queue).queues()) == []
    await push(store.queue, job("x"))
    marker = await control(store.queue).request_restart()
    assert await where(store.queue) == {"ready": 1}
    assert (await claim_one(store.queue)).id == "x"
    await store.queue.clear(Q)
    assert await control(store.queue).restart_marker() == marker

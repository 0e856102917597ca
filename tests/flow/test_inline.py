"""Compositions on the sync driver: their jobs run where they are pushed, in order."""

import asyncio
import threading
from typing import Any

import pytest

from tenure import CompositionState, JobState, NotSupported, Undecodable
from tests.flow.shop import Shop


# S17
def test_a_chain_runs_at_once_and_passes_results_on(inline: Shop) -> None:
    handle = inline.app.push_sync(inline.one.bind(inline.key, 1).then(inline.add, 2).then(inline.add, key=inline.key))
    assert handle.result_sync(timeout=1) == 4
    assert inline.ran == [1, (3, 1)]


def test_what_a_step_raises_reaches_the_push_of_a_call(inline: Shop) -> None:
    fails: Any = inline.fails.bind(inline.key)
    odd: Any = inline.odd.bind()
    with pytest.raises(ValueError, match="no luck"):
        inline.app.push_sync(fails.then(inline.note, 1))
    with pytest.raises(ValueError, match="cannot be passed on"):
        inline.app.push_sync(odd.then(inline.note, 1))
    with pytest.raises(Undecodable, match="'number'"):
        inline.app.push_sync(inline.noted("x").then(inline.add))
    with pytest.raises(ValueError, match=r"cannot be passed on.*60000"):
        inline.app.push_sync(inline.large.bind().then(inline.note, 1))


# S17
def test_a_member_that_fails_is_told_and_raises_nothing(inline: Shop) -> None:
    batch = inline.app.batch(
        [inline.noted("a"), inline.fails.bind(inline.key), inline.drops.bind(), inline.noted("b")],
        on_success=inline.noted("never"),
        on_failure=inline.noted("failure"),
        on_finish=inline.noted("finish"),
    )
    handle = batch.push_sync()
    status = handle.status_sync()
    assert status is not None
    assert (status.state, status.succeeded, status.failed, status.cancelled, status.pending) == (
        CompositionState.COMPLETED_WITH_FAILURES, 2, 1, 1, 0,
    )  # fmt: skip
    assert inline.ran == ["a", "fails", "b", "failure", "finish"]
    found = list(handle.results_sync(page=2))
    assert [(one.state, one.result, one.type) for one in found] == [
        (JobState.SUCCEEDED, "a", ""),
        (JobState.FAILED, None, "ValueError"),
        (JobState.CANCELLED, None, ""),
        (JobState.SUCCEEDED, "b", ""),
    ]
    assert not handle.cancel_sync()


def test_the_rest_of_a_chain_is_cancelled(inline: Shop) -> None:
    chain = inline.app.chain(
        inline.app.batch([inline.fails.bind(inline.key), inline.noted("a")]), inline.noted("never")
    )
    status = chain.push_sync().wait_sync(timeout=1)
    assert status is not None
    assert (status.state, status.succeeded, status.failed, status.cancelled) == (CompositionState.FAILED, 1, 1, 1)
    assert inline.ran == ["fails", "a"]


async def test_coroutines_run_where_the_push_was_awaited(inline: Shop) -> None:
    seen: list[Any] = []

    @inline.app.middleware
    async def see(current: Any, call_next: Any) -> Any:
        seen.append((current.composition, asyncio.get_running_loop(), threading.current_thread()))
        return await call_next()

    handle = await inline.app.chain(inline.noted("a"), inline.noted("b")).push()
    assert seen == [(handle.id, asyncio.get_running_loop(), threading.current_thread())] * 2
    assert (await handle.wait()) == (await handle.status())
    assert (await inline.app.push(inline.noted(1).then(inline.add))).composition


def test_a_workflow_runs_in_the_order_that_it_asks_for(inline: Shop) -> None:
    workflow = inline.app.workflow()
    workflow.add(inline.noted("end"), after=["left", "right"])
    workflow.add(inline.noted("left"), name="left", after="top")
    workflow.add(inline.noted("right"), name="right", after="top")
    workflow.add(inline.noted("top"), name="top")
    workflow.push_sync()
    assert inline.ran == ["top", "left", "right", "end"]


def test_ten_thousand_steps_run(inline: Shop) -> None:
    status = inline.app.chain(*[inline.drops.bind()], *[inline.noted(1)] * 10_000).push_sync().status_sync()
    assert status is not None
    assert (status.total, status.cancelled) == (10_001, 10_001)
    assert status.state is CompositionState.CANCELLED


async def test_a_member_adds_to_its_batch_and_a_step_to_nothing(inline: Shop) -> None:
    batch = inline.app.batch([inline.grows.bind(inline.key, 3), inline.noted("b")], on_finish=inline.noted("finish"))
    handle = await batch.push()
    status = await handle.status()
    assert status is not None
    assert (status.total, status.succeeded, status.state) == (5, 5, CompositionState.COMPLETED)
    assert inline.ran == ["b", 0, 1, 2, "finish"]
    assert [member.result async for member in handle.results()] == [None, "b", 0, 1, 2]
    handle = await inline.app.chain(inline.grows.bind(inline.key, 3), inline.noted("never")).push()
    assert [member.type async for member in handle.results()] == ["StaleLease", ""]


def test_a_plain_function_adds_to_its_batch_from_its_own_thread(inline: Shop) -> None:
    status = inline.app.batch([inline.grows_too.bind(inline.key, 2)]).push_sync().status_sync()
    assert status is not None
    assert (status.total, status.succeeded) == (3, 3)


def test_nothing_is_found_again(inline: Shop) -> None:
    handle = inline.app.chain(inline.noted("a")).push_sync()
    with pytest.raises(NotSupported):
        inline.app.composition_sync(handle.id)

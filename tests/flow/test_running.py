"""Compositions from their push to their end, over a worker."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tenure import Call, CompositionState, JobFailed, JobState
from tests.flow.shop import Shop
from tests.support.processes import eventually_async
from tests.worker.support import drain, working

pytestmark = pytest.mark.timeout(120)


async def done(shop: Shop, handle: Any) -> Any:
    """Run a worker until the composition has ended, and all that follows it."""
    async with working(shop.app):
        status = await handle.wait(timeout=30)
    await drain(shop.app)
    return status


async def test_a_result_is_the_first_argument_of_the_next(shop: Shop) -> None:
    call = shop.one.bind(shop.key, 2).then(shop.add, 40, key=shop.key).then(shop.add, more=-42, key=shop.key)
    handle = await shop.app.push(call, result_ttl=60)
    async with working(shop.app):
        assert await handle.result(timeout=30) == 0
    assert shop.ran == [2, (2, 40), (42, -42)]
    found = await shop.app.composition(handle.composition)
    assert found is not None
    status = await found.status()
    assert status is not None
    assert (status.state, status.succeeded, status.total) == (CompositionState.COMPLETED, 3, 3)


async def test_the_calls_of_a_chain_have_their_own_arguments_and_run_in_order(shop: Shop) -> None:
    handle = await shop.app.chain(*(shop.one.bind(shop.key, number) for number in range(5))).push()
    status = await done(shop, handle)
    assert status.state is CompositionState.COMPLETED
    assert shop.ran == [0, 1, 2, 3, 4]


async def test_a_chain_stops_where_a_step_fails(shop: Shop) -> None:
    handle = await shop.app.chain(shop.noted("a"), shop.fails.bind(shop.key), shop.noted("never")).push()
    status = await done(shop, handle)
    assert (status.state, status.succeeded, status.failed, status.cancelled) == (CompositionState.FAILED, 1, 1, 1)
    assert shop.ran == ["a", "fails"]


# S17
@pytest.mark.parametrize("bad", [False, True])
async def test_a_batch_goes_on_and_tells_how_it_ended(shop: Shop, bad: bool) -> None:
    members = [shop.one.bind(shop.key, 1), *([shop.fails.bind(shop.key)] if bad else []), shop.one.bind(shop.key, 2)]
    batch = shop.app.batch(
        members,
        on_success=shop.noted("success"),
        on_failure=shop.noted("failure"),
        on_finish=shop.noted("finish"),
        result_ttl=60,
        name="numbers",
    )
    handle = await batch.push()
    status = await done(shop, handle)
    assert status.name == "numbers"
    assert status.state is (CompositionState.COMPLETED_WITH_FAILURES if bad else CompositionState.COMPLETED)
    assert sorted(map(str, shop.ran)) == sorted(["1", "2", "finish", *(["fails", "failure"] if bad else ["success"])])
    found = [(member.state, member.result) async for member in handle.results(page=1)]
    ends: list[Any] = [(JobState.SUCCEEDED, 1), (JobState.SUCCEEDED, 2)]
    assert found == ([ends[0], (JobState.FAILED, None), ends[1]] if bad else ends)


@pytest.mark.parametrize("members", [1, 101, 1_200])
async def test_a_batch_of_any_size_ends_once(shop: Shop, members: int) -> None:
    def calls() -> Iterator[Call[int]]:
        for number in range(members):
            yield shop.one.bind(shop.key, number)

    handle = await shop.app.batch(calls(), on_finish=shop.noted("finish")).push()
    status = await done(shop, handle)
    assert (status.succeeded, status.total, status.pending, status.progress) == (members, members, 0, 100)
    assert shop.ran[-1] == "finish"
    assert sorted(shop.ran[:-1]) == list(range(members))


async def test_parts_may_be_compositions(shop: Shop) -> None:
    key, one = shop.key, shop.one
    workflow = shop.app.workflow(name="diamond")
    top = workflow.add(shop.noted("top"), name="top")
    left = workflow.add(one.bind(key, 1).then(shop.add, 2, key=key), after=top)
    right = workflow.add(shop.app.batch([shop.noted("r1"), shop.noted("r2")]), after="top")
    workflow.add(shop.noted("bottom"), after=[left, right])
    handle = await shop.app.chain(shop.noted("first"), workflow, shop.noted("last")).push()
    status = await done(shop, handle)
    assert status.state is CompositionState.COMPLETED
    assert status.total == 8
    assert shop.ran[:2] == ["first", "top"]
    assert shop.ran[-2:] == ["bottom", "last"]
    assert sorted(map(str, shop.ran[2:-2])) == ["(1, 2)", "1", "r1", "r2"]


async def test_what_a_failed_step_should_let_begin_is_cancelled_and_the_rest_of_a_workflow_runs(shop: Shop) -> None:
    workflow = shop.app.workflow()
    bad = workflow.add(shop.fails.bind(shop.key))
    workflow.add(shop.noted("never"), after=bad)
    good = workflow.add(shop.noted("a"))
    workflow.add(shop.noted("b"), after=good)
    status = await done(shop, await workflow.push())
    assert (status.state, status.succeeded, status.failed, status.cancelled) == (CompositionState.FAILED, 2, 1, 1)
    assert sorted(shop.ran) == ["a", "b", "fails"]


async def test_a_discarded_member_counts_as_cancelled(shop: Shop) -> None:
    status = await done(shop, await shop.app.batch([shop.drops.bind(), shop.noted("a")]).push())
    assert (status.state, status.succeeded, status.cancelled) == (CompositionState.COMPLETED_WITH_FAILURES, 1, 1)


@pytest.mark.parametrize("name", ["odd", "large"])
async def test_a_result_that_cannot_be_passed_on_fails_its_job_at_once(shop: Shop, name: str) -> None:
    job: Any = getattr(shop, name)
    handle = await shop.app.push(job.bind().then(shop.note, 1))
    async with working(shop.app):
        assert await handle.wait(timeout=30) is not JobState.SUCCEEDED
    [record] = await shop.app.failed("default")
    assert record.failure.reason == "result"
    assert record.attempts == 1
    assert "cannot be passed on" in record.failure.message
    assert "xxx" not in record.failure.message
    assert shop.ran == []


async def test_a_failed_step_keeps_its_argument_and_is_a_job_of_its_own_when_it_is_retried(shop: Shop) -> None:
    bad = shop.app.job(name="sometimes", max_attempts=1)(sometimes)
    handle = await shop.app.push(shop.one.bind(shop.key, 7).then(bad, shop.key).then(shop.add))
    async with working(shop.app):
        await eventually_async(lambda: shop.app.failed("default"), 30, what="the failed job")
        shop.ran.append("mended")
        [record] = await shop.app.failed("default")
        await shop.app.retry("default", [record.id])
        await eventually_async(lambda: _has(shop, ("sometimes", 7)), 30, what="the retry")
    found = await shop.app.composition(handle.composition)
    assert found is not None
    status = await found.status()
    assert status is not None
    assert (status.state, status.failed, status.cancelled) == (CompositionState.FAILED, 1, 1)


async def _has(shop: Shop, what: Any) -> bool:
    return what in shop.ran


async def sometimes(number: int, key: str) -> int:
    from tests.flow.shop import running  # noqa: PLC0415 - a job of this test alone

    if "mended" not in running[key]:
        raise ValueError("no luck")
    running[key].append(("sometimes", number))
    return number


@pytest.mark.parametrize("name", ["grows", "grows_too"])
async def test_a_member_adds_to_its_batch(shop: Shop, name: str) -> None:
    grows: Any = getattr(shop, name)
    handle = await shop.app.batch([grows.bind(shop.key, 3)], on_success=shop.noted("end"), result_ttl=60).push()
    status = await done(shop, handle)
    assert (status.total, status.succeeded) == (4, 4)
    assert shop.ran[-1] == "end"
    assert sorted(shop.ran[:-1]) == [0, 1, 2]
    found = [member.result async for member in handle.results()]
    assert found == [None, 0, 1, 2]


async def test_a_step_of_a_chain_adds_to_nothing(shop: Shop) -> None:
    grows = shop.grows.options(max_attempts=1)
    handle = await shop.app.chain(grows.bind(shop.key, 3), shop.noted("end")).push()
    assert (await done(shop, handle)).state is CompositionState.FAILED
    [record] = await shop.app.failed("default")
    assert record.failure.type == "tenure.errors.StaleLease"
    alone = await grows.options(result_ttl=60).push(shop.key, 3)
    async with working(shop.app):
        with pytest.raises(JobFailed, match="WrongContext"):
            await alone.result(timeout=30)


async def test_cancelling_stops_what_waits_and_tells_what_runs(shop: Shop) -> None:
    batch = shop.app.batch(
        [shop.waits.bind(shop.key), shop.noted("never")],
        on_finish=shop.noted("finish"),
        on_failure=shop.noted("never"),
    )
    handle = await shop.app.chain(batch, shop.noted("never")).push()
    async with working(shop.app, concurrency=1):
        await eventually_async(lambda: _has(shop, "waits"), 30, what="the first member")
        assert await handle.cancel()
        status = await handle.wait(timeout=30)
        await eventually_async(lambda: _has(shop, "finish"), 30, what="the callback")
    assert status is not None
    assert (status.state, status.cancelled, status.pending) == (CompositionState.CANCELLED, 3, 0)
    assert not await handle.cancel()
    assert shop.ran == ["waits", "finish"]


# S17
async def test_what_is_over_is_pruned_and_then_unknown(shop: Shop) -> None:
    handle = await shop.app.chain(shop.noted("a")).push()
    other = await shop.app.chain(shop.noted("b")).push()
    assert await shop.app.prune_compositions(hours=0) == 0
    async with working(shop.app):
        await asyncio.gather(handle.wait(timeout=30), other.wait(timeout=30))
    assert await shop.app.prune_compositions(hours=1) == 0
    assert await shop.app.prune_compositions(hours=0) == 2
    assert await handle.status() is None
    assert await shop.app.composition(handle.id) is None
    assert [member async for member in handle.results()] == []


# S17
async def test_what_is_over_expires(shop: Shop) -> None:
    handle = await shop.app.chain(shop.noted("a"), retention=0.2).push()
    async with working(shop.app):
        await handle.wait(timeout=30)

    async def gone() -> bool:
        return await handle.status() is None

    await eventually_async(gone, 30, what="the end of the retention")


async def test_an_id_that_exists_makes_no_second_composition(shop: Shop) -> None:
    first = await shop.app.chain(shop.noted("a"), id="nightly").push()
    again = await shop.app.chain(shop.noted("a"), id="nightly").push()
    assert (first.held, again.held) == (False, True)
    assert again.id == first.id == "nightly"
    await done(shop, again)
    assert shop.ran == ["a"]


def test_everything_has_a_blocking_twin(blocking_shop: Shop) -> None:
    shop = blocking_shop
    handle = shop.app.batch([shop.one.bind(shop.key, 1), shop.one.bind(shop.key, 2)], result_ttl=60).push_sync()
    assert handle.status_sync() is not None
    assert [member.state for member in handle.results_sync(page=1)] == [JobState.READY, JobState.READY]
    assert handle.cancel_sync()
    status = handle.wait_sync(timeout=30)
    assert status is not None
    assert status.state is CompositionState.CANCELLED
    found = shop.app.composition_sync(handle.id)
    assert found is not None
    assert shop.app.prune_compositions_sync(hours=0) == 1
    last = shop.app.push_sync(shop.one.bind(shop.key, 1).then(shop.add))
    assert last.id == f"{last.composition}.1"

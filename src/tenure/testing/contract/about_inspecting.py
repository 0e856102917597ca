"""An inspector tells where jobs are and changes nothing."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

from tenure.queue import Ack, Drop, Fail, JobState
from tenure.testing.contract.steps import (
    SHORT,
    WHY,
    Q,
    claim,
    claim_one,
    done,
    inspector,
    job,
    jobs,
    lapsed,
    push,
    suspected,
    where,
)
from tenure.testing.contract.store import StoreUnderTest


async def test_the_queues_that_were_pushed_to_are_listed_sorted(store: StoreUnderTest) -> None:
    reader = inspector(store.queue)
    assert list(await reader.queues()) == []
    await push(store.queue, job(queue="b"), job(queue="C"), job(queue="a.b"), job(queue="a", delay=60))
    assert list(await reader.queues()) == ["C", "a", "a.b", "b"]
    await done(store.queue, Ack(await claim_one(store.queue, queues=["b"])))
    await store.queue.clear("C")
    assert list(await inspector(store.another()).queues()) == ["C", "a", "a.b", "b"]
    assert list(await inspector(store.elsewhere()).queues()) == []


async def test_reading_a_queue_does_not_make_it(store: StoreUnderTest) -> None:
    reader = inspector(store.queue)
    await store.queue.counts("read")
    await claim(store.queue, queues=["claimed"])
    await store.queue.cancel("cancelled", ["x"])
    await store.queue.clear("cleared")
    await reader.states("stated", ["x"])
    assert list(await reader.queues()) == []


async def test_every_job_is_found_by_its_id(store: StoreUnderTest) -> None:
    reader = inspector(store.queue)
    await push(store.queue, *jobs("runs", "lapses", "fails", "done", "dropped", "cancelled"))
    leases = {lease.id: lease for lease in await claim(store.queue, 6)}
    await done(store.queue, Fail(leases["fails"], WHY), Ack(leases["done"]), Drop(leases["dropped"]))
    await push(store.queue, job("delayed", delay=60), job("ready"))
    await store.queue.cancel(Q, ["cancelled"])
    states = await reader.states(
        Q, ["done", "delayed", "runs", "never", "ready", "fails", "dropped", "cancelled", "ready"]
    )
    assert [state.value for state in states] == [
        *("gone", "delayed", "running", "gone", "ready", "failed", "gone", "running", "ready"),
    ]
    assert list(await reader.states(Q, [])) == []
    assert list(await reader.states("other", ["runs"])) == [JobState.GONE]


async def test_lapsed_jobs_run_and_suspects_are_ready(store: StoreUnderTest) -> None:
    reader = inspector(store.queue)
    await suspected(store.queue, "suspect")
    await push(store.queue, job("lapsed"))
    await claim(store.queue, 1, lease=SHORT, suspects=False)
    await lapsed(store.queue)
    assert list(await reader.states(Q, ["suspect", "lapsed"])) == [JobState.READY, JobState.RUNNING]
    assert await where(store.queue) == {"ready": 1, "leased": 1, "lapsed": 1}


async def test_an_id_used_again_tells_of_its_present_life(store: StoreUnderTest) -> None:
    reader = inspector(store.queue)
    for _ in range(2):
        await push(store.queue, job("x"))
        assert list(await reader.states(Q, ["x"])) == [JobState.READY]
        await done(store.queue, Ack(await claim_one(store.queue)))
        assert list(await reader.states(Q, ["x"])) == [JobState.GONE]


async def test_many_jobs_are_found_in_one_call(store: StoreUnderTest) -> None:
    reader = inspector(store.queue)
    names = [f"j{number}" for number in range(700)]
    await push(store.queue, *jobs(*names[::2]))
    states = await reader.states(Q, names)
    assert list(states) == [JobState.READY, JobState.GONE] * 350

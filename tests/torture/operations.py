"""Every operation of a queue, again and again: what a client may ask of the store, with the answer it must get."""

from collections.abc import Callable

from tenure.drivers.redis import RedisQueue
from tenure.naming import new_job_id
from tenure.queue import Ack, Cancelled, Fail, Failure, JobState, Lease, Push, Release, Renewal, Settled

QUEUE = "operations"
FAILURE = Failure(reason="exception")


async def all_of_them(url: str, namespace: str, enough: Callable[[], bool]) -> None:
    """Go round until it is enough, once at least; any error of an operation is the test's."""
    queue = RedisQueue.from_url(url, namespace=namespace)
    pusher, keeper = queue.pusher(), queue.keeper()
    try:
        while True:
            first, second, third = (new_job_id() for _ in range(3))
            await queue.push([job(first)])
            pusher.push([job(second)])
            await queue.push([job(third, delay=60), job(f"{third}-soon", delay=0.01)])
            leases = await claimed(queue, 3)
            assert [lease.id for lease in leases] == [first, second, f"{third}-soon"]
            assert set(await queue.renew(leases)) == {Renewal.HELD}
            assert set(keeper.renew(leases)) == {Renewal.HELD}
            await settle(queue, leases)
            await mend(queue, second, third)
            if enough():
                break
    finally:
        pusher.close()
        keeper.close()
        await queue.aclose()


async def settle(queue: RedisQueue, leases: list[Lease]) -> None:
    """One is given back and claimed again, one fails, one is done."""
    done, failed, again = leases
    taken = await queue.settle([Ack(done), Fail(failed, FAILURE), Release(again, free=True)])
    assert set(taken) == {Settled.DONE}
    [lease] = await claimed(queue, 1)
    assert (await queue.settle([Ack(lease)])) == [Settled.DONE]
    assert (await queue.settle([Ack(lease)])) == [Settled.STALE]


async def mend(queue: RedisQueue, failed: str, delayed: str) -> None:
    """What operators do."""
    assert await queue.cancel(QUEUE, [delayed]) == [Cancelled.REMOVED]
    assert await queue.pause(QUEUE)
    assert await queue.paused([QUEUE]) == [True]
    record = await queue.failed_record(QUEUE, failed)
    assert record is not None
    assert await queue.retry([record]) == [True]
    assert await queue.states(QUEUE, [failed]) == [JobState.READY]
    assert (await queue.claim([QUEUE], limit=1, lease=30, wait=0)).leases == []
    assert await queue.resume(QUEUE)
    counts = await queue.counts(QUEUE)
    assert (counts.ready, counts.delayed, counts.leased, counts.failed) == (1, 0, 0, 0)
    assert await queue.clear(QUEUE) == 1


async def claimed(queue: RedisQueue, number: int) -> list[Lease]:
    """Claim until so many are there."""
    leases: list[Lease] = []
    while len(leases) < number:
        found = await queue.claim([QUEUE], limit=number - len(leases), lease=30, wait=5)
        assert found.leases, "a job that was pushed is there to be claimed"
        leases += found.leases
    return leases


def job(job_id: str, delay: float = 0.0) -> Push:
    return Push(queue=QUEUE, id=job_id, envelope=b"{}", delay=delay)

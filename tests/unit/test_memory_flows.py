"""Compositions in memory, where their clock can be moved: what was never started, and what is kept for a week."""

from tenure.compositions import ABANDONED, RETENTION, START, Gate, JobNode, Kind, NewComposition, job_id
from tenure.drivers.memory import MemoryQueue
from tenure.errors import StoreError
from tenure.queue import Ack, Lease, Push
from tests.support.manual_clock import ManualClock


def new(of: str) -> NewComposition:
    return NewComposition(id=of, home="q", kind=Kind.CHAIN)


async def prepared(queue: MemoryQueue, of: str) -> None:
    assert await queue.prepare(new(of))
    push = Push(queue="q", id=job_id(of, 0), envelope=b"x")
    await queue.add("q", of, [Gate(number=START, next=(0,)), JobNode(number=0, push=push)])


async def claim(queue: MemoryQueue) -> list[Lease]:
    return list((await queue.claim(["q"], limit=10, lease=60, wait=0)).leases)


async def starts(queue: MemoryQueue, of: str) -> bool:
    try:
        await queue.start("q", of)
    except StoreError:
        return False
    return True


async def test_a_composition_whose_maker_died_is_forgotten_after_a_day() -> None:
    clock = ManualClock()
    queue = MemoryQueue(clock=clock)
    for number in range(250):
        await prepared(queue, f"old{number}")
    clock.now += ABANDONED - 1
    await prepared(queue, "young")
    assert await starts(queue, "old0")
    clock.now += 1
    await claim(queue)
    assert not await starts(queue, "old1")
    assert not await starts(queue, "old249"), "a claim forgets a hundred, but none that is as old can start"
    assert await queue.prepare(new("old2"))
    assert await starts(queue, "young")
    assert [one.id for one in (await queue.compositions("q")).compositions] == ["old0", "young"]


async def test_a_composition_is_kept_for_a_week() -> None:
    clock = ManualClock()
    queue = MemoryQueue(clock=clock)
    for of in ("a", "b"):
        await prepared(queue, of)
        await queue.start("q", of)
    first, second = await claim(queue)
    await queue.settle([Ack(first)])
    clock.now += 1
    await queue.settle([Ack(second)])
    clock.now += RETENTION - 1
    assert await queue.composition("q", "a") is None
    assert await queue.composition("q", "b") is not None
    # What can be read no more was forgotten before: a prune does not count it.
    assert await queue.prune_compositions("q", older_than=0) == 1
    clock.now += 1
    assert await queue.prune_compositions("q", older_than=0) == 0
    assert (await queue.compositions("q")).compositions == []
    assert await queue.prepare(new("a"))

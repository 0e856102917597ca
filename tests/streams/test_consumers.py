"""Consumers: one for each process, deleted when nothing is pending on them and never before."""

import pytest

from tenure.drivers.redis import retiring
from tenure.naming import new_holder
from tenure.queue import Ack
from tests.redis.steps import Q, claim, claim_one, job, jobs
from tests.streams.line import GROUP, StreamLine
from tests.support.processes import eventually_async


async def test_each_process_has_one_consumer_whatever_it_claims(line: StreamLine) -> None:
    await line.queue.push(jobs(20))
    other, holder = line.another(), new_holder()
    for _ in range(3):
        await claim(line.queue, 2)
        await claim(other, 2)
        await line.queue.claim([Q], limit=1, lease=60, wait=0, holder=holder)
    assert sorted(line.consumers.values()) == [3, 6, 6]
    assert line.consumers[holder.encode()] == 3


# W10
async def test_only_consumers_without_pending_entries_are_deleted(line: StreamLine) -> None:
    await line.queue.push(jobs(3))
    for place in range(105):
        line.command("XGROUP", "CREATE", line.key, GROUP, "0") if not place else None
        line.command("XGROUP", "CREATECONSUMER", line.key, GROUP, f"gone-{place:03}")
    lease = await claim_one(line.queue)
    busy = [name for name, pending in line.consumers.items() if pending]
    line.read("broken-off", 1)
    assert line.retire(idle=60_000) == 0
    assert line.retire() == 100
    assert line.retire() == 5
    assert set(line.consumers) == {*busy, b"broken-off"}
    assert sorted(line.consumers.values()) == [1, 1]
    # What a bare deletion does: the entry of "broken-off" would be out of everybody's reach.
    assert line.command("XGROUP", "DELCONSUMER", line.key, GROUP, "broken-off") == 1
    assert len(line.pending) == 1
    assert await line.queue.settle([Ack(lease)])


async def test_a_consumer_that_was_deleted_too_early_reads_on(line: StreamLine) -> None:
    await line.queue.push([job("a")])
    await line.queue.settle([Ack(await claim_one(line.queue))])
    assert line.retire() == 1
    await line.queue.push([job("b")])
    assert (await claim_one(line.queue)).id == "b"


async def test_the_names_of_processes_that_follow_one_another_do_not_pile_up(
    line: StreamLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retiring, "IDLE_MS", 0)
    most = 0
    for number in range(12):
        await line.queue.push([job(f"j{number}")])
        process = line.another()
        await process.settle([Ack(await claim_one(process))])

        async def retired() -> bool:
            return len(line.consumers) <= 1

        most = max(most, len(line.consumers))
        await process.aclose()
        await eventually_async(retired)
    assert most <= 2


async def test_a_queue_without_a_stream_has_no_consumers_to_delete(line: StreamLine) -> None:
    assert line.retire() == 0
    assert await claim(line.queue) == []
    await line.queue.push([job("a")])
    assert line.retire() == 0

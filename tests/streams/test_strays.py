"""What other hands do to the stream, and what a server forgets of it: no job is lost by it, and none is held twice."""

import time

from tenure.queue import Ack, Lease, Release, Settled, Settlement
from tests.redis.steps import Q, claim, claim_one, ids, job, jobs
from tests.streams.line import GROUP, StreamLine
from tests.support.processes import eventually_async


async def test_entries_that_a_broken_claim_left_pending_are_taken_up_again(line: StreamLine) -> None:
    await line.queue.push(jobs(5))
    held = await claim(line.queue, 2)
    assert len(line.read("died", 2)) == 2
    assert sorted(ids(await claim(line.queue, 5))) == ["j2", "j3", "j4"]
    assert len(line.pending) == len(line.entries) == 5
    assert line.consumers[b"died"] == 0
    assert await line.queue.settle([Ack(lease) for lease in held]) == [Settled.DONE] * 2


async def test_looking_for_strays_leaves_the_entries_of_leases_where_they_are(line: StreamLine) -> None:
    await line.queue.push(jobs(130))
    held = await claim(line.queue, 120)
    leased = line.pending
    line.read("died", 10)
    assert len(await claim(line.queue, 20)) == 10
    assert set(leased) <= set(line.pending)
    assert await claim(line.another(), 5) == []
    assert await line.queue.settle([Ack(lease) for lease in held]) == [Settled.DONE] * 120


async def test_a_claim_takes_up_at_most_a_hundred_strays_and_the_next_goes_on(line: StreamLine) -> None:
    await line.queue.push(jobs(230))
    await claim(line.queue)
    line.read("died", 229)
    await line.queue.pause(Q)
    found = []
    for _ in range(4):
        await claim(line.queue)
        found.append(sum(line.consumers.values()))
    assert found == [131, 31, 1, 1]  # a lease is looked at, too
    await line.queue.resume(Q)
    assert len(await claim(line.queue, 300)) == 229


async def test_the_last_of_many_strays_is_taken_up_within_two_seconds(line: StreamLine) -> None:
    await line.queue.push(jobs(2500))
    held = [lease for _ in range(3) for lease in await claim(line.queue, 830)]
    assert len(held) == 2490
    assert len(line.read("died", 10)) == 10
    began = time.monotonic()
    leases = await claim(line.another(), 10, wait=5)
    assert ids(leases) == [f"j{n}" for n in range(2490, 2500)]
    assert time.monotonic() - began < 2


async def test_a_stray_of_a_job_that_is_delayed_does_not_bring_it_early(line: StreamLine) -> None:
    await line.queue.push([job("later", delay=60), job("a")])
    await claim_one(line.queue)
    line.plant("j", "later|1")
    line.read("died", 1)
    assert await claim(line.queue, 5) == []
    assert (await line.queue.counts(Q)).delayed == 1
    assert len(line.pending) == 1


async def test_a_stray_whose_job_is_gone_is_dropped(line: StreamLine) -> None:
    await line.queue.push(jobs(3))
    await claim_one(line.queue)
    line.read("died", 2)
    await line.queue.cancel(Q, ["j1", "j2"])
    assert await claim(line.queue, 5) == []
    assert len(line.pending) == len(line.entries) == 1


async def test_an_entry_for_a_job_that_is_not_there_is_dropped_and_the_next_is_taken(line: StreamLine) -> None:
    line.plant("j", "ghost|1")
    await line.queue.push([job("real")])
    line.plant("j", "real|7")
    assert ids(await claim(line.queue, 5)) == ["real"]
    assert await claim(line.queue, 5) == []
    assert len(line.pending) == len(line.entries) == 1
    counts = await line.queue.counts(Q)
    assert (counts.failed, counts.unreadable) == (0, 0)


# W5
async def test_what_others_put_into_the_stream_is_set_aside_whole_and_holds_nothing_up(line: StreamLine) -> None:
    await line.queue.push([job("a")])
    await claim_one(line.queue)
    strange = [("event", "é\n\0x", "n", "1"), ("j", "no incarnation"), ("j", "b|1", "more", ""), ("k", "b|1")]
    planted = [line.plant(*fields) for fields in strange]
    await line.queue.push([job("b")])
    claimed = await line.queue.claim([Q], limit=5, lease=60, wait=0)
    assert ids(claimed.leases) == ["b"]
    assert [aside.id.encode() for aside in claimed.unreadable] == planted
    stray = line.plant("left", "pending")
    line.read("died", 1)
    claimed = await line.queue.claim([Q], limit=5, lease=60, wait=0)
    assert [aside.id.encode() for aside in claimed.unreadable] == [stray]
    records = await line.queue.unreadable(Q)
    assert [(record.id.encode(), record.reason) for record in records] == [(one, "entry") for one in [*planted, stray]]
    whole = await line.queue.unreadable_bytes(Q, records[0].key)
    assert whole == b"5:event,%d:%b,1:n,1:1," % (len("é\n\0x".encode()), "é\n\0x".encode())
    assert (await line.queue.counts(Q)).unreadable == 5
    assert len(line.pending) == len(line.entries) == 2


async def test_a_group_that_was_destroyed_is_made_anew_and_no_lease_is_given_twice(line: StreamLine) -> None:
    await line.queue.push(jobs(6))
    held = await claim(line.queue, 3)
    line.command("XGROUP", "DESTROY", line.key, GROUP)
    rest = await claim(line.another(), 10)
    assert ids(rest) == ["j3", "j4", "j5"]
    assert len(line.pending) == len(line.entries) == 6
    assert await claim(line.another(), 10) == []
    assert await line.queue.settle([Ack(lease) for lease in [*held, *rest]]) == [Settled.DONE] * 6
    assert (line.entries, line.pending) == ([], [])


async def test_a_job_that_is_put_off_while_the_group_is_lost_does_not_come_early(line: StreamLine) -> None:
    await line.queue.push(jobs(3))
    held = await claim(line.queue, 3)
    line.command("XGROUP", "DESTROY", line.key, GROUP)
    ends: list[Settlement] = [Release(held[0], delay=60), Release(held[1]), Ack(held[2])]
    assert await line.queue.settle(ends) == [Settled.DONE] * 3
    assert [fields for _, fields in line.entries] == [[b"j", b"j1|2"]]
    assert ids(await claim(line.queue, 5)) == ["j1"]
    assert (await line.queue.counts(Q)).delayed == 1


async def test_leases_of_a_lost_group_lapse_and_are_recovered(line: StreamLine) -> None:
    await line.queue.push(jobs(3))
    await claim(line.queue, 3, lease=0.5)
    line.command("XGROUP", "DESTROY", line.key, GROUP)
    assert await claim(line.queue, 3) == []
    again: list[Lease] = []

    async def recovered() -> bool:
        again.extend(await claim(line.queue, 3))
        return len(again) == 3

    await eventually_async(recovered)
    assert {lease.crashes for lease in again} == {1}
    assert len(line.pending) == len(line.entries) == 3


async def test_a_lease_from_before_a_clear_takes_no_entry_of_a_later_job(line: StreamLine) -> None:
    await line.queue.push([job("old"), job("cleared")])
    lease = await claim_one(line.queue)
    [entry] = line.pending
    assert await line.queue.clear(Q) == 1
    # The same id again, as two pushes within a millisecond around the clear may get it.
    await line.queue.push([job("new")])
    line.command("DEL", line.key)
    line.plant("j", "new|3", entry=entry.decode())
    assert await line.queue.settle([Release(lease)]) == [Settled.DONE]
    assert sorted(ids(await claim(line.queue, 5))) == ["new", "old"]


async def test_a_new_entry_that_gets_the_id_of_the_lost_one_stays(line: StreamLine) -> None:
    ahead = int(time.time() * 1000) + 60_000  # a server whose clock was ahead gives ids that follow one another
    line.plant("j", "ghost|1", entry=f"{ahead}-1")
    await line.queue.push([job("a")])
    lease = await claim_one(line.queue)
    assert line.pending == [f"{ahead}-2".encode()]
    line.command("DEL", line.key)
    line.plant("j", "ghost|1", entry=f"{ahead}-1")
    assert await line.queue.settle([Release(lease)]) == [Settled.DONE]
    assert [entry for entry, _ in line.entries] == [f"{ahead}-1".encode(), f"{ahead}-2".encode()]
    assert ids(await claim(line.queue, 5)) == ["a"]


async def test_entries_that_others_deleted_while_they_were_pending_cost_no_job(line: StreamLine) -> None:
    await line.queue.push(jobs(4))
    held = await claim(line.queue, 3, lease=0.5)
    line.command("XDEL", line.key, *line.pending)
    assert await line.queue.settle([Ack(held[0]), Release(held[1])]) == [Settled.DONE] * 2
    found = list(ids(await claim(line.queue, 5)))
    assert found == ["j3", "j1"]

    async def recovered() -> list[str]:
        return ids(await claim(line.queue, 5))

    assert await eventually_async(recovered) == ["j2"]
    assert len(line.pending) == len(line.entries) == 3

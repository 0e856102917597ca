"""What stands in the stream, from the push to the settlement."""

from collections.abc import Callable
from contextlib import closing

import msgspec
import pytest

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.layout import LAYOUTS, LISTS, STREAMS
from tenure.drivers.redis.scripts import Scripts
from tenure.errors import NotSupported, StoreRefused
from tenure.operating import Severity
from tenure.queue import Ack, Cancelled, Drop, Fail, Failure, JobState, Lease, Release, SetAside, Settled, Settlement
from tenure.testing.contract.steps import lapsed, pass_time
from tests.redis.steps import Q, claim, claim_one, ids, job, jobs
from tests.streams.line import StreamLine
from tests.support.servers import Server
from tests.support.topologies import client

WHY = Failure(reason="exception", type="ValueError", message="no")


# W1
async def test_a_push_adds_to_the_stream_or_to_the_delayed_set_with_all_that_the_envelope_carries(
    line: StreamLine,
) -> None:
    envelope = b'{"v":1,"meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}'
    await line.queue.push([job("now", envelope=envelope), job("later", delay=60, envelope=envelope)])
    [(_, fields)] = line.entries
    assert fields == [b"j", b"now|1"]
    assert line.client.zrange(line.keys.named("delayed"), 0, -1) == [b"later|2"]
    assert (await claim_one(line.queue)).envelope == envelope


# W2
async def test_a_claim_promotes_what_is_due_and_recovers_what_has_lapsed_before_it_reads(line: StreamLine) -> None:
    await line.queue.push([job("lapses")])
    await claim(line.queue, lease=0.05)
    await line.queue.push([job("waits"), job("due", delay=0.05)])
    await lapsed(line.queue)
    await pass_time(line.queue, 0.06)
    leases = await claim(line.queue, 3)
    assert sorted(ids(leases)) == ["due", "lapses", "waits"]
    assert {lease.id: (lease.attempt, lease.crashes) for lease in leases}["lapses"] == (2, 1)
    assert len(line.pending) == len(line.entries) == 3


def released_later(lease: Lease) -> Release:
    return Release(lease, delay=60)


# W3
@pytest.mark.parametrize(
    ("end", "left"),
    [
        (Ack, 0),
        (Drop, 0),
        (lambda lease: Fail(lease, WHY), 0),
        (lambda lease: SetAside(lease, "odd"), 0),
        (released_later, 0),
        (Release, 1),
        (lambda lease: Release(lease, crashed=True), 1),
    ],
    ids=["ack", "drop", "fail", "set aside", "release later", "release", "crashed"],
)
async def test_a_settlement_takes_the_entry_out_and_adds_the_next_attempt_in_the_same_step(
    line: StreamLine, end: Callable[[Lease], Settlement], left: int
) -> None:
    await line.queue.push(jobs(3))
    held = await claim(line.queue, 3)
    before = line.entries
    assert len(line.pending) == 3
    assert await line.queue.settle([end(held[1])]) == [Settled.DONE]
    assert len(line.pending) == 2
    entries = line.entries
    assert [entry for entry in entries if entry in before] == [before[0], before[2]]
    assert [fields for entry, fields in entries if (entry, fields) not in before] == [[b"j", b"j1|2"]] * left


# W4
async def test_dead_letters_are_kept_whole_oldest_first_with_reason_and_time(line: StreamLine) -> None:
    await line.queue.push([job(f"j{n}", envelope=b'{"n":%d}' % n) for n in range(3)])
    for lease in await claim(line.queue, 3):
        await line.queue.settle([Fail(lease, WHY)])
    records = await line.queue.failed(Q)
    assert [(one.id, one.envelope, one.attempts, one.failure) for one in records] == [
        (f"j{n}", b'{"n":%d}' % n, 1, WHY) for n in range(3)
    ]
    times = [one.failed_at for one in records]
    assert times == sorted(times)
    assert times[0] > 1.7e9
    assert line.entries == []


async def test_a_stale_settlement_leaves_the_entry_of_the_lease_that_is_held(line: StreamLine) -> None:
    await line.queue.push([job("a")])
    lease = await claim_one(line.queue)
    token = lease.token.replace(lease.token[:8], "x" * 8, 1)
    forged = msgspec.structs.replace(lease, token=token)
    assert await line.queue.settle([Ack(forged)]) == [Settled.STALE]
    assert len(line.pending) == len(line.entries) == 1
    assert await line.queue.settle([Ack(lease)]) == [Settled.DONE]


async def test_a_cancelled_job_leaves_its_entry_to_the_next_claim(line: StreamLine) -> None:
    await line.queue.push(jobs(3))
    assert await line.queue.cancel(Q, ["j0", "j1"]) == [Cancelled.REMOVED] * 2
    assert (await line.queue.counts(Q)).ready == 1
    lease = await claim_one(line.queue)
    assert lease.id == "j2"
    assert line.pending == [entry for entry, _ in line.entries]
    await line.queue.settle([Ack(lease)])
    assert line.entries == []


async def test_nothing_is_left_in_the_stream_when_everything_is_done(line: StreamLine) -> None:
    for _ in range(3):
        await line.queue.push(jobs(300))
        await line.queue.cancel(Q, [f"j{n}" for n in range(0, 300, 3)])
        while leases := await claim(line.queue, 70):
            await line.queue.settle([Ack(lease) for lease in leases])
    assert (line.entries, line.pending) == ([], [])


async def test_priorities_are_refused_by_name_before_anything_is_sent(line: StreamLine) -> None:
    with pytest.raises(NotSupported, match="'redis-streams' driver does not support priorities; nothing was sent"):
        await line.queue.push([job("a"), job("b", priority=1)])
    pusher = line.queue.pusher()
    with pytest.raises(NotSupported, match="priorities"):
        pusher.push([job("b", priority=-1)])
    pusher.close()
    assert list(line.client.scan_iter(match=line.keys.named("*").decode())) == []


async def test_a_class_of_durability_that_the_server_cannot_give_is_refused_by_the_drivers_name(
    own_server: Server, namespace: str
) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace, layout=STREAMS)
    with closing(client(own_server)) as control:
        control.config_set("appendonly", "no")
    with pytest.raises(NotSupported, match="'redis-streams' driver does not support durability 2"):
        await queue.push([job("a", durability=2)])
    await queue.aclose()


async def test_a_listing_goes_through_the_stream_from_entry_to_entry(line: StreamLine) -> None:
    await line.queue.push(jobs(30))
    await claim(line.queue, 5)
    await line.queue.cancel(Q, ["j7", "j8", "j29"])
    found, cursor = [], None
    while True:
        page = await line.queue.jobs(Q, JobState.READY, limit=4, cursor=cursor)
        found += [one.id for one in page.jobs]
        cursor = page.cursor
        if cursor is None:
            break
        await claim(line.queue)  # what was listed may go meanwhile, and nothing else is missed or repeated
    assert found == [f"j{n}" for n in range(5, 29) if n not in {7, 8}]


# W7
async def test_calls_that_are_refused_give_their_connections_back_and_leave_nothing_behind(line: StreamLine) -> None:
    await line.queue.push([job("a")])
    await claim(line.queue)
    named = {one["id"] for one in line.client.client_list()}
    line.client.rename(line.key, line.key + b":away")
    line.client.set(line.key, "taken")
    for _ in range(20):
        with pytest.raises(StoreRefused, match="WRONGTYPE"):
            await claim(line.queue)
        with pytest.raises(StoreRefused, match="WRONGTYPE"):
            await line.queue.push([job("b")])
    line.client.delete(line.key)
    line.client.rename(line.key + b":away", line.key)
    opened = {one["id"] for one in line.client.client_list()} - named
    assert len(opened) <= 2
    assert (await line.queue.counts(Q)).ready == 0
    await line.queue.push([job("b")])
    assert (await claim_one(line.another())).id == "b"


# W8
async def test_every_key_begins_with_the_prefix_and_the_queues_name(
    line: StreamLine, server: Server, namespace: str
) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace, prefix="acme:", layout=STREAMS)
    before = set(line.client.scan_iter(match="*", count=1000))
    await queue.push(jobs(5))
    lease = await claim_one(queue)
    await queue.settle([Fail(lease, WHY)])
    await queue.aclose()
    made = set(line.client.scan_iter(match=f"*{namespace}*", count=1000)) - before
    assert {key.decode() for key in made} > {f"acme:{{{namespace}:q}}:{name}" for name in ("ready", "jobs", "failed")}
    assert all(key.decode().startswith((f"acme:{{{namespace}:q}}:", f"acme:{namespace}:")) for key in made)


@pytest.mark.parametrize("first", LAYOUTS.values(), ids=LAYOUTS)
async def test_two_drivers_on_one_queue_refuse_each_other_before_they_write(
    first: object, line: StreamLine, server: Server, namespace: str
) -> None:
    lists = RedisQueue.from_url(server.url, namespace=namespace)
    one, other = (lists, line.queue) if first is LISTS else (line.queue, lists)
    await one.push(jobs(2))
    for call in (other.push([job("x")]), claim(other), other.counts(Q), other.clear(Q)):
        with pytest.raises(StoreRefused, match="WRONGTYPE"):
            await call
    assert {found.check for found in await other.diagnose() if found.severity is Severity.SERIOUS} >= {"types"}
    leases = await claim(one, 5)
    assert ids(leases) == ["j0", "j1"]
    assert await one.settle([Ack(lease) for lease in leases]) == [Settled.DONE] * 2
    await lists.aclose()


def test_no_script_claims_by_idle_time_or_trims() -> None:
    scripts = Scripts(line="stream")
    for name in scripts.names:
        source = scripts[name].source
        assert not any(f"'{command}'".encode() in source for command in ("XCLAIM", "XAUTOCLAIM", "XTRIM")), name

"""What somebody else has written into the store is set aside or dropped; no counter moves by it, and nothing stops."""

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.queue import Ack, Aside, Cancelled, Fail, Failure, JobState, Release, Settled
from tests.redis.scripted import Scripted
from tests.redis.steps import Q, claim, claim_one, ids, job, jobs

MALFORMED = {
    "nothing": b"",
    "no line": b"1|0|0|0|0|0|0|0",
    "an envelope alone": b'{"v":1}',
    "a negative counter": b"1|-1|0|0|0|0|0|0\n{}",
    "more free returns than deliveries": b"1|1|2|0|0|0|0|0\n{}",
    "more crashes than deliveries": b"1|1|0|2|0|0|0|0\n{}",
    "a counter of a hundred digits": b"1|" + b"9" * 100 + b"|0|0|0|0|0|0\n{}",
    "letters": b"1|a|0|0|0|0|0|0\n{}",
    "a field too few": b"1|0|0|0|0|0|0\n{}",
    "a fraction": b"1|0|0|0|0|0|0|0.5\n{}",
    "a priority beyond all": b"1|0|0|0|0|0|0|99999\n{}",
    "a tail that is no field": b"1|0|0|0|0|0|0|0tail\n{}",
    "sixty thousand digits": b"1|0|0|0|0|0|1|" + b"9" * 60_000,
    "a line beyond all": b"1|0|0|0|0|0|1|0|" + b"9" * 60_000 + b"\n{}",
    "bytes": bytes(range(256)),
    "another script": b"]] redis.call('SET', 'x', 1) --\n",
}


def plant(raw: Scripted, job_id: str, record: bytes, entry: str | None = None) -> None:
    raw.client.hset(raw.key("jobs"), job_id, record)
    raw.client.rpush(raw.key("ready"), entry or f"{job_id}|1")


@pytest.fixture
def raw(client: redis.Redis, namespace: str) -> Scripted:
    return Scripted(client, namespace)


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_record_that_is_none_is_set_aside_byte_for_byte(queue: RedisQueue, raw: Scripted, kind: str) -> None:
    plant(raw, "bad", MALFORMED[kind])
    await queue.push([job("good")])
    claimed = await queue.claim([Q], limit=5, lease=60, wait=0)
    assert ids(claimed.leases) == ["good"]
    assert claimed.unreadable == [Aside(Q, "bad")]
    (kept,) = raw.dump()["unreadable"]
    assert kept[b"record"] == MALFORMED[kind]
    assert (await queue.counts(Q)).unreadable == 1
    assert (await queue.states(Q, ["bad"])) == [JobState.GONE]
    assert (await queue.push([job("bad")]))[0].outcome == "stored"


async def test_fields_that_a_later_version_adds_are_carried_through_every_transition(
    queue: RedisQueue, raw: Scripted
) -> None:
    plant(raw, "a", b"1|0|0|0|0|0|0|7|u=abc|n=5\npayload", "a|1")
    lease = await claim_one(queue)
    assert lease.envelope == b"payload"
    await queue.settle([Release(lease)])
    lease = await claim_one(queue, lease=0.001)
    lease = await claim_one(queue, wait=1)
    assert (lease.deliveries, lease.crashes) == (3, 1)
    await queue.settle([Fail(lease, Failure(reason="exception"))])
    assert raw.dump()["failed"][b"a"].split(b"\n")[0].endswith(b"|7|u=abc|n=5")
    (failed,) = await queue.failed(Q)
    assert (failed.attempts, failed.envelope) == (3, b"payload")
    assert await queue.retry([failed]) == [True]
    assert raw.dump()["jobs"][b"a"].endswith(b"|7|u=abc|n=5\npayload")


@pytest.mark.parametrize("entry", ["a|2", "a", "a|", "|1", "", "a|1|x", "nobody|1", "a|1 "])
async def test_an_entry_that_names_no_waiting_job_is_dropped(queue: RedisQueue, raw: Scripted, entry: str) -> None:
    await queue.push([job("a"), job("p", priority=3)])
    raw.client.lpush(raw.key("ready"), entry)
    raw.client.zadd(raw.key("ready:prio"), {entry: -50, f"{'0' * 16}|{entry}": -49})
    raw.client.lpush(raw.key("suspects"), entry)
    assert ids(await claim(queue, 5)) == ["p", "a"]
    dump = raw.dump()
    assert dump.keys().isdisjoint({"ready", "ready:prio", "suspects", "jobs"})


async def test_a_job_that_stands_in_line_twice_is_leased_once(queue: RedisQueue, raw: Scripted) -> None:
    await queue.push([job("a"), job("b")])
    raw.client.rpush(raw.key("ready"), "a|1", "a|1")
    leases = await claim(queue, 5)
    assert ids(leases) == ["a", "b"]
    assert await queue.settle([Ack(lease) for lease in leases]) == [Settled.DONE] * 2


@pytest.mark.parametrize(
    "member",
    ["", "garbage", "a", "a|1", "a|2|1|0|0|t|5|1000", "nobody|1|1|0|0|t|5|1000", "a|1|-1|0|0|t|5|1000", "x|y|z"],
)
async def test_a_lease_that_is_none_lapses_without_a_trace(queue: RedisQueue, raw: Scripted, member: str) -> None:
    await queue.push([job("a")])
    lease = await claim_one(queue)
    raw.client.zadd(raw.key("leased"), {member: 5})
    assert await claim(queue, 5) == []
    assert await queue.settle([Ack(lease)]) == [Settled.DONE]
    assert raw.dump().keys().isdisjoint({"leased", "running", "jobs", "unreadable"})


async def test_a_deadline_that_never_comes_is_pulled_back(queue: RedisQueue, raw: Scripted) -> None:
    await queue.push([job("a")])
    lease = await claim_one(queue, lease=0.2)
    (member,) = (member for member, _ in raw.dump()["leased"])
    raw.client.zadd(raw.key("leased"), {member: "inf", "garbage": "inf"})
    assert await claim(queue) == []
    again = await claim_one(queue, wait=2)
    assert (again.id, again.crashes) == (lease.id, 1)
    assert "garbage" not in str(raw.dump()["leased"])


async def test_a_running_record_that_was_spoilt_is_set_aside_when_its_lease_ends(
    queue: RedisQueue, raw: Scripted
) -> None:
    await queue.push(jobs(3))
    released, lapsing, lost = await claim(queue, 3, lease=0.1)
    for lease in (released, lapsing):
        raw.client.hset(raw.key("running"), lease.id, b"spoilt")
    raw.client.hdel(raw.key("running"), lost.id)
    assert await queue.cancel(Q, [lapsing.id]) == [Cancelled.NOT_FOUND]
    assert await queue.settle([Release(released), Release(lost)]) == [Settled.DONE, Settled.STALE]
    claimed = await queue.claim([Q], limit=5, lease=60, wait=2)
    assert claimed.unreadable == [Aside(Q, lapsing.id)]
    assert [kept[b"record"] for kept in raw.dump()["unreadable"]] == [b"spoilt"] * 2
    assert "leased" not in raw.dump()


async def test_a_cancel_leaves_a_record_that_it_cannot_read(queue: RedisQueue, raw: Scripted) -> None:
    plant(raw, "bad", b"spoilt")
    assert await queue.cancel(Q, ["bad"]) == [Cancelled.NOT_FOUND]
    assert raw.dump()["jobs"] == {b"bad": b"spoilt"}
    assert await queue.states(Q, ["bad"]) == [JobState.READY]
    assert (await queue.counts(Q)).oldest_age is None


async def test_a_failed_record_that_is_none_is_passed_over(queue: RedisQueue, raw: Scripted) -> None:
    await queue.push([job("a")])
    await queue.settle([Fail(await claim_one(queue), Failure(reason="exception"))])
    for name, record in {"b": b"", "c": b"1|0\n{}\n", "d": b"1|0|0|0|0|0|0|0\nno json\n{}"}.items():
        raw.client.hset(raw.key("failed"), name, record)
        raw.client.zadd(raw.key("failed:at"), {name: 1})
    raw.client.zadd(raw.key("failed:at"), {"ghost": 1})
    assert [record.id for record in await queue.failed(Q)] == ["a"]
    assert await queue.failed_record(Q, "b") is None
    assert await queue.failed_record(Q, "ghost") is None


@pytest.mark.parametrize(
    "kept", ["s|", "p|", "s|1|2", "f|1|5|9999999999999|x", "s|a|b|c|d", "p|1|half|x", "s|1|x|9999999999999|"]
)
async def test_what_is_kept_of_a_job_and_is_none_is_passed_over(queue: RedisQueue, raw: Scripted, kept: str) -> None:
    raw.client.hset(raw.key("kept"), "a", kept)
    assert await queue.endings(Q, ["a"]) == [None]
    assert await queue.progress(Q, ["a"]) == [None]


@pytest.mark.parametrize("digits", ["9" * 400, "9" * 5000])
async def test_a_failed_record_with_numbers_beyond_all_is_passed_over(
    queue: RedisQueue, raw: Scripted, digits: str
) -> None:
    raw.client.hset(raw.key("failed"), "b", f'1|0|0|0|0|0|{digits}|0\n{{"reason":"exception"}}\n{{}}')
    raw.client.zadd(raw.key("failed:at"), {"b": 1})
    assert await queue.failed_record(Q, "b") is None
    assert await queue.failed(Q) == []


@pytest.mark.parametrize("kept", ["", "x", "5", "|", "x|y"])
async def test_a_client_record_that_is_none_gives_the_call_a_new_id(raw: Scripted, kept: str) -> None:
    raw.client.set(raw.key("client:c"), kept)
    assert raw.push("c", 1, ("a", "", b"{}"))[0] == b"old"
    assert "jobs" not in raw.dump()


# S16
async def test_values_that_look_like_code_stay_values(queue: RedisQueue, raw: Scripted) -> None:
    envelope = b"]] redis.call('DEL', KEYS[1]) --\0\r\n$5\r\n%s|1|2"
    await queue.push([job("...", envelope=envelope), job("-_.", envelope=envelope)])
    leases = await claim(queue, 2)
    assert [lease.envelope for lease in leases] == [envelope] * 2
    failure = Failure(reason="exception", message="a|b\nc\0\u2028]]", traceback="x\r\n" * 3)
    await queue.settle([Fail(leases[0], failure)])
    (failed,) = await queue.failed(Q)
    assert (failed.failure, failed.envelope) == (failure, envelope)

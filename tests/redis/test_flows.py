"""Compositions on the server: what lies there, in what steps it goes, and that nothing of it is left at the end."""

import re
from typing import Any, cast

import pytest
import redis

from tenure.compositions import ABANDONED, START, Gate, Kind, NewComposition, When
from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.layout import LAYOUTS, Layout
from tenure.errors import NotSupported, StoreRefused
from tenure.queue import Ack, Drop, Fail, Failure, JobState, Release, Settled, Settlement
from tenure.testing.contract.composing import END, batch, begun, chain, member, prepared, ran, status
from tests.redis.scripted import Scripted, with_set_clock
from tests.redis.steps import Q, claim, claim_one, job
from tests.support.processes import eventually_async
from tests.support.servers import Server

WHY = Failure(reason="exception")
DAY = 86_400_000


def left_over(client: redis.Redis, namespace: str) -> dict[str, Any]:
    """Return what of a queue is stored besides its counters and its clients' last calls."""
    held = Scripted(client, namespace).dump()
    return {name: value for name, value in held.items() if not re.match(r"client:|(seq|fence|taken|wake)$", name)}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
async def test_nothing_is_left_of_compositions_that_are_over_and_forgotten(
    layout: Layout, server: Server, client: redis.Redis, namespace: str
) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace, layout=layout)
    for of in ("acked", "dropped", "cancelled", "cleared"):
        await begun(queue, batch(5, of=of, unique="0" * 32 if of == "dropped" else ""), of=of, kind=Kind.BATCH)
        if of == "acked":
            await ran(queue)
        if of == "dropped":
            await queue.settle([Drop(await claim_one(queue))])
            await ran(queue)
        if of == "cancelled":
            assert await queue.cancel_composition(Q, of)
        if of == "cleared":
            await queue.clear(Q)
    await begun(queue, chain(4, of="chain", results=True), of="chain")
    for _ in range(4):
        await queue.settle([Ack(await claim_one(queue), b"x" * 100)])
    forgotten = 0
    while forgotten < 5:
        await ran(queue)
        forgotten += await queue.prune_compositions(Q, older_than=0)
    assert left_over(client, namespace) in ({}, {"ready:sweep": {b"gap": b"0", b"from": b""}})
    await queue.aclose()


def spoil(client: redis.Redis, key: bytes, job_id: str, *, tail: bool = True) -> None:
    """Write nonsense over a record's header, or over the first part of it alone."""
    record = cast("bytes", client.hget(key, job_id))
    head, body = record.split(b"\n", 1)
    client.hset(key, job_id, (b"?" + head if tail else b"?") + b"\n" + body)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
async def test_a_member_whose_header_was_spoilt_counts_as_failed_as_long_as_its_place_is_known(
    layout: Layout, server: Server, client: redis.Redis, namespace: str
) -> None:
    queue = RedisQueue.from_url(server.url, namespace=namespace, layout=layout)
    raw = Scripted(client, namespace)
    await begun(queue, batch(6, callbacks=[When.FAILURE]), kind=Kind.BATCH)
    leases = {lease.id: lease for lease in await claim(queue, 3)}
    lapsing = await claim_one(queue, lease=0.001)
    for held, tail in (("c.0", True), ("c.1", False), (lapsing.id, False)):
        spoil(client, raw.key("running"), held, tail=tail)
    spoil(client, raw.key("jobs"), "c.4")
    spoil(client, raw.key("jobs"), "c.5")
    settled: list[Settlement] = [Fail(leases["c.0"], WHY), Release(leases["c.1"]), Ack(leases["c.2"])]
    assert list(await queue.settle(settled)) == [Settled.DONE] * 3

    others: list[str] = []

    async def has_run() -> bool:
        leases = (await queue.claim([Q], limit=50, lease=60, wait=0)).leases
        await queue.settle([Ack(lease) for lease in leases])
        others.extend(lease.id for lease in leases)
        return others == ["c.c12"]

    await eventually_async(has_run, what="the callback has run")
    assert (await queue.counts(Q)).unreadable == 5
    found = await status(queue)
    assert (found.state.value, found.succeeded, found.failed) == ("completed_with_failures", 1, 5)
    await queue.aclose()


def nodes(numbers: range) -> list[Any]:
    return [argument for number in numbers for argument in (number, b"j|1|s|||\n{}")]


def made(raw: Scripted, of: str, number: int) -> None:
    assert raw.numbered("prepare", "p", number, [of, "b", 1000, DAY, "name"])[1] == b"y"


def test_what_was_never_started_is_forgotten_a_hundred_nodes_a_claim(client: redis.Redis, namespace: str) -> None:
    raw = Scripted(client, namespace, with_set_clock())
    raw.set_clock(1_000_000)
    made(raw, "c", 1)
    raw.numbered("add", "a", 1, ["c", *nodes(range(-30, 220))])
    raw.set_clock(1_000_000 + DAY - 1)
    raw.claim("x", 1)
    assert client.hlen(raw.key("flows:nodes")) == 250
    raw.set_clock(1_000_000 + DAY)
    assert raw.numbered("start", "s", 1, ["c"])[1] == b"n"
    for left in (150, 50, 0):
        raw.claim("x", 1)
        assert client.hlen(raw.key("flows:nodes")) == left
        assert raw.numbered("add", f"a{left}", 1, ["c", *nodes(range(300, 301))])[1] == (b"n")
    assert not client.exists(*map(raw.key, ("flows", "flows:until", "flows:nodes")))
    made(raw, "c", 2)
    assert ABANDONED * 1000 == DAY


def test_a_repeated_part_adds_nothing_and_a_repeated_start_releases_nothing(
    client: redis.Redis, namespace: str
) -> None:
    raw = Scripted(client, namespace)
    made(raw, "c", 1)
    assert raw.numbered("prepare", "p", 1, ["c", "b", 1000, DAY, "name"]) == [b"repeated", b"y"]
    for status_told in (b"done", b"repeated"):
        answer = raw.numbered("add", "a", 1, ["c", *nodes(range(3)), -1, b"g|1|0,1,2"])
        assert answer == [status_told, b"y"]
    for status_told in (b"done", b"repeated"):
        assert raw.numbered("start", "s", 1, ["c"]) == [status_told, b"y"]
    assert raw.call("composition", ["c"]).split(b"|")[3:8] == [b"3", b"0", b"0", b"0", b"3"]
    assert client.hlen(raw.key("jobs")) == 3
    member_of = raw.claim("x", 1, limit=1)[6]
    for status_told in (b"done", b"repeated"):
        assert raw.settle("e", 1, [member_of]) == [status_told, b""]
    assert raw.call("composition", ["c"]).split(b"|")[3:8] == [b"3", b"1", b"0", b"0", b"2"]


def test_a_repeated_step_of_a_cancel_tells_where_to_go_on(client: redis.Redis, namespace: str) -> None:
    raw = Scripted(client, namespace)
    made(raw, "c", 1)
    raw.numbered("add", "a", 1, ["c", *nodes(range(250)), -1, b"g|1|0"])
    raw.numbered("start", "s", 1, ["c"])
    for status_told in (b"done", b"repeated"):
        assert raw.numbered("halt", "h", 1, ["c", ""]) == [status_told, b"100"]
    assert raw.numbered("halt", "h", 2, ["c", 100])[1] == b"200"
    assert raw.numbered("halt", "h", 3, ["c", 200])[1] == b""
    assert raw.call("composition", ["c"]).split(b"|")[2:8] == [b"1", b"250", b"0", b"0", b"250", b"0"]
    assert raw.numbered("halt", "h", 4, ["c", ""])[1] == b"n"


def test_every_release_leaves_a_marker_for_a_claim_that_waits(client: redis.Redis, namespace: str) -> None:
    raw = Scripted(client, namespace)
    made(raw, "c", 1)
    parts = [-1, b"g|1|0", 0, b"j|1|s|1||\n", 1, b"j|1|s|-2||\n", -2, b"g|1|-3", -3, b"j|1|a||a|\n"]
    raw.numbered("add", "a", 1, ["c", *parts])
    raw.numbered("start", "s", 1, ["c"])
    assert client.lpop(raw.key("wake")) == b"1"
    raw.settle("e", 1, [raw.claim("x", 1)[6]])
    assert client.lpop(raw.key("wake")) == b"1"
    assert raw.claim("x", 2)[6].startswith(b"c.1|")
    assert raw.numbered("halt", "h", 1, ["c", ""])[1] == b""
    raw.settle("e", 2, [], [("r", raw.claim("x", 2, repeat=1)[6], "0", "")])
    assert client.lpop(raw.key("wake")) == b"1"
    assert raw.claim("x", 3)[6].startswith(b"c.c3|")


async def test_a_step_of_a_cancel_reads_a_mebibyte_at_most(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    envelope = b"e" * 300_000
    await begun(queue, [Gate(number=START, next=(0,)), *(member(n, envelope=envelope) for n in range(10))])
    raw = Scripted(client, namespace)
    assert raw.numbered("halt", "h", 1, ["c", ""])[1] == b"4"
    assert raw.numbered("halt", "h", 2, ["c", 4])[1] == b"8"


async def test_a_sweep_reads_a_mebibyte_at_most(queue: RedisQueue, client: redis.Redis, namespace: str) -> None:
    envelope = b"e" * 300_000
    await begun(queue, [Gate(number=START, next=(0,)), member(0)])
    await queue.push([job(f"j{n}", envelope=envelope) for n in range(10)])
    assert await queue.clear(Q) == 11
    raw = Scripted(client, namespace)
    (leftover,) = cast("list[bytes]", client.lrange(raw.key("gone"), 0, -1))
    left = []
    while client.exists(leftover):
        raw.call("sweep", leftover=leftover.removeprefix(raw.key("")).decode())
        left.append(client.hlen(leftover))
    assert left[0] in {6, 7}  # the small one may be among them
    assert left[-1] == 0
    assert (await status(queue)).cancelled == 1


async def test_a_call_releases_a_mebibyte_at_most(queue: RedisQueue, client: redis.Redis, namespace: str) -> None:
    envelope = b"e" * 300_000
    fan = Gate(number=START, next=tuple(range(10)))
    await begun(queue, [fan, *(member(n, envelope=envelope) for n in range(10))])
    assert client.hlen(f"{{{namespace}:{Q}}}:jobs") == 4
    assert sorted(await ran(queue)) == sorted(f"c.{n}" for n in range(10))


async def test_endings_that_are_left_with_their_results_are_told_by_later_calls(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    for number in range(150):
        of = f"c{number}"
        await begun(queue, chain(2, of=of, results=True), of=of)
    leases = await claim(queue, 150)
    results = {lease.composition: f"=:|{lease.id}\n".encode() for lease in leases}
    assert set(await queue.settle([Ack(lease, results[lease.composition]) for lease in leases])) == {Settled.DONE}
    assert client.llen(f"{{{namespace}:{Q}}}:flows:due") == 50
    told = {lease.composition: lease.input for lease in await claim(queue, 500)}
    assert told == results
    assert not client.exists(f"{{{namespace}:{Q}}}:flows:due")


async def test_an_argument_that_was_passed_on_is_no_part_of_the_envelope(queue: RedisQueue) -> None:
    envelope = b'{"a":1}\n|'
    await begun(queue, chain(3, results=True, envelope=envelope, keep=60))
    await queue.settle([Ack(await claim_one(queue), b"re\nsult")])
    lease = await claim_one(queue)
    assert (lease.envelope, lease.input, lease.gives, lease.composition) == (envelope, b"re\nsult", True, "c")
    (listed,) = (await queue.jobs(Q, JobState.RUNNING)).jobs
    assert listed.id == "c.1"
    await queue.settle([Release(lease)])
    lease = await claim_one(queue)
    assert (lease.envelope, lease.input) == (envelope, b"re\nsult")
    await queue.settle([Fail(lease, WHY)])
    (record,) = await queue.failed(Q)
    assert record.envelope == envelope
    assert await queue.failed_record(Q, "c.1") == record
    assert await queue.retry([record]) == [True]
    lease = await claim_one(queue)
    assert (lease.envelope, lease.input, lease.gives, lease.composition) == (envelope, b"re\nsult", False, "")
    assert lease.keep == 60
    before = await status(queue)
    await queue.settle([Ack(lease, b"")])
    assert await status(queue) == before


async def test_a_member_is_told_apart_from_a_plain_job_of_its_name(queue: RedisQueue) -> None:
    """A job's id alone puts it into no composition."""
    await queue.push([job("c.1")])
    await begun(queue, [Gate(number=START, next=(0, 1)), member(0), member(1)])
    leases = {lease.id: lease for lease in await claim(queue, 5)}
    assert leases["c.1"].composition == ""
    found = await status(queue)
    assert (found.total, found.cancelled) == (2, 1)
    await queue.settle([Ack(leases["c.1"])])
    assert await status(queue) == found


async def test_jobs_of_another_queue_are_refused_before_anything_is_sent(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    await queue.prepare(NewComposition(id="c", home=Q, kind=Kind.BATCH))
    before = Scripted(client, namespace).dump()
    with pytest.raises(NotSupported, match="several queues"):
        await queue.add(Q, "c", [*(member(n) for n in range(600)), member(600, queue="other")])
    assert Scripted(client, namespace).dump() == before


async def test_with_memory_full_a_start_is_refused_unwritten_and_settlements_release(
    own_server: Server, namespace: str
) -> None:
    queue = RedisQueue.from_url(own_server.url, namespace=namespace)
    with redis.Redis(unix_socket_path=own_server.socket, protocol=2) as client:
        await begun(queue, batch(3))
        await begun(queue, chain(3, of="x"), of="x")
        await prepared(queue, batch(2, of="d"), of="d")
        leases = await claim(queue, 10)
        raw = Scripted(client, namespace)
        client.config_set("maxmemory", 1)
        before = raw.dump()
        with pytest.raises(StoreRefused, match="OOM"):
            await queue.start(Q, "d")
        with pytest.raises(StoreRefused, match="OOM"):
            await queue.prepare(NewComposition(id="e", home=Q, kind=Kind.BATCH))
        with pytest.raises(StoreRefused, match="OOM"):
            await queue.add(Q, "d", [member(2, of="d")])
        with pytest.raises(StoreRefused, match="OOM"):
            await queue.grow(leases[0], [member(0)])
        assert raw.dump() == before
        assert set(await queue.settle([*map(Ack, leases[:3]), Drop(leases[3])])) == {Settled.DONE}
        assert sorted(await ran(queue)) == ["c.c11", "c.c13"]
        assert (await status(queue)).finished
        assert not await queue.cancel_composition(Q, "c")
        assert await queue.prune_compositions(Q, older_than=0) == 2
        client.config_set("maxmemory", 0)
        await queue.start(Q, "d")
        assert await queue.cancel_composition(Q, "d")
    await queue.aclose()


async def test_many_compositions_are_forgotten_by_steps_and_by_claims(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    for number in range(230):
        of = f"c{number}"
        await begun(queue, chain(1, of=of), of=of, retention=0 if number % 2 else 60)
    await ran(queue)
    await claim(queue)
    await claim(queue)
    assert client.hlen(f"{{{namespace}:{Q}}}:flows") == 115
    assert await queue.prune_compositions(Q, older_than=0) == 115
    assert not client.exists(*(f"{{{namespace}:{Q}}}:flows{part}" for part in ("", ":ids", ":until", ":nodes")))


async def test_what_is_no_composition_of_ours_holds_nothing_up(
    queue: RedisQueue, client: redis.Redis, namespace: str
) -> None:
    start = f"{{{namespace}:{Q}}}"
    await begun(queue, chain(2, of="x"), of="x")
    client.hset(f"{start}:flows", "junk", "junk")
    client.hset(f"{start}:flows:nodes", "x:1", "junk")
    client.rpush(f"{start}:flows:due", "junk", "y:1:0:5:", "x:1:0:7:")
    assert await ran(queue) == ["x.0"]
    assert await queue.composition(Q, "junk") is None
    assert not client.exists(f"{start}:flows:due")


async def test_a_callback_that_runs_in_any_case_is_the_only_one_that_does_after_a_cancel(queue: RedisQueue) -> None:
    await begun(queue, batch(2), kind=Kind.BATCH)
    leases = await claim(queue, 2)
    assert await queue.cancel_composition(Q, "c")
    assert list(await queue.settle(list(map(Release, leases)))) == [Settled.CANCELLED] * 2
    assert await ran(queue) == ["c.c13"]
    assert (END, When.ANY) == (-2, "any")

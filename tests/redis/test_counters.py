"""Counters stay whole numbers in plain decimals, also where Lua's numbers would turn into 1e+15 or lose digits."""

import pytest
import redis

from tenure.drivers.redis import RedisQueue
from tenure.errors import StoreRefused
from tenure.queue import Ack, Release, Settled
from tests.redis.scripted import Scripted, with_set_clock
from tests.redis.steps import Q, claim, claim_one, ids, job

EDGES = [299_999_999, 10**15, 2**53 - 1, 2**53 + 1]


@pytest.mark.parametrize("edge", EDGES)
async def test_incarnations_go_on_from_any_sequence(
    queue: RedisQueue, client: redis.Redis, namespace: str, edge: int
) -> None:
    client.set(f"{{{namespace}:{Q}}}:seq", edge)
    await queue.push([job("a"), job("b"), job("c", priority=5), job("d", priority=5)])
    leases = await claim(queue, 4)
    assert ids(leases) == ["c", "d", "a", "b"]
    assert [lease.incarnation for lease in leases] == [edge + 3, edge + 4, edge + 1, edge + 2]
    assert set(await queue.settle([Release(lease) for lease in leases])) == {Settled.DONE}
    again = await claim(queue, 4)
    assert ids(again) == ["c", "d", "a", "b"]
    assert set(await queue.settle([Ack(lease) for lease in again])) == {Settled.DONE}
    assert Scripted(client, namespace).dump().keys() >= {"seq"}
    assert client.get(f"{{{namespace}:{Q}}}:seq") == str(edge + 8).encode()


@pytest.mark.parametrize("edge", EDGES)
async def test_fences_rise_from_any_fence_and_from_any_clock(
    queue: RedisQueue, client: redis.Redis, namespace: str, edge: int
) -> None:
    client.set(f"{{{namespace}:{Q}}}:fence", edge)
    fences = []
    await queue.push([job("a")])
    for _ in range(3):
        lease = await claim_one(queue)
        fences.append(lease.fence)
        await queue.settle([Release(lease, free=True)])
    assert fences == sorted(set(fences))
    assert fences[0] > edge
    stored = client.get(f"{{{namespace}:{Q}}}:fence")
    assert stored == str(fences[-1]).encode()


@pytest.mark.parametrize("now", [299_999_999, 10**12, 10**13 - 1])
def test_times_are_written_in_plain_decimals(client: redis.Redis, namespace: str, now: int) -> None:
    raw = Scripted(client, namespace, with_set_clock())
    raw.set_clock(now)
    raw.push("p", 1, ("a", "100000000|0|0|100000000|100000000", b"{}"), ("b", "", b"{}"))
    (_, _, _, _, _, _, member, _) = raw.claim("c", 1, lease=100_000_000)
    raw.settle("s", 1, [], [("r", member, "99999999", "")])
    for value in raw.dump().values():
        assert b"e+" not in repr(value).encode()
    assert dict(raw.dump()["delayed"]) == {b"a|1": now + 100_000_000, b"b|2": now + 99_999_999}


@pytest.mark.parametrize("sequence", ["ten", "", "-5", "9" * 19])
async def test_a_sequence_that_is_no_number_refuses_the_call_before_it_writes(
    queue: RedisQueue, client: redis.Redis, namespace: str, sequence: str
) -> None:
    client.set(f"{{{namespace}:{Q}}}:seq", sequence)
    before = Scripted(client, namespace).dump()
    with pytest.raises(StoreRefused) as refused:
        await queue.push([job("a")])
    assert refused.value.code == "WRONGVALUE"
    with pytest.raises(StoreRefused):
        await claim(queue)
    assert Scripted(client, namespace).dump() == before

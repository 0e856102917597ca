"""An envelope is opaque: it comes back byte for byte by every road (P13)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import random
from collections.abc import Awaitable, Callable

import pytest

from tenure.queue import Fail, Lease, Queue, Release
from tenure.testing.contract.steps import (
    WHY,
    Q,
    claim,
    claim_one,
    done,
    failed_jobs,
    job,
    lapsed,
    numbered,
    push,
)
from tenure.testing.contract.store import StoreUnderTest

HOSTILE = {
    "empty": b"",
    "newline": b"\n",
    "header": b"1|2|3|4|5\n6|7|8\n",
    "bars": b"|||\n|||",
    "nul": b"\x00",
    "nuls": b"a\x00b\x00\n\x00",
    "every-byte": bytes(range(256)) * 4,
    "invalid-utf-8": b"\xff\xfe\xc0\x80\xed\xa0\x80",
    "bom": b"\xef\xbb\xbf{}",
    "crlf": b"a\r\nb\r\n$5\r\nhello\r\n",
    "digits": b"130775545883395173",
    "spaces": b" \t \n ",
    "lua": b']] redis.call("DEL", KEYS[1]) --',
    "sql": b"'); DROP TABLE jobs; -- %s $1 ?",
    "json": (
        b'{"a":130775545883395173,"b":9007199254740993,"c":9223372036854775807,"d":18446744073709551616,'
        b'"e":-1180591620717411303424,"f":1.1,"g":[],"h":{},"i":"","j":null,"k":"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"}'
    ),
    "number": b"9" * 4300,
    "brackets": b"[" * 10_000,
    "largest": b"x" * 60_000,
}


async def direct(_: Queue, lease: Lease) -> Lease:
    return lease


async def released(queue: Queue, lease: Lease) -> Lease:
    await done(queue, Release(lease))
    return await claim_one(queue)


async def delayed(queue: Queue, lease: Lease) -> Lease:
    await done(queue, Release(lease, delay=0.01))
    return await claim_one(queue, wait=5)


async def reclaimed(queue: Queue, lease: Lease) -> Lease:
    await done(queue, Release(lease))
    await claim_one(queue, lease=0.01)
    await lapsed(queue)
    return await claim_one(queue)


async def retried(queue: Queue, lease: Lease) -> Lease:
    await done(queue, Fail(lease, WHY))
    record = await failed_jobs(queue).failed_record(Q, lease.id)
    assert record is not None
    assert record.envelope == lease.envelope
    await failed_jobs(queue).retry([record])
    return await claim_one(queue)


ROADS: list[Callable[[Queue, Lease], Awaitable[Lease]]] = [direct, released, delayed, reclaimed, retried]


@pytest.mark.parametrize("envelope", HOSTILE.values(), ids=HOSTILE.keys())
async def test_an_envelope_comes_back_byte_for_byte_by_every_road(store: StoreUnderTest, envelope: bytes) -> None:
    await push(store.queue, job("x", envelope=envelope, delay=0.001))
    lease = await claim_one(store.queue, wait=5)
    for road in ROADS:
        lease = await road(store.queue, lease)
        assert lease.envelope == envelope, road.__name__


async def test_random_envelopes_come_back_each_with_its_own_job(store: StoreUnderTest) -> None:
    dice = random.Random(13)  # noqa: S311 - bytes that can be had again
    pushes = [job(one.id, envelope=dice.randbytes(dice.randrange(2000))) for one in numbered(200)]
    await push(store.queue, *pushes)
    leases = await claim(store.queue, 200)
    assert [(lease.id, lease.envelope) for lease in leases] == [(one.id, one.envelope) for one in pushes]


async def test_large_counters_stay_exact(store: StoreUnderTest) -> None:
    await push(store.queue, job("x"))
    lease = await claim_one(store.queue)
    # A fence is a whole number beyond 2**49 where it holds microseconds: arithmetic on floats would blunt it.
    for _ in range(30):
        await done(store.queue, Release(lease))
        again = await claim_one(store.queue)
        assert isinstance(again.fence, int)
        assert again.fence > lease.fence
        lease = again

"""Ids, queue names and namespaces are told apart to the letter."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import string

import pytest

from tenure.queue import Ack, Cancelled
from tenure.testing.contract.steps import (
    assert_empty,
    claim,
    claim_one,
    done,
    drained,
    ids,
    job,
    jobs,
    push,
    where,
)
from tenure.testing.contract.store import StoreUnderTest

ODD = (
    *("7", "007", "7.0", "1e3", "1000", "1E3", "0x7", "-7", "-", ".", "..", "_", "nan", "inf", "None", "null", "true"),
    *("A", "a", "9007199254740993", "9007199254740992", "300000000", "3e8", "x" * 64, "x" * 63, "--", "a.b", "a-b"),
)
FAMILIES = (
    ("q", "Q", "q.", "q-", "q_", "qq"),
    ("q", "q.jobs", "q.ready", "q.failed", "q-running"),
    ("jobs", "running", "ready", "delayed", "leased", "failed", "unreadable", "queues", "wake", "seq"),
    ("0", "00", "1e3", "1000", "x" * 127, "x" * 128),
)


async def test_every_allowed_character_may_stand_in_an_id(store: StoreUnderTest) -> None:
    alphabet = string.ascii_letters + string.digits + "._-"
    wanted = [alphabet[:64], alphabet[-64:], *alphabet]
    await push(store.queue, *jobs(*wanted))
    assert ids(await drained(store.queue, len(wanted))) == wanted


async def test_ids_that_look_alike_are_different_jobs(store: StoreUnderTest) -> None:
    await push(store.queue, *(job(one, envelope=one.encode()) for one in ODD))
    leases = await claim(store.queue, 100)
    assert [(lease.id, lease.envelope.decode()) for lease in leases] == [(one, one) for one in ODD]
    await done(store.queue, Ack(leases[1]))
    assert await where(store.queue) == {"leased": len(ODD) - 1}
    assert [one.outcome for one in await store.queue.push(jobs(*ODD))].count("stored") == 1


async def test_ids_that_look_alike_are_cancelled_one_by_one(store: StoreUnderTest) -> None:
    await push(store.queue, *jobs(*ODD))
    assert list(await store.queue.cancel("q", ["007", "a"])) == [Cancelled.REMOVED] * 2
    assert ids(await drained(store.queue, len(ODD) - 2)) == [one for one in ODD if one not in {"007", "a"}]


@pytest.mark.parametrize("family", FAMILIES, ids=["case", "suffixes", "parts", "numbers"])
async def test_queues_whose_names_look_alike_never_mix(store: StoreUnderTest, family: tuple[str, ...]) -> None:
    await push(store.queue, *(job("x", queue=name, envelope=name.encode()) for name in family))
    for name in family:
        assert await where(store.queue, name) == {"ready": 1}
        lease = await claim_one(store.queue, queues=[name])
        assert (lease.queue, lease.envelope) == (name, name.encode())
        await done(store.queue, Ack(lease))
        await assert_empty(store.queue, name)


async def test_namespaces_never_meet(store: StoreUnderTest) -> None:
    elsewhere = store.elsewhere()
    await push(store.queue, job("x", envelope=b"here"))
    await assert_empty(elsewhere)
    await push(elsewhere, job("x", envelope=b"there"))
    assert await elsewhere.clear("q") == 1
    assert [lease.envelope for lease in await drained(store.queue, 1)] == [b"here"]


async def test_a_lease_of_another_namespace_settles_nothing(store: StoreUnderTest) -> None:
    elsewhere = store.elsewhere()
    await push(store.queue, job("x"))
    await push(elsewhere, job("x"))
    lease = await claim_one(store.queue)
    await claim_one(elsewhere)
    assert [answer.value for answer in await elsewhere.settle([Ack(lease)])] == ["stale"]
    assert await where(elsewhere) == {"leased": 1}
    assert await where(store.queue) == {"leased": 1}

"""Unique jobs under odd circumstances, on every store.

Numbered as in the list of hostile inputs.
"""

import asyncio

import pytest

from tenure import InvalidOption, Tenure
from tenure.envelope import MAX_BYTES
from tenure.queue import Ack, Settled
from tests.support.hostile import QUEUE, call
from tests.support.uniqueness import needs_unique


async def test_24_a_hundred_tasks_that_push_one_key_make_one_job(app: Tenure) -> None:
    needs_unique(app)
    handles = await asyncio.gather(*(app.push(call(app, "keep", number), unique="key") for number in range(100)))
    assert len({handle.id for handle in handles}) == 1
    assert sum(not handle.held for handle in handles) == 1
    assert (await app.counts(QUEUE)).ready == 1
    blocking = await asyncio.gather(
        *(asyncio.to_thread(app.push_sync, call(app, "keep", 1).options(unique=True)) for _ in range(20))
    )
    assert sum(not handle.held for handle in blocking) == 1


async def test_24_what_makes_a_job_unique_may_be_long_and_is_stored_as_a_digest(app: Tenure) -> None:
    needs_unique(app)
    with pytest.raises(InvalidOption, match="unique"):
        await app.push(call(app, "keep", 1), unique="k" * 2**20)
    assert (await app.counts(QUEUE)).size == 0
    for option in ("k" * 1024, "\ud800 alone", "'); DROP TABLE jobs; --", "a\x00b", "a"):
        assert not (await app.push(call(app, "keep", 1), unique=option)).held
        assert (await app.push(call(app, "keep", 2), unique=option)).held
    long = "x" * (MAX_BYTES - 1000)
    assert not (await app.push(call(app, "keep", long), unique=True)).held
    assert (await app.push(call(app, "keep", value=long), unique=True)).held
    assert not (await app.push(call(app, "keep", f"{long}!"), unique=True)).held
    assert not (await app.push(call(app, "keep", "Zoë"), unique="Ä")).held
    assert not (await app.push(call(app, "keep", "Zoë"), unique="A\u0308")).held, "no text is made like another one"


async def test_24_the_key_of_a_holder_that_died_is_freed_by_its_jobs_end_and_not_by_time(app: Tenure) -> None:
    needs_unique(app)
    queue = app.queue()
    first = await app.push(call(app, "keep", 1), unique="key")
    [dead] = (await queue.claim([QUEUE], limit=1, lease=0.05, wait=0)).leases
    [lease] = (await queue.claim([QUEUE], limit=1, lease=60, wait=20)).leases
    assert (lease.id, lease.crashes) == (first.id, 1)
    assert list(await queue.settle([Ack(dead)])) == [Settled.STALE]
    assert (await app.push(call(app, "keep", 2), unique="key")).id == first.id
    assert list(await queue.settle([Ack(lease)])) == [Settled.DONE]
    assert not (await app.push(call(app, "keep", 3), unique="key")).held

"""PostgreSQL tells waiting claims of jobs; where it cannot, they look often enough."""

import asyncio
import time
from collections.abc import Callable

import pytest

from tenure.queue import Ack, Queue
from tenure.testing.contract.steps import Q, claim, claim_one, done, drained, ids, job, numbered, push
from tests.databases.support import Place, driver
from tests.support.databases import Database
from tests.support.processes import eventually

Keep = Callable[[Queue], Queue]


async def test_a_push_reaches_a_claim_in_another_process_by_notice(
    postgres_place: Place, opened: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, pusher = opened(postgres_place.queue()), opened(postgres_place.queue())
    assert await claim(queue, wait=0.5) == []
    eventually(lambda: queue.here().watch.longest_sleep() == 1.0, what="it hears")  # type: ignore[attr-defined]
    # Looking alone would not do now.
    monkeypatch.setattr("tenure.drivers.sql.postgresql.listening.LONGEST_SLEEP", 30.0)
    for number in range(3):
        waiting = asyncio.create_task(claim_one(queue, wait=30))
        await asyncio.wait([waiting], timeout=0.1)
        assert not waiting.done()
        await push(pusher, job(f"j{number}"))
        lease = await asyncio.wait_for(waiting, 5)
        await done(queue, Ack(lease))


async def test_a_listener_whose_connection_ends_looks_often_and_listens_again(
    postgres_place: Place, opened: Keep
) -> None:
    queue = opened(postgres_place.queue())
    await claim(queue, wait=0.2)
    watch = queue.here().watch  # type: ignore[attr-defined]
    eventually(lambda: watch.longest_sleep() == 1.0, what="it hears")
    postgres_place.kill_sessions()
    eventually(lambda: watch.longest_sleep() < 1, what="it noticed")
    eventually(lambda: watch.longest_sleep() == 1.0, what="it hears again")


async def test_a_pooler_that_lends_servers_by_the_transaction_is_good_enough(
    pgbouncer: Database, postgres_place: Place, opened: Keep
) -> None:
    queues = [opened(driver(pgbouncer.url, postgres_place.namespace)) for _ in range(4)]
    await asyncio.gather(*(queue.push(numbered(50)) for queue in queues))
    leases = await asyncio.gather(*(queue.claim([Q], limit=10, lease=60, wait=0) for queue in queues))
    got = [lease for claimed in leases for lease in claimed.leases]
    assert len(set(ids(got))) == len(got)
    await done(queues[0], *map(Ack, got))
    await drained(queues[1], 50 - len(got))

    waiting = asyncio.create_task(claim_one(queues[2], wait=20))
    await asyncio.wait([waiting], timeout=0.3)
    before = time.monotonic()
    await push(queues[3], job("x"))
    assert (await waiting).id == "x"
    assert time.monotonic() - before < 3
    assert queues[2].here().watch.longest_sleep() < 1  # type: ignore[attr-defined] # nobody tells it

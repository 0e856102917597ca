"""What breaks between the driver and its server costs no job and makes none twice."""

import asyncio
import random
import threading
from collections.abc import Callable

import pytest

from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreRefused
from tenure.queue import Ack, Queue, Release, Renewal, Settled
from tenure.testing.contract.steps import (
    Q,
    claim,
    claim_one,
    done,
    drained,
    ids,
    job,
    numbered,
    push,
    pushed_and_claimed,
    where,
)
from tests.databases.support import Place, assert_consistent
from tests.support.processes import eventually

Keep = Callable[[Queue], Queue]
END = b"; COMMIT"


@pytest.mark.parametrize("kind", ["reply", "request", "late"])
async def test_a_commit_whose_reply_is_lost_is_done_once(place: Place, opened: Keep, kind: str) -> None:
    with place.wire() as (wire, url):
        shaky, direct = opened(place.queue(url=url)), place.queue()
        opened(direct)
        await push(shaky, *numbered(4), job("late", delay=60))

        cut = wire.cut(END, kind, 0.7)  # type: ignore[arg-type]
        assert [one.outcome for one in await shaky.push([job("x"), job("j00001")])] == ["stored", "held"]
        cut.wait()
        assert await where(direct) == {"ready": 5, "delayed": 1}

        cut = wire.cut(END, kind, 0.7)  # type: ignore[arg-type]
        leases = await claim(shaky, 3)
        cut.wait()
        assert ids(leases) == ["j00000", "j00001", "j00002"]
        assert [lease.deliveries for lease in leases] == [1, 1, 1]
        assert list(await direct.renew(leases)) == [Renewal.HELD] * 3

        cut = wire.cut(END, kind, 0.7)  # type: ignore[arg-type]
        answers = await shaky.settle([Ack(leases[0]), Release(leases[1]), Ack(leases[2]), Ack(leases[0])])
        cut.wait()
        assert list(answers) == [Settled.DONE] * 3 + [Settled.STALE]
        assert await where(direct) == {"ready": 3, "delayed": 1}

        cut = wire.cut(END, kind, 0.7)  # type: ignore[arg-type]
        assert await shaky.clear(Q) == 4
        cut.wait()
        assert await where(direct) == {}
    assert_consistent(place)


async def test_a_commit_that_nobody_can_be_asked_about_is_told_as_unknown(
    place: Place, opened: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.drivers.sql.server.session.REPEATING", 0.5)
    with place.wire() as (wire, url):
        shaky = opened(place.queue(url=url))
        lease = await pushed_and_claimed(shaky)
        wire.cut(END, "reply", last=True)
        with pytest.raises(OutcomeUnknown, match="nobody could be asked"):
            await shaky.settle([Ack(lease)])


# E3
async def test_cancelled_calls_leave_no_transaction_open(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    await push(queue, *numbered(200))
    dice = random.Random(3)
    kept = 0
    for _ in range(80):
        calls = [
            asyncio.create_task(queue.claim([Q], limit=2, lease=60, wait=0)),
            asyncio.create_task(queue.push([job()])),
            asyncio.create_task(queue.counts(Q)),
            asyncio.create_task(queue.cancel(Q, ["never"])),
        ]
        await asyncio.wait(calls, timeout=dice.random() * 0.01)
        for call in calls:
            call.cancel()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        kept += len(getattr(answers[0], "leases", ()))
    eventually(lambda: place.transactions() == 0, what="no transaction is open")
    assert (await queue.counts(Q)).leased == kept
    assert_consistent(place)


async def test_a_connection_that_the_server_ends_is_made_again_unseen(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    await push(queue, *numbered(3))
    lease = await claim_one(queue)
    assert place.kill_sessions() >= 2
    assert list(await queue.renew([lease])) == [Renewal.HELD]
    assert ids(await claim(queue, 5)) == ["j00001", "j00002"]
    place.kill_sessions()
    assert await where(queue) == {"leased": 3}
    await done(queue, Ack(lease))


async def test_sessions_that_end_at_any_moment_lose_and_double_nothing(place: Place, opened: Keep, scale: int) -> None:
    queue = opened(place.queue())
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(0.15):
            place.kill_sessions()

    killer = threading.Thread(target=kill)
    killer.start()
    pushes = numbered(300 * scale)
    told: list[str] = []
    try:
        for first in range(0, len(pushes), 20):
            part = pushes[first : first + 20]
            while True:
                try:
                    answers = await queue.push(part)
                except ConnectionFailed:
                    continue
                told += [one.id for one in answers if one.outcome in {"stored", "held"}]
                if all(one.outcome in {"stored", "held"} for one in answers):
                    break
    finally:
        ended.set()
        killer.join()
    assert told == [one.id for one in pushes]
    leases = await drained(queue, len(pushes))
    assert sorted(ids(leases)) == sorted(told)
    assert_consistent(place)
    assert place.transactions() == 0


async def test_a_deadlock_is_tried_again_whole(place: Place, opened: Keep) -> None:
    queue = opened(place.queue())
    await push(queue, *numbered(2))
    first, second = await claim(queue, 2)
    update = "UPDATE tenure_jobs SET crash_limit = crash_limit WHERE incarnation = {}"
    rival = place.database.engine().raw_connection()
    try:
        cursor = rival.cursor()
        if place.postgres:
            cursor.execute("SET deadlock_timeout = '1min'")  # so that it is not the one that is ended
        else:
            # The lighter of the two is ended.
            cursor.execute("CREATE TEMPORARY TABLE weight (n INT) ENGINE = InnoDB")
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO weight SELECT seq FROM seq_1_to_5000")
        cursor.execute(update.format(second.incarnation))
        settling = asyncio.create_task(queue.settle([Ack(first), Ack(second)]))
        await asyncio.wait([settling], timeout=0.3)
        assert not settling.done()
        await asyncio.to_thread(cursor.execute, update.format(first.incarnation))  # the circle is closed, and broken
        assert not settling.done()
        rival.commit()
        assert list(await settling) == [Settled.DONE] * 2
    finally:
        rival.close()
    assert_consistent(place)


async def test_a_lock_that_is_not_given_is_told_and_nothing_is_written(
    postgres_place: Place, opened: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = postgres_place
    monkeypatch.setattr("tenure.drivers.sql.postgresql.server._SETTINGS", {"statement_timeout": "300"})
    queue = opened(place.queue())
    await push(queue, *numbered(1))
    lease = await claim_one(queue)
    rival = place.database.engine().raw_connection()
    try:
        rival.cursor().execute(f"SELECT 1 FROM tenure_jobs WHERE incarnation = {lease.incarnation} FOR UPDATE")
        with pytest.raises(StoreRefused, match="TIMEOUT"):
            await queue.settle([Ack(lease)])
        # Who waits in the line is not held up by a row that another holds.
        await push(queue, job("next"))
        assert ids(await claim(queue, 5)) == ["next"]
    finally:
        rival.rollback()
        rival.close()
    await done(queue, Ack(lease))


async def test_a_server_that_stands_still_is_given_up_in_time(
    postgres_place: Place, opened: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "tenure.drivers.sql.postgresql.server."
    monkeypatch.setattr(f"{module}STATEMENT", 0.3)
    monkeypatch.setattr(f"{module}GRACE", 0.2)
    monkeypatch.setattr(f"{module}CONNECT", 2)
    queue = opened(postgres_place.queue())
    await push(queue, job("x"))
    postgres_place.database.pause()
    try:
        with pytest.raises(ConnectionFailed):
            await asyncio.wait_for(queue.push([job("y")]), 20)
    finally:
        postgres_place.database.cont()
    await push(queue, job("y"))
    assert await where(queue) == {"ready": 2}

"""What goes wrong is said in the words of the contract, and nothing of a payload with it."""

import asyncio
import contextlib
import pathlib
import sqlite3
import time
from collections.abc import Iterator

import pytest

from tenure.drivers.sql.sqlite.faults import translated, translated_commit
from tenure.errors import OutcomeUnknown, StoreError, StoreRefused
from tenure.queue import Ack, Counts, Settled
from tests.sql.conftest import Open
from tests.sql.support import Q, assert_consistent, claim, claim_one, ids, job, numbered, outcomes, push

SECRET = b'{"password": "hunter2"}'


@contextlib.contextmanager
def locked(path: pathlib.Path) -> Iterator[sqlite3.Connection]:
    """Hold the file's write lock, as a process does that is stopped in the middle of a transaction."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    finally:
        connection.close()


async def test_a_file_that_stays_locked_refuses_the_call_at_the_deadline(path: pathlib.Path, opened: Open) -> None:
    queue = opened(timeout=0.2)
    await push(queue, job("x"))
    lease = await claim_one(queue)
    keeper, pusher = queue.keeper(), queue.pusher()
    with locked(path):
        begin = time.monotonic()
        with pytest.raises(StoreRefused, match=r"BUSY.*nothing was written") as caught:
            await queue.push([job("y", SECRET)])
        assert 0.2 <= time.monotonic() - begin < 2
        assert caught.value.code == "BUSY"
        assert "hunter2" not in repr(caught.value)
        for call in (lambda: keeper.renew([lease]), lambda: pusher.push([job("z")])):
            with pytest.raises(StoreRefused, match="BUSY"):
                call()
        # Reading waits for nobody.
        assert (await queue.counts(Q)).leased == 1
        assert await claim(queue, queues=["idle"]) == []
    keeper.close()
    pusher.close()
    assert list(await queue.settle([Ack(lease)])) == [Settled.DONE]
    assert_consistent(path)


async def test_a_file_that_is_unlocked_in_time_is_waited_for(path: pathlib.Path, opened: Open) -> None:
    queue = opened(timeout=10)
    await queue.counts(Q)
    with locked(path) as holder:
        pushing = asyncio.create_task(queue.push([job("x")]))
        await asyncio.wait([pushing], timeout=0.1)
        assert not pushing.done()
        holder.execute("ROLLBACK")
        assert outcomes(await pushing) == ["stored"]


async def test_a_full_file_refuses_pushes_and_goes_on_settling(path: pathlib.Path, opened: Open) -> None:
    queue = opened(max_bytes=250_000)
    stored = 0

    async def fill() -> None:
        nonlocal stored
        while True:
            await push(queue, job(f"j{stored}", SECRET * 100))
            stored += 1

    with pytest.raises(StoreRefused, match=r"FULL.*full") as caught:
        await fill()
    assert caught.value.code == "FULL"
    assert "hunter2" not in str(caught.value)
    assert stored > 20
    assert_consistent(path)
    done = 0
    while leases := await claim(queue, 10):
        assert set(await queue.settle([Ack(lease) for lease in leases])) == {Settled.DONE}
        done += len(leases)
    assert done == stored
    await push(queue, job("again", SECRET * 100))


async def test_a_push_that_fails_half_way_tells_for_each_job_what_became_of_it(
    path: pathlib.Path, opened: Open
) -> None:
    queue = opened(max_bytes=2_000_000)
    jobs = numbered(3000, envelope=b"x" * 1000)
    answers = await queue.push(jobs)
    outcome = outcomes(answers)
    stored = outcome.count("stored")
    assert 500 <= stored < 2000
    assert stored % 500 == 0
    assert outcome == ["stored"] * stored + ["refused"] * (3000 - stored)
    assert all(isinstance(one.error, StoreRefused) for one in answers[stored:])
    assert (await queue.counts(Q)).ready == stored
    pusher = queue.pusher()
    with pytest.raises(StoreRefused, match="FULL"):
        pusher.push(numbered(3000, start=10_000, envelope=b"x" * 1000))
    pusher.close()
    assert_consistent(path)


async def test_long_pushes_are_split_and_keep_their_order(opened: Open) -> None:
    queue = opened()
    jobs = numbered(1700, envelope=b"x" * 3000)
    await push(queue, *jobs)
    got: list[str] = []
    while leases := await claim(queue, 400):
        got += ids(leases)
    assert got == [one.id for one in jobs]


def test_a_commit_of_which_the_disk_says_nothing_is_an_unknown_outcome() -> None:
    def error(code: int, name: str) -> sqlite3.OperationalError:
        made = sqlite3.OperationalError("with a value in it: hunter2")
        made.sqlite_errorcode, made.sqlite_errorname = code, name
        return made

    broken = error(sqlite3.SQLITE_IOERR_FSYNC, "SQLITE_IOERR_FSYNC")
    assert isinstance(translated_commit(broken, "f"), OutcomeUnknown)
    assert isinstance(translated(broken, "f"), StoreRefused)
    full = error(sqlite3.SQLITE_FULL, "SQLITE_FULL")
    assert isinstance(translated_commit(full, "f"), StoreRefused)
    odd = translated(sqlite3.InterfaceError("hunter2"), "f")
    assert type(odd) is StoreError
    for one in (translated_commit(broken, "f"), translated(broken, "f"), odd):
        assert "hunter2" not in str(one)


async def test_counts_of_a_queue_that_never_was_are_zero(opened: Open) -> None:
    nothing = Counts(ready=0, delayed=0, leased=0, lapsed=0, failed=0, unreadable=0, oldest_age=None)
    queue = opened()
    assert await queue.counts("never") == nothing
    assert list(await queue.failed("never")) == []
    assert await queue.failed_record("never", "x") is None
    assert await queue.clear("never") == 0
    assert list(await queue.queues()) == []

"""Random walks on which the SQLite driver and the memory driver give the same answers while time passes."""

import collections
import os
import pathlib
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tenure.drivers.memory import MemoryQueue
from tenure.drivers.sql import SqliteQueue
from tenure.queue import (
    Ack,
    Counts,
    Drop,
    Fail,
    Failure,
    JobState,
    Lease,
    Push,
    Release,
    SetAside,
    Settlement,
)
from tests.sql.conftest import Open
from tests.sql.support import assert_consistent
from tests.sql.test_clock import Hands

QUEUES = ["a", "b"]
IDS = [f"i{number}" for number in range(12)]
LISTED = [JobState.READY, JobState.DELAYED, JobState.RUNNING]
STEPS = 1500
SEEDS = [int(os.environ["TENURE_WALK_SEED"])] if "TENURE_WALK_SEED" in os.environ else [1, 2, 3]
ENDS: list[Any] = [
    Ack,
    Ack,
    Drop,
    Release,
    lambda lease: Release(lease, delay=3.0),
    lambda lease: Release(lease, free=True),
    lambda lease: Release(lease, crashed=True),
    lambda lease: Release(lease, crashed=True, delay=2.0),
    lambda lease: Fail(lease, Failure(reason="exception", message="no")),
    lambda lease: Fail(lease, Failure(reason="exception", message="no")),
    lambda lease: SetAside(lease, "broken"),
]


class Walk:
    """Does the same to both drivers and compares what they say. Leases are kept in pairs, the same one of each."""

    def __init__(self, sql: SqliteQueue, memory: MemoryQueue, clock: Hands, seed: int) -> None:
        self.drivers: list[SqliteQueue | MemoryQueue] = [sql, memory]
        self.clock = clock
        self.dice = random.Random(seed)
        self.leases: collections.deque[tuple[Lease, Lease]] = collections.deque(maxlen=40)
        self.done: collections.Counter[str] = collections.Counter()

    async def push(self) -> None:
        jobs = [
            Push(
                queue=self.dice.choice(QUEUES),
                id=self.dice.choice(IDS),
                envelope=self.dice.randbytes(5),
                delay=self.dice.choice([0, 0, 0, 2, 5]),
                priority=self.dice.choice([0, 0, 0, 3, -3]),
                crash_limit=self.dice.choice([None, None, 1, 2]),
                expires_in=self.dice.choice([None, None, None, 8]),
            )
            for _ in range(self.dice.randint(1, 4))
        ]
        ours, theirs = [[(one.id, one.outcome) for one in await driver.push(jobs)] for driver in self.drivers]
        assert ours == theirs
        self.done.update(outcome for _, outcome in ours)

    async def claim(self) -> None:
        options: dict[str, Any] = {
            "limit": self.dice.randint(1, 6),
            "lease": self.dice.choice([2, 4, 9]),
            "crash_limit": self.dice.choice([2, 3, 3]),
            "suspects": self.dice.random() < 0.6,
            "wait": 0,
        }
        queues = self.dice.choice([["a", "b"], ["b", "a"], ["a"], ["b", "b"]])
        ours, theirs = [await driver.claim(queues, **options) for driver in self.drivers]
        assert list(map(seen, ours.leases)) == list(map(seen, theirs.leases)), options
        assert ours.next_due == pytest.approx(theirs.next_due, abs=1e-4)
        self.leases.extend(zip(ours.leases, theirs.leases, strict=True))
        for lease in ours.leases:
            self.done[lease.doomed or ("suspect" if lease.suspect else "leased")] += 1

    async def settle(self) -> None:
        pairs = self.some_leases()
        ends = [self.dice.choice(ENDS) for _ in pairs]
        both: list[list[Settlement]] = [
            [end(pair[side]) for end, pair in zip(ends, pairs, strict=True)] for side in range(2)
        ]
        ours, theirs = [list(await driver.settle(one)) for driver, one in zip(self.drivers, both, strict=True)]
        assert ours == theirs
        self.done.update(settled.value for settled in ours)

    async def renew(self) -> None:
        pairs = self.some_leases()
        ours, theirs = [
            list(await driver.renew([pair[side] for pair in pairs])) for side, driver in enumerate(self.drivers)
        ]
        assert ours == theirs
        self.done.update(renewal.value for renewal in ours)

    def some_leases(self) -> Sequence[tuple[Lease, Lease]]:
        return self.dice.choices(self.leases, k=self.dice.randint(1, 4)) if self.leases else []

    async def cancel(self) -> None:
        queue, ids = self.dice.choice(QUEUES), self.dice.choices(IDS, k=2)
        ours, theirs = [list(await driver.cancel(queue, ids)) for driver in self.drivers]
        assert ours == theirs
        self.done.update(cancelled.value for cancelled in ours)

    async def clear(self) -> None:
        ours, theirs = [await driver.clear("b") for driver in self.drivers]
        assert ours == theirs
        self.done["cleared"] += ours

    async def failed(self) -> None:
        queue = self.dice.choice(QUEUES)
        records = [await driver.failed(queue, limit=3) for driver in self.drivers]
        plain = [[(r.id, r.attempts, r.failure, r.envelope) for r in one] for one in records]
        assert plain[0] == plain[1]
        retry = self.dice.random() < 0.6
        ours, theirs = [
            list(await (driver.retry(one) if retry else driver.forget(one)))
            for driver, one in zip(self.drivers, records, strict=True)
        ]
        assert ours == theirs
        again = [await driver.retry(one[:1]) for driver, one in zip(self.drivers, records, strict=True)]
        assert list(again[0]) == list(again[1]) == [False] * len(again[0])
        self.done["retried" if retry else "forgotten"] += ours.count(True)

    async def tell(self) -> None:
        queue = self.dice.choice(QUEUES)
        # Seldom: while a queue is paused, nothing else happens to it.
        pause = self.dice.random() < 0.2
        ours, theirs = [await (driver.pause(queue) if pause else driver.resume(queue)) for driver in self.drivers]
        assert ours == theirs
        self.done["paused" if pause else "resumed"] += ours

    async def prune(self) -> None:
        queue, age = self.dice.choice(QUEUES), self.dice.choice([0, 0, 5, 20])
        ours, theirs = [await driver.prune(queue, older_than=age) for driver in self.drivers]
        assert ours == theirs
        self.done["pruned"] += ours

    async def drop(self) -> None:
        queue = self.dice.choice(QUEUES)
        records = [await driver.unreadable(queue, limit=3) for driver in self.drivers]
        plain = [[(r.id, r.reason, r.size) for r in one] for one in records]
        assert plain[0] == plain[1]
        if records[0]:
            (ours, our_bytes), (theirs, their_bytes) = [
                (list(await driver.drop_unreadable(queue, [keys[0], keys[0]])), content)
                for driver, one in zip(self.drivers, records, strict=True)
                if (keys := [record.key for record in one])
                for content in [await driver.unreadable_bytes(queue, keys[0])]
            ]
            assert ours == theirs == [True, False]
            assert our_bytes == their_bytes
            assert our_bytes is not None
            self.done["dropped"] += 1

    async def list_jobs(self) -> None:
        queue, state, limit = self.dice.choice(QUEUES), self.dice.choice(LISTED), self.dice.randint(1, 4)
        cursors: list[str | None] = [None, None]
        while True:
            pages = [
                await driver.jobs(queue, state, limit=limit, cursor=cursor)
                for driver, cursor in zip(self.drivers, cursors, strict=True)
            ]
            ours, theirs = [[(j.id, j.priority, j.attempts, j.crashes, j.name) for j in page.jobs] for page in pages]
            assert ours == theirs
            times = [[job.seconds for job in page.jobs] for page in pages]
            assert times[0] == pytest.approx(times[1], abs=1e-4)
            self.done["listed"] += len(ours)
            cursors = [page.cursor for page in pages]
            assert (cursors[0] is None) is (cursors[1] is None)
            if cursors[0] is None:
                return

    async def read(self) -> None:
        for queue in QUEUES:
            counts = [await driver.counts(queue) for driver in self.drivers]
            assert plain(counts[0]) == plain(counts[1])
            assert counts[0].oldest_age == pytest.approx(counts[1].oldest_age, abs=1e-4)
            states = [list(await driver.states(queue, IDS)) for driver in self.drivers]
            assert states[0] == states[1]
        assert list(await self.drivers[0].paused(QUEUES)) == list(await self.drivers[1].paused(QUEUES))
        assert list(await self.drivers[0].queues()) == list(await self.drivers[1].queues())

    async def go(self) -> None:
        acts = {self.push: 25, self.claim: 25, self.settle: 25, self.renew: 6, self.cancel: 5, self.failed: 5}
        acts |= {self.clear: 1, self.tell: 4, self.prune: 4, self.drop: 2, self.list_jobs: 5}
        for _ in range(STEPS):
            (act,) = self.dice.choices(list(acts), list(acts.values()))
            await act()
            await self.read()
            # Durations are whole seconds and the steps are not: nothing falls due at the very moment of a call.
            self.clock.pass_(self.dice.choice([0, 0, 0, 1, 3]) + 0.00137)


def seen(lease: Lease) -> tuple[object, ...]:
    return (
        *(lease.queue, lease.id, lease.deliveries, lease.free, lease.crashes, lease.length, lease.deadline),
        *(lease.envelope, lease.doomed, lease.suspect),
    )


def plain(counts: Counts) -> tuple[int, ...]:
    return counts.ready, counts.delayed, counts.leased, counts.lapsed, counts.failed, counts.unreadable


@pytest.mark.parametrize("seed", SEEDS)
async def test_both_drivers_give_the_same_answers(path: pathlib.Path, opened: Open, seed: int) -> None:
    clock = Hands()
    walk = Walk(opened(clock=clock), MemoryQueue(clock=clock), clock, seed)
    await walk.go()
    assert_consistent(path)
    everything = {"stored", "held", "leased", "suspect", "crashed", "expired", "done", "stale", "cancelled", "lost"}
    everything |= {"cancel_requested", "removed", "requested", "not_found", "cleared", "retried", "forgotten"}
    everything |= {"paused", "resumed", "pruned", "dropped", "listed"}
    assert {name for name in everything if not walk.done[name]} == set(), walk.done

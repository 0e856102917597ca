"""One of several processes that do everything at once to one file; what it saw is its last line of output.

Arguments: path, seed, seconds. Leases last milliseconds, so that settlements race with reclaims.
"""

import asyncio
import collections
import json
import random
import sys
import time

from tenure.drivers.sql import SqliteQueue
from tenure.queue import Ack, Cancelled, Fail, Failure, Lease, Push, Release, Settled, Settlement
from tests.sql.support import Q

IDS = [f"i{number}" for number in range(150)]


class Racer:
    def __init__(self, path: str, seed: int) -> None:
        self.queue = SqliteQueue(path, namespace="test", timeout=30)
        self.dice = random.Random(seed)
        self.numbers: collections.Counter[str] = collections.Counter()
        self.leases: list[tuple[str, int, int, int]] = []
        self.ends: list[tuple[int, int, str]] = []
        self.mine: list[Lease] = []

    async def push(self) -> None:
        jobs = [
            Push(queue=Q, id=self.dice.choice(IDS), envelope=b"e" * 100, delay=self.dice.choice([0, 0, 0.002]))
            for _ in range(5)
        ]
        for pushed in await self.queue.push(jobs):
            self.numbers[pushed.outcome] += 1

    async def claim(self) -> None:
        length = self.dice.choice([0.001, 0.002, 0.005, 0.05])
        limit = self.dice.randint(1, 8)
        claimed = await self.queue.claim([Q], limit=limit, lease=length, wait=0, crash_limit=self.dice.choice([2, 9]))
        self.mine += claimed.leases
        self.leases += [(lease.id, lease.incarnation, lease.deliveries, lease.fence) for lease in claimed.leases]

    async def settle(self) -> None:
        self.dice.shuffle(self.mine)
        settlements = [self.settlement(self.mine.pop()) for _ in range(min(6, len(self.mine)))]
        for settlement, settled in zip(settlements, await self.queue.settle(settlements), strict=True):
            kind = type(settlement).__name__
            self.numbers[f"{kind} {settled.value}"] += 1
            if settled is not Settled.STALE:
                final = isinstance(settlement, Ack | Fail) or settled is Settled.CANCELLED
                self.ends.append((settlement.lease.incarnation, settlement.lease.deliveries, "end" if final else "go"))
        if self.dice.random() < 0.3:  # settled leases are tried again: stale, all of them
            self.mine += [settlement.lease for settlement in settlements]

    def settlement(self, lease: Lease) -> Settlement:
        choices: list[Settlement] = [
            Ack(lease),
            Ack(lease),
            Ack(lease),
            Fail(lease, Failure(reason="exception")),
            Release(lease, delay=self.dice.choice([0, 0.002])),
            Release(lease, free=True),
            Release(lease, crashed=True),
        ]
        return self.dice.choice(choices)

    async def renew(self) -> None:
        if self.mine:
            await self.queue.renew(self.dice.sample(self.mine, min(4, len(self.mine))))

    async def cancel(self) -> None:
        self.numbers["cancelled"] += (await self.queue.cancel(Q, [self.dice.choice(IDS)])).count(Cancelled.REMOVED)

    async def clear(self) -> None:
        self.numbers["cleared"] += await self.queue.clear(Q)

    async def failed(self) -> None:
        records = await self.queue.failed(Q, limit=20)
        self.numbers["retried"] += list(await self.queue.retry(records[:3])).count(True)
        self.numbers["forgotten"] += list(await self.queue.forget(records[2:])).count(True)

    async def run(self, seconds: float) -> None:
        acts = [(self.push, 30), (self.claim, 30), (self.settle, 30), (self.renew, 4), (self.cancel, 3)]
        acts += [(self.failed, 2), (self.clear, 1)]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ((act, _),) = self.dice.choices(acts, [weight for _, weight in acts])
            await act()
        await self.queue.aclose()
        report = {"numbers": self.numbers, "leases": self.leases, "ends": self.ends}
        sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    asyncio.run(Racer(sys.argv[1], int(sys.argv[2])).run(float(sys.argv[3])))

"""The act that does everything at random, with leases of milliseconds, and keeps the books."""

import collections
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from tenure.operating import FailedJobs
from tenure.queue import Ack, Cancelled, Drop, Fail, Failure, Lease, Push, Queue, Release, Renewal, Settled, Settlement
from tenure.testing.contending.talk import Talk

Q = "q"
LENGTHS = (0.01, 0.03, 0.1, 0.5)


class Books:
    """What one contender did, and what it was told."""

    def __init__(self) -> None:
        self.numbers: collections.Counter[str] = collections.Counter()
        self.leases: dict[tuple[str, int], dict[str, Any]] = {}
        self.ends: list[tuple[str, int, str, int]] = []

    def granted(self, lease: Lease, now: float) -> None:
        """Write down that a lease came."""
        entry = {"id": lease.id, "incarnation": lease.incarnation, "deliveries": lease.deliveries}
        self.leases[lease.id, lease.fence] = entry | {"fence": lease.fence, "from": now, "until": lease.deadline}

    def renewed(self, lease: Lease, sent: float) -> None:
        """Write down that a lease was extended by a call sent at that time."""
        entry = self.leases[lease.id, lease.fence]
        entry["until"] = max(entry["until"], sent + lease.length)

    def ended(self, settlement: Settlement, answer: Settled, sent: float) -> None:
        """Write down what became of a settlement sent at that time."""
        lease, kind = settlement.lease, type(settlement).__name__
        self.numbers[f"{kind} {answer.value}"] += 1
        if answer is Settled.STALE:
            return
        entry = self.leases[lease.id, lease.fence]
        entry["until"] = min(entry["until"], sent)
        self.ends.append(
            (lease.id, lease.incarnation, "Cancelled" if answer is Settled.CANCELLED else kind, lease.fence)
        )


async def chaos(queue: Queue, params: Mapping[str, Any], talk: Talk) -> None:
    """Push, claim, renew, settle, cancel, clear, retry and forget at random; report the books."""
    dice = random.Random(params["seed"])  # noqa: S311 - a schedule, no secret
    names = [f"i{number}" for number in range(params["ids"])]
    books = Books()
    mine: list[Lease] = []
    end = time.monotonic() + params["seconds"]
    while time.monotonic() < end:
        step = dice.random()
        if step < 0.3:
            await _push(queue, dice, names, books)
        elif step < 0.6:
            await _claim(queue, dice, books, mine)
        elif step < 0.88 and mine:
            await _settle(queue, dice, books, mine)
        elif step < 0.88 + params["cancels"]:
            answers = await queue.cancel(Q, dice.sample(names, 2))
            books.numbers.update(f"cancel {answer.value}" for answer in answers)
            books.numbers["cancelled"] += answers.count(Cancelled.REMOVED)
        elif step < 0.925:
            books.numbers["cleared"] += await queue.clear(Q)
        elif step < 0.97 and mine:
            await _renew(queue, dice, books, mine)
        else:
            await _operate(queue, dice, books)
    talk.tell({"numbers": books.numbers, "leases": list(books.leases.values()), "ends": books.ends})


async def _push(queue: Queue, dice: random.Random, names: list[str], books: Books) -> None:
    pushes = [
        Push(queue=Q, id=dice.choice(names), envelope=b"e" * 100, delay=dice.choice([0, 0, 0.01]), crash_limit=10**6)
        for _ in range(5)
    ]
    books.numbers.update(one.outcome for one in await queue.push(pushes))


async def _claim(queue: Queue, dice: random.Random, books: Books, mine: list[Lease]) -> None:
    wait = dice.choice([0, 0, 0, 0.02])
    claimed = await queue.claim([Q], limit=dice.randint(1, 8), lease=dice.choice(LENGTHS), wait=wait)
    now = time.monotonic()
    for lease in claimed.leases:
        books.granted(lease, now)
    mine += claimed.leases


async def _settle(queue: Queue, dice: random.Random, books: Books, mine: list[Lease]) -> None:
    dice.shuffle(mine)
    kinds: list[Callable[[Lease], Settlement]] = [
        *(Ack, Ack, Ack, Release, Drop),
        lambda lease: Fail(lease, Failure(reason="exception")),
        lambda lease: Release(lease, delay=0.01),
        lambda lease: Release(lease, free=True),
        lambda lease: Release(lease, crashed=True),
    ]
    settlements: list[Settlement] = [dice.choice(kinds)(mine.pop()) for _ in range(min(6, len(mine)))]
    settlements += [Ack(one.lease) for one in settlements if dice.random() < 0.1]
    sent = time.monotonic()
    for settlement, answer in zip(settlements, await queue.settle(settlements), strict=True):
        books.ended(settlement, answer, sent)
    if dice.random() < 0.3:  # to be settled again, long after the end
        mine += [one.lease for one in settlements]


async def _renew(queue: Queue, dice: random.Random, books: Books, mine: list[Lease]) -> None:
    chosen = dice.sample(mine, min(4, len(mine)))
    sent = time.monotonic()
    for lease, answer in zip(chosen, await queue.renew(chosen), strict=True):
        books.numbers[f"renewal {answer.value}"] += 1
        if answer in {Renewal.HELD, Renewal.CANCEL_REQUESTED}:
            books.renewed(lease, sent)


async def _operate(queue: Queue, dice: random.Random, books: Books) -> None:
    reader = cast("FailedJobs", queue)
    records = await reader.failed(Q, limit=10)
    half = dice.randint(0, len(records))
    books.numbers["retried"] += list(await reader.retry(records[:half])).count(True)
    books.numbers["forgotten"] += list(await reader.forget(records[half:])).count(True)

"""Everything at once, with leases of milliseconds: nothing is lost, doubled or held twice (P2 to P5, P7)."""
# ruff: noqa: D103 - the name of a behaviour is its sentence

import asyncio
import collections
import itertools
from typing import Any

import pytest

from tenure.queue import Ack, Queue
from tenure.testing.contending.talk import Report
from tenure.testing.contract.racing import contenders
from tenure.testing.contract.steps import Q, claim, done, eventually, failed_jobs
from tenure.testing.contract.store import StoreUnderTest

CLOCKS = 0.003
"""Seconds by which two readings of the same moment may differ: a store may round to milliseconds."""
ENDS = {"Ack", "Drop", "Fail", "Cancelled"}
SECONDS, ROUNDS = 2.0, 5
"""How long it takes, and how often at most, until all has happened: on a busy machine that takes longer."""
HAPPENS = ["held", "Ack stale", "renewal lost", "renewal held", "retried"]


async def rest(queue: Queue) -> list[dict[str, Any]]:
    """Acknowledge all that is left, and return the leases under which it was done."""
    leases: list[dict[str, Any]] = []

    async def empty() -> bool:
        got = await claim(queue, 50, crash_limit=10**6)
        await done(queue, *map(Ack, got))
        leases.extend({f: getattr(one, f) for f in ("id", "incarnation", "deliveries", "fence")} for one in got)
        counts = await queue.counts(Q)
        return counts.ready == counts.delayed == counts.leased == 0

    await eventually(empty, what="the queue is empty")
    return leases


@pytest.mark.parametrize("cancels", [0.0, 0.04], ids=["without cancels", "with cancels"])
async def test_under_chaos_every_job_ends_once_and_nothing_is_left(store: StoreUnderTest, cancels: float) -> None:
    reader = failed_jobs(store.queue)
    wanted = [*HAPPENS, "cancel requested", "cancelled"] if cancels else HAPPENS
    reports: list[Report] = []
    numbers: collections.Counter[str] = collections.Counter()
    for number in range(ROUNDS):
        params = [{"seed": 3 * number + racer, "seconds": SECONDS, "ids": 80, "cancels": cancels} for racer in range(3)]
        async with contenders(store, "chaos", params) as racers:
            heard = await asyncio.gather(*(racer.hear() for racer in racers))
        reports += heard
        for report in heard:
            numbers.update(report["numbers"])
        if all(numbers[happened] for happened in wanted):
            break
    left = await store.queue.counts(Q)
    final = await rest(store.queue)
    story = dict(numbers)

    # As many jobs began as ended or are left; as many failed as were retried, forgotten or are left.
    ended = sum(numbers[f"{kind} done"] for kind in ("Ack", "Drop", "Fail")) + numbers["Release cancelled"]
    ended += numbers["cancelled"] + numbers["cleared"]
    assert numbers["stored"] + numbers["retried"] == ended + left.ready + left.delayed + left.leased, story
    assert left.ready + left.delayed + left.leased == len(final), story
    assert numbers["Fail done"] == numbers["retried"] + numbers["forgotten"] + left.failed, story
    await reader.forget(await reader.failed(Q, limit=1000))
    after = await store.queue.counts(Q)
    assert (after.size, after.leased, after.failed, after.unreadable) == (0, 0, 0, 0)

    # Each lease settled once, each incarnation ended once.
    ends = [tuple(end) for report in reports for end in report["ends"]]
    assert len({(name, fence) for name, _, _, fence in ends}) == len(ends)
    lives = collections.Counter((name, life) for name, life, kind, _ in ends if kind in ENDS)
    lives.update((lease["id"], lease["incarnation"]) for lease in final)
    assert max(lives.values()) == 1

    # The chaos was one.
    assert all(numbers[happened] for happened in wanted), story

    judge_deliveries([lease for report in reports for lease in report["leases"]], final)


def judge_deliveries(leases: list[dict[str, Any]], final: list[dict[str, Any]]) -> None:
    """Assert that each life's deliveries are numbered without a gap, fences rise, and no two leases overlap."""
    by_life: dict[tuple[str, int], list[dict[str, Any]]] = collections.defaultdict(list)
    for lease in [*leases, *final]:
        by_life[lease["id"], lease["incarnation"]].append(lease)
    overlaps = reclaims = 0
    for life, deliveries in by_life.items():
        deliveries.sort(key=lambda lease: int(lease["deliveries"]))
        assert [lease["deliveries"] for lease in deliveries] == list(range(1, len(deliveries) + 1)), life
        for earlier, later in itertools.pairwise(deliveries):
            assert earlier["fence"] < later["fence"], life
            if "from" in later:
                reclaims += 1
                overlaps += earlier["until"] > later["from"] + CLOCKS
    assert reclaims > 20
    assert overlaps == 0, f"{overlaps} of {reclaims} leases were live when the next was given"
    per_job = collections.Counter((lease["id"], lease["fence"]) for lease in [*leases, *final])
    assert max(per_job.values()) == 1

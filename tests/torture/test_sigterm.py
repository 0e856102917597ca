"""SIGTERM at random moments of a busy run: whatever a worker was at, it ends in order and in time."""

import asyncio
import pathlib
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.processes import eventually
from tests.support.servers import Server
from tests.torture.draining import LONG_EVERY, build
from tests.worker.bench import Bench, ended_with
from tests.worker.conftest import forget
from tests.worker.program import Journal

SEED = 20_240_601
MOMENTS, MOMENTS_OF_A_LONG_RUN = 6, 200
LANES = 3
"""Workers at the same time, each on a store of its own: what one of them leaves behind is seen."""
LATEST = 0.6
"""Seconds from a worker's start to the latest moment."""
DRAIN, SLACK = 0.3, 2.0
"""Handlers that still run have a second and a half to unwind; what they were at is given back, and the process ends."""
BACKLOG = 1_000
SHARE_OF_THREADS = 5
"""One job in so many runs in a thread."""


@pytest.fixture(params=["valkey", "sqlite"])
def lanes(request: pytest.FixtureRequest, namespace: str, tmp_path: pathlib.Path) -> Iterator[list[Bench]]:
    server: Server | None = request.getfixturevalue("valkey") if request.param == "valkey" else None
    made = []
    for number in range(LANES):
        url = f"sqlite:///{tmp_path / f'{number}.db'}" if server is None else server.url
        journal = Journal(tmp_path / f"{number}.journal")
        made.append(Bench(url, f"{namespace}{number}", journal, program="tests.torture.draining", build=build))
    yield made
    for bench in made:
        bench.app.close_sync()
    if server is not None:
        asyncio.run(forget(server, namespace))


@pytest.mark.torture
@pytest.mark.timeout(60)
def test_a_worker_ends_in_order_at_any_moment(lanes: list[Bench], scale: int) -> None:
    moments = MOMENTS if scale == 1 else MOMENTS_OF_A_LONG_RUN
    with ThreadPoolExecutor(LANES) as threads:
        shares = [moments // LANES + (lane < moments % LANES) for lane in range(LANES)]
        running = [
            threads.submit(interrupted, bench, random.Random(f"{SEED} {lane}"), share)
            for lane, (bench, share) in enumerate(zip(lanes, shares, strict=True))
        ]
        released = sum(lane.result() for lane in running)
    assert released >= moments / 2, "jobs were released, and not only drained"


def interrupted(bench: Bench, dice: random.Random, moments: int) -> int:
    """End so many workers, one after another, let a last one end the work, and return how many jobs were released."""
    pushed: set[str] = set()
    for _ in range(moments):
        stock(bench, pushed)
        with bench.worker(concurrency=20, drain_timeout=DRAIN) as child:
            started, moment = time.monotonic(), dice.uniform(0, LATEST)
            eventually(lambda: time.monotonic() >= started + moment, what="the moment", every=0.001)  # noqa: B023
            child.signal(signal.SIGTERM)
            began = time.monotonic()
            ended_with(child, "shutdown")
            assert time.monotonic() - began < DRAIN + SLACK, (moment, child.output)
        counts = bench.app.counts_sync("default")
        assert (counts.leased, counts.delayed, counts.failed) == (0, 0, 0), (moment, child.output)
    with bench.worker(concurrency=20):
        eventually(lambda: at_rest(bench), 30, what="everything has ended")
    return check(bench, pushed)


def stock(bench: Bench, pushed: set[str]) -> None:
    """See that there is more to do than a worker can do before its moment."""
    missing = BACKLOG - bench.app.counts_sync("default").ready
    numbers = range(len(pushed), len(pushed) + missing)
    names = ["on_the_loop" if number % SHARE_OF_THREADS else "in_a_thread" for number in numbers]
    calls = [bench.app.call(name, [number]) for name, number in zip(names, numbers, strict=True)]
    pushed |= {handle.id for handle in bench.app.push_many_sync(calls)}


def at_rest(bench: Bench) -> bool:
    counts = bench.app.counts_sync("default")
    return counts.ready + counts.delayed + counts.leased == 0


def check(bench: Bench, pushed: set[str]) -> int:
    """Every job has ended once, in its first attempt; return how many began more often, as released ones do."""
    starts, ends = bench.journal.lines("start"), bench.journal.lines("end")
    assert Counter(line["id"] for line in ends) == dict.fromkeys(pushed, 1)
    assert {line["attempt"] for line in starts} == {1}, "what is given back is not charged"
    begun = Counter(line["id"] for line in starts)
    assert set(begun) == pushed
    again = {identity for identity, times in begun.items() if times > 1}
    long = {line["id"] for line in starts if line["label"] % LONG_EVERY == 0}
    assert again <= long, "what could end was let end"
    return len(again)

"""Chains and batches whose workers are killed and paused at random: order, counts and callbacks are exact."""

import contextlib
import json
import pathlib
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tenure import CompositionHandle, CompositionState, Tenure
from tests.support import processes
from tests.support.databases import Database
from tests.support.processes import Child, eventually
from tests.support.servers import Server
from tests.torture import composing, outages
from tests.torture.outages import Facts

LINKS, MEMBERS = 20, 50
CHAINS = BATCHES = 8
"""At scale 1; two hundred of each from scale 20 on."""
WORKERS = 4
FAULTS = 8
"""At scale 1: more would keep the load from ever coming to its end on a busy machine."""
LEASE = 2.0


@pytest.fixture(params=["redis", "redis-streams", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "postgresql":
        database: Database = request.getfixturevalue("postgresql")
        return database.url
    server: Server = request.getfixturevalue("valkey")
    return server.url if request.param == "redis" else server.url.replace("unix://", "unix+streams://", 1)


@pytest.fixture
def app(url: str, namespace: str) -> Iterator[Tenure]:
    made = composing.build(url, namespace)
    yield made
    made.close_sync()


@pytest.mark.torture
@pytest.mark.timeout(150)
def test_chains_and_batches_are_exact_whoever_dies(
    app: Tenure, url: str, namespace: str, tmp_path: pathlib.Path, scale: int
) -> None:
    chance = random.Random(15)
    facts = Facts(tmp_path / "journal")
    number = 200 if scale >= 20 else CHAINS * scale
    # However slowly workers start, they begin with all of the work before them.
    app.operate.pause_sync(composing.QUEUE)
    chains = [pushed_chain(app) for _ in range(number)]
    batches = [pushed_batch(app) for _ in range(number)]
    kills = pauses = 0
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(worker(url, namespace, facts)) for _ in range(WORKERS)]
        for child in workers:
            child.wait_for_output("worker started", 30)
        app.operate.resume_sync(composing.QUEUE)
        frozen: dict[int, float] = {}
        while not all_over(app, chains, batches):
            outages.last(chance.uniform(0.05, 0.3) * min(scale, 6))
            for place, since in list(frozen.items()):
                if outages.now() > since + LEASE * 1.5:
                    del frozen[place]
                    workers[place].cont()
            busy = at_work(facts)
            places = [place for place in range(WORKERS) if place not in frozen and workers[place].pid in busy]
            if not places or WORKERS - len(frozen) <= 2 or kills + pauses >= FAULTS * scale:
                continue
            place = chance.choice(places)
            if kills <= pauses:
                workers[place].kill9()
                kills += 1
                workers[place] = stack.enter_context(worker(url, namespace, facts))
            else:
                workers[place].pause()
                frozen[place] = outages.now()
                pauses += 1
        for place in frozen:
            workers[place].cont()
        callbacks = 2 * len(batches)
        eventually(lambda: len({line["id"] for line in facts.read("callback")}) >= callbacks, 60, every=0.1)
        eventually(lambda: not app.counts_sync(composing.QUEUE).leased, 30, what="all is settled", every=0.1)
        for child in workers:
            child.wait_for_output("worker started", 30)
            assert child.stop(30) == 0, child.output
    runs = Counter(line["id"] for line in facts.read("start"))
    again = sum(times > 1 for times in runs.values())
    assert min(kills, pauses, again) > 0, f"unknown: {kills} kills, {pauses} pauses, {again} jobs met one"
    check_counts(chains, LINKS)
    check_counts(batches, MEMBERS)
    check_order(facts, chains)
    check_callbacks(facts, batches)
    sys.stdout.write(f"{kills} kills, {pauses} pauses, {len(runs)} jobs, {again} of them started more than once\n")


def worker(url: str, namespace: str, facts: Facts) -> AbstractContextManager[Child]:
    options = json.dumps({"lease": LEASE, "concurrency": 10, "sleep": 0.2, "tries": 1000})
    env = {"TENURE_TEST_JOURNAL": str(facts.path)}
    return processes.python("-m", "tests.torture.composing", url, namespace, options, env=env)


def at_work(facts: Facts) -> set[int]:
    """Return the processes that have begun something, and not ended it."""
    under_way = Counter(line["pid"] for line in facts.read("start"))
    under_way.subtract(line["pid"] for line in facts.read("end"))
    return {pid for pid, number in under_way.items() if number > 0}


def pushed_chain(app: Tenure) -> CompositionHandle:
    return app.chain(*(app.call("link", [number]) for number in range(LINKS))).push_sync()


def pushed_batch(app: Tenure) -> CompositionHandle:
    callback = {kind: app.call("callback", [kind]) for kind in ("success", "failure", "finish")}
    return app.batch(
        (app.call("member", [number]) for number in range(MEMBERS)),
        on_success=callback["success"],
        on_failure=callback["failure"],
        on_finish=callback["finish"],
    ).push_sync()


def all_over(app: Tenure, *groups: list[CompositionHandle]) -> bool:
    """Tell whether all have ended; those that have are not asked again."""
    for group in groups:
        for handle in group:
            status = handle.status_sync()
            assert status is not None
            assert status.succeeded + status.failed + status.cancelled <= status.total
            if not status.finished:
                return False
    return True


def check_counts(group: list[CompositionHandle], total: int) -> None:
    for handle in group:
        status = handle.status_sync()
        assert status is not None
        counted = (status.state, status.total, status.succeeded, status.failed, status.cancelled, status.pending)
        assert counted == (CompositionState.COMPLETED, total, total, 0, 0, 0)


def check_order(facts: Facts, chains: list[CompositionHandle]) -> None:
    """No link starts before an attempt of the one before it has ended whose settlement the store took."""
    ids = {handle.id for handle in chains}
    taken = {(line["id"], line["fence"]) for line in facts.read("settled")}
    accepted = {one for one, _ in taken}
    begun: dict[tuple[str, int], float] = {}
    ended: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for line in facts.read("start"):
        if line["of"] in ids:
            key = line["of"], line["number"]
            begun[key] = min(begun.get(key, line["at"]), line["at"])
    for line in facts.read("end"):
        if line["of"] in ids:
            ended[line["of"], line["number"]].append(line)
    assert len(begun) == len(chains) * LINKS
    for (chain, number), at in begun.items():
        if number == 0:
            continue
        before = ended[chain, number - 1]
        if before[0]["id"] in accepted:  # else its worker died before it could write that down
            before = [line for line in before if (line["id"], line["fence"]) in taken]
        assert min(line["at"] for line in before) <= at, f"link {number} of {chain} started too early"


def check_callbacks(facts: Facts, batches: list[CompositionHandle]) -> None:
    """Each batch has called back once for success and once for the end; a callback that was redelivered is one job."""
    jobs = {(line["of"], line["kind"], line["id"]) for line in facts.read("callback")}
    assert Counter((of, kind) for of, kind, _ in jobs) == Counter(
        {(handle.id, kind): 1 for handle in batches for kind in ("success", "finish")}
    )
    settled = Counter(line["id"] for line in facts.read("settled"))
    assert max(settled.values()) == 1

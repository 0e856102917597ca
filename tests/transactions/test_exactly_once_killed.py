"""Workers that are killed and paused while their handlers write with ``current().transaction()``."""

import itertools
import json
import pathlib
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

import pytest
from sqlalchemy import Engine

from tenure import Tenure
from tests.support import processes
from tests.support.processes import Child, eventually
from tests.transactions import bank
from tests.transactions.conftest import Open
from tests.worker.program import Journal

LEASE = 1.5
TRANSFERS = 300
"""At scale 1."""
FULL = {"sqlite": 1_500, "postgresql": 10_000}
"""At most; a file takes one transfer at a time."""
WORKERS = 3


@dataclass(frozen=True)
class Bank:
    """A bank in the database that its jobs are in, and the journal of its workers."""

    app: Tenure
    engine: Engine
    store: str
    url: str
    namespace: str
    journal: Journal

    def worker(self, **options: object) -> AbstractContextManager[Child]:
        given = {"lease": LEASE, "concurrency": 4, "sleep": 0.5, "tries": 1000, "backoff": 0.01, **options}
        environment = {"TENURE_TEST_JOURNAL": str(self.journal.path), "TENURE_TEST_BANK": self.url}
        words = ("-m", "tests.transactions.bank", self.store, self.namespace, json.dumps(given))
        return processes.python(*words, env=environment)

    def balances(self) -> dict[int, int]:
        return bank.balances(self.engine, self.namespace)

    def idle(self) -> bool:
        counts = self.app.counts_sync("default")
        return counts.ready + counts.delayed + counts.leased == 0

    def left(self) -> int:
        counts = self.app.counts_sync("default")
        return counts.ready + counts.delayed + counts.leased


@pytest.fixture(params=["sqlite", "psycopg"])
def counter(request: pytest.FixtureRequest, open_business: Open, tmp_path: pathlib.Path) -> Iterator[Bank]:
    business = open_business(request.param)
    engine = bank.opened(business.url)
    bank.open_accounts(engine, business.namespace)
    app = bank.build(business.store, business.namespace)
    yield Bank(app, engine, business.store, business.url, business.namespace, Journal(tmp_path / "journal"))
    app.close_sync()
    engine.dispose()


@pytest.mark.parametrize("when", ["before_commit", "after_commit"])
def test_a_worker_that_is_killed_at_its_commit(counter: Bank, when: str) -> None:
    """Behind the acknowledgement, and before or behind the COMMIT that makes both true."""
    counter.app.push_sync(counter.app.call("dies", [counter.namespace, when]))
    with counter.worker() as victim:
        assert victim.wait(30) == -9
    assert counter.balances()[0] == bank.OPENING + (when == "after_commit")
    with counter.worker():
        eventually(counter.idle, 30, what="the job is done")
    assert counter.balances()[0] == bank.OPENING + 1
    assert len(counter.journal.lines("start")) == 1 + (when == "before_commit")


@pytest.mark.torture
@pytest.mark.timeout(180)
def test_every_balance_is_exact_whatever_happens_to_the_workers(counter: Bank, scale: int) -> None:
    chosen = random.Random()
    made = bank.transfers(chosen.getrandbits(32), min(TRANSFERS * scale, FULL[counter.engine.dialect.name]))
    calls = [counter.app.call("transfer", [counter.namespace, *transfer]) for transfer in made]
    total = bank.ACCOUNTS * bank.OPENING
    kills = pauses = 0
    with ExitStack() as stack:
        workers = [stack.enter_context(counter.worker()) for _ in range(WORKERS)]
        for child in workers:
            child.wait_for_output("worker started", 30)
        counter.app.push_many_sync(calls)  # not before: the first of them might do it all
        for number in itertools.count():
            left = counter.left()
            assert sum(counter.balances().values()) == total, "no half of a transfer is ever seen"
            if left < 20:
                break
            place = chosen.randrange(WORKERS)
            if number % 2 == 0:
                # Long enough for its leases to lapse: it goes on in the middle of its blocks, and is stale.
                workers[place].pause()
                time.sleep(LEASE + 0.7)  # handler: of the paused process, which works on afterwards
                workers[place].cont()
                pauses += 1
            else:
                workers[place].kill9()
                workers[place] = stack.enter_context(counter.worker())
                workers[place].wait_for_output("worker started", 30)
                kills += 1
        eventually(counter.idle, 60 + LEASE, what="everything is settled", every=0.1)
    assert counter.app.counts_sync("default").failed == 0
    assert counter.balances() == bank.expected(made)
    starts = Counter(str(line["id"]) for line in counter.journal.lines("start"))
    again = sum(count > 1 for count in starts.values())
    told = f"{len(made)} transfers, {kills} kills, {pauses} pauses: {again} jobs ran more than once"
    sys.stdout.write(f"{told}, {max(starts.values())} times at most\n")
    assert len(starts) == len(made)
    assert again, "nothing was tried: no job ran more than once"

"""Pushers and workers on databases: on a SQLite file while processes are killed, on a PostgreSQL that restarts."""

import contextlib
import json
import pathlib
import random
import signal
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import pytest
from sqlalchemy.exc import DatabaseError

from tenure import Tenure
from tenure.databases import of
from tenure.drivers.sql.migrations import Migrations
from tests.databases.support import Place, place_of
from tests.support import databases, processes
from tests.support.absent import not_proven
from tests.support.processes import Child, eventually
from tests.torture import outages, steady
from tests.torture.outages import Facts, History
from tests.torture.test_outages import drained, progress, stuck

LEASE = 3.0
HALF = 4
"""Processes that push, and as many that work."""
JOBS = 1_000
"""That each pusher pushes; twenty thousand in all at scale 5 and above."""
SHORTEST, LONGEST = 5.0, 40.0
"""Seconds from one restart to the next."""
UNDER_LOAD = 180.0
RATE = 150


def program(url: str, namespace: str, facts: Facts, role: str, **options: object) -> AbstractContextManager[Child]:
    arguments = [role, url, namespace, json.dumps(options)]
    return processes.python("-m", "tests.torture.steady", *arguments, env={"TENURE_TEST_JOURNAL": str(facts.path)})


def worker(url: str, namespace: str, facts: Facts) -> AbstractContextManager[Child]:
    return program(url, namespace, facts, "work", lease=LEASE, concurrency=10, sleep=0.5, tries=1000)


# ------------------------------------------------------------------------------------------------------------- SQLite


@pytest.mark.torture
@pytest.mark.timeout(150)
def test_eight_processes_share_a_file_and_are_killed(namespace: str, tmp_path: pathlib.Path, scale: int) -> None:
    """Of every job that a push returned for, whoever was killed meanwhile, there is one accepted end, and no more."""
    chance = random.Random(4)
    url, facts = f"sqlite:///{tmp_path / 'jobs'}", Facts(tmp_path / "journal")
    most = JOBS * min(scale, 5) // (1 if scale > 1 else 3)
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(worker(url, namespace, facts)) for _ in range(HALF)]
        dead: list[Child] = []
        for child in workers:
            child.wait_for_output("worker started", 30)

        def pusher(number: int) -> Child:
            started = program(
                url, namespace, facts, "push", rate=RATE, blocking_rate=RATE // 5, most=number, telling=True
            )
            return stack.enter_context(started)

        pushers = [pusher(most) for _ in range(HALF)]
        for number in range(2 * scale if scale < 5 else 12):
            pushed = len(facts.read("push"))
            until = pushed + chance.randrange(50, 300)
            eventually(partial(enough, facts, until, pushers), 60, every=0.05)
            if number % 3 == 2:
                victim = chance.randrange(HALF)
                pushers[victim].kill9()
                pushers[victim] = pusher(most)
            else:
                victim = chance.randrange(HALF)
                workers[victim].kill9()
                dead.append(workers[victim])
                workers[victim] = stack.enter_context(worker(url, namespace, facts))
        for child in pushers:
            assert child.wait(120) == 0, child.output
        app = steady.build(url, namespace)
        settle(app, workers)
        for child in workers:
            assert child.stop(30) == 0, child.output
        for child in [*workers, *pushers, *dead]:
            assert "locked" not in child.output, child.output
    history = History(facts.read(), 0.0, 0.0, [])
    assert len(history.ids("push")) >= most * HALF
    assert {line["outcome"] for line in history.of["push"]} == {"ok"}, "no push of a living process failed"
    check(history)
    with contextlib.closing(sqlite3.connect(tmp_path / "jobs")) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert file.execute("SELECT count(*) FROM tenure_jobs").fetchall() == [(0,)]
    tell("sqlite", history)


def enough(facts: Facts, number: int, pushers: Sequence[Child]) -> bool:
    return len(facts.read("push")) >= number or any(child.exit_code is not None for child in pushers)


# --------------------------------------------------------------------------------------------------------- PostgreSQL


@pytest.fixture
def own_postgres(namespace: str) -> Iterator[Place]:
    """A PostgreSQL that only this test uses, and that loses nothing when it is killed."""
    programs = databases.postgres_programs()
    if programs is None:
        not_proven("PostgreSQL", "apt-get install postgresql")
    with databases.postgres(programs, durable=True) as server:
        Migrations(of(server.url, "tests")).upgrade()
        yield place_of(server, namespace)


@pytest.mark.torture
@pytest.mark.timeout(90)
def test_a_postgresql_that_keeps_restarting_loses_and_doubles_nothing(
    own_postgres: Place, tmp_path: pathlib.Path, scale: int
) -> None:
    """Restarted in order and killed, its sessions ended, replies to COMMIT cut: all while jobs are pushed and run."""
    chance = random.Random(6)
    facts = Facts(tmp_path / "journal")
    restarts = restart_times(chance, UNDER_LOAD) if scale > 1 else [2.0, 3.0]
    with own_postgres.wire() as (wire, url), contextlib.ExitStack() as stack:
        workers = [stack.enter_context(worker(url, own_postgres.namespace, facts)) for _ in range(3)]
        for child in workers:
            child.wait_for_output("worker started", 30)
        pusher = stack.enter_context(
            program(url, own_postgres.namespace, facts, "push", rate=RATE, blocking_rate=RATE // 5)
        )
        eventually(lambda: progress(facts, workers), 30, what="every worker has work", every=0.1)
        idle = stack.enter_context(watched(own_postgres))
        cuts, ended = 0, 0
        for number, seconds in enumerate(restarts):
            begun = outages.now()
            while outages.now() < begun + seconds:
                cut = wire.cut(b"COMMIT", "reply")
                outages.last(min(1.0, seconds / 3))
                cuts += cut.happened
                ended += own_postgres.kill_sessions()
            if number % 2:
                own_postgres.database.kill9()
                own_postgres.database.start()
            else:
                own_postgres.database.restart()
            going_on = partial(progress, facts, workers, outages.now())
            eventually(going_on, 30, what="every worker goes on", every=0.1)
        wire.spare()
        pusher.signal(signal.SIGTERM)
        assert pusher.wait(60) == 0, pusher.output
        app = steady.build(own_postgres.database.url, own_postgres.namespace)
        settle(app, workers)
        assert own_postgres.transactions() == 0
        for child in workers:
            assert child.stop(30) == 0, child.output
            assert "Traceback" not in child.output, child.output
    assert cuts >= len(restarts), "unknown: too few replies were cut"
    assert ended >= len(restarts), "unknown: too few sessions were ended"
    assert max(idle, default=0.0) < 2, "a connection was left in the middle of a transaction"
    history = History(facts.read(), 0.0, 0.0, [])
    assert len(history.pushed(ok=True)) >= sum(restarts) * RATE / 4
    check(history)
    assert own_postgres.ask("SELECT count(*) FROM tenure_jobs") == [(0,)]
    tell(f"postgresql: {len(restarts)} restarts, {cuts} replies cut, {ended} sessions ended,", history)


def restart_times(chance: random.Random, most: float) -> list[float]:
    """Return the times between restarts of some minutes."""
    times: list[float] = []
    while sum(times) < most:
        times.append(chance.uniform(SHORTEST, LONGEST))
    return times


@contextlib.contextmanager
def watched(place: Place) -> Iterator[list[float]]:
    """Note how long connections of ours have been idle in a transaction, as long as the block lasts."""
    found: list[float] = []
    over = threading.Event()
    longest = (
        "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - state_change)), 0) FROM pg_stat_activity "
        "WHERE application_name = 'tenure' AND state LIKE 'idle in transaction%'"
    )

    def watch() -> None:
        while not over.wait(0.2):
            with contextlib.suppress(DatabaseError):  # it restarts
                found.append(float(place.ask(longest)[0][0]))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()
    assert found, "unknown: the server was never asked"


# ---------------------------------------------------------------------------------------------------------- the verdict


def settle(app: Tenure, workers: Sequence[Child]) -> None:
    """Wait until nothing is left to do."""
    try:
        by = outages.now() + 60 + LEASE
        eventually(lambda: drained(app) or outages.now() > by, 90, every=0.1)
        assert drained(app), stuck(app, list(workers))
    finally:
        app.close_sync()


def check(history: History) -> None:
    """What a push returned for has run to an accepted end, once; what definitely failed has not run."""
    begun = history.ids("push") | history.ids("pushing")
    lost = history.pushed(ok=True) - history.ids("end")
    assert not lost, f"{len(lost)} accepted jobs are lost, {sorted(lost)[:3]}"
    ghosts = history.pushed(ok=False) & history.ids("start")
    assert not ghosts, f"{len(ghosts)} pushes that had failed have run, {sorted(ghosts)[:3]}"
    assert history.ids("start") <= begun
    outages.check_settlements(history)


def tell(what: str, history: History) -> None:
    outcomes = Counter(line["outcome"] for line in history.of["push"])
    runs = Counter(line["id"] for line in history.of["start"])
    settled = len(history.ids("settled"))
    again = sum(number > 1 for number in runs.values())
    sys.stdout.write(f"{what} pushes {dict(outcomes)}, settled {settled}, {again} jobs started more than once\n")

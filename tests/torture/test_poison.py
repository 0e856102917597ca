"""Jobs that take down their processes, among healthy ones: they fail at their limit, and the others hardly notice."""

import json
import pathlib
import time
from collections.abc import Iterator
from functools import partial

import pytest
import redis

from tenure import Tenure
from tests.support import processes
from tests.support.processes import eventually
from tests.support.servers import Server
from tests.worker import apart
from tests.worker.program import Journal

POISON = {"exits": "ended with exit code 3", "dereferences_null": "ended with SIGSEGV"}
WINDOW = 4.0
"""Seconds over which a rate is counted."""
SLOTS = 50
SECONDS = 0.5
"""How long a healthy job takes: the slots are the bound of their rate, not the processor, which other tests share."""


@pytest.fixture
def app(valkey: Server, namespace: str) -> Iterator[Tenure]:
    made = apart.build(valkey.url, namespace)
    yield made
    made.close_sync()
    with redis.Redis(unix_socket_path=valkey.socket) as client:
        for key in client.scan_iter(match=f"*{namespace}*", count=1000):
            client.unlink(key)


@pytest.mark.torture
@pytest.mark.timeout(120)
def test_healthy_jobs_keep_four_fifths_of_their_rate_beside_poison(
    app: Tenure, valkey: Server, namespace: str, tmp_path: pathlib.Path, scale: int
) -> None:
    journal = Journal(tmp_path / "journal")
    environment = {
        "TENURE_TEST_URL": valkey.url, "TENURE_TEST_NAMESPACE": namespace, "TENURE_TEST_JOURNAL": str(journal.path)
    }  # fmt: skip
    options = {"concurrency": SLOTS, "tries": 3, "sleep": 0.2, "drain_timeout": 0}
    healthy = app.call("sleeps_async_here", ["healthy", SECONDS])
    # More than can be done in all windows: the rate is the worker's.
    app.push_many_sync(healthy for _ in range(int(SLOTS / SECONDS * WINDOW * 8 * min(scale, 10))))
    with processes.python("-m", "tests.worker.apart", json.dumps(options), env=environment) as child:
        child.wait_for_output("worker started", 30)
        eventually(lambda: ended(journal) > 20, 20, what="healthy jobs run")
        shares: list[float] = []
        for _ in range(min(scale, 10) + 2):
            before = rate(journal)
            for job in POISON:
                # Ahead of the healthy ones, so that each attempt begins at once.
                app.push_sync(app.call(job).options(priority=10))
            shares.append(rate(journal) / before)
            eventually(partial(failed_are, app, len(POISON) * len(shares)), 20, what="the poison has failed")
            if scale == 1 and shares[-1] >= 0.8:
                break
        assert child.exit_code is None, "the worker lives on"
        output = child.output
    # What else this machine does meanwhile is in a single share, and not in the best of three.
    assert max(shares) >= 0.8, shares
    failed = app.failed_sync("default")
    assert {record.failure.reason for record in failed} == {"crashed"}
    assert {record.attempts for record in failed} == {3}
    for how in POISON.values():
        assert any(how in record.failure.message for record in failed)
        assert output.count(how) >= 3
    assert [line for line in journal.lines("start") if line["attempt"] > 1] == [], "no neighbour was tried again"


def ended(journal: Journal) -> int:
    return journal.path.read_bytes().count(b'"end"') if journal.path.exists() else 0


def failed_are(app: Tenure, number: int) -> bool:
    return app.counts_sync("default").failed == number


def rate(journal: Journal) -> float:
    before, began = ended(journal), time.monotonic()
    eventually(lambda: time.monotonic() - began >= WINDOW, WINDOW + 1, every=0.05)
    return (ended(journal) - before) / (time.monotonic() - began)

"""Three workers on Redis, each killed with SIGKILL once while they work through a backlog of short jobs."""

import asyncio
import itertools
import json
import pathlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Self

import pytest
import redis

from tenure import Tenure
from tenure.queue import Ack, Lease, Renewal, Settled
from tests.support import processes
from tests.support.processes import Child, eventually
from tests.support.servers import Server
from tests.worker.program import Journal, build

LEASE = 3.0
JOBS = 1_500
"""At scale 1; `make torture` multiplies it."""
WORKERS = 3


@pytest.fixture
def app(valkey: Server, namespace: str) -> Iterator[Tenure]:
    made = build(valkey.url, namespace)
    yield made
    made.close_sync()
    with redis.Redis(unix_socket_path=valkey.socket) as client:
        for key in client.scan_iter(match=f"*{namespace}*", count=1000):
            client.unlink(key)


@pytest.mark.torture
@pytest.mark.timeout(120)
def test_three_killed_workers_lose_nothing(
    app: Tenure, valkey: Server, namespace: str, tmp_path: pathlib.Path, scale: int
) -> None:
    journal = Journal(tmp_path / "journal")
    total = JOBS * min(scale, 14)
    call = app.call("brief", [0.001])

    with ExitStack() as stack:
        lapses = stack.enter_context(Lapses(app))
        workers = [stack.enter_context(worker(valkey.url, namespace, journal)) for _ in range(WORKERS)]
        for child in workers:
            child.wait_for_output("worker started", 20)
        pushed = {handle.id for handle in app.push_many_sync(itertools.repeat(call, total))}
        assert len(pushed) == total
        killed: set[int] = set()
        for number, victim in enumerate(tuple(workers), 1):
            # Spread over the run: a quarter, a half and three quarters of the jobs are done.
            until_done(journal, total * number // 4)
            held = leases_of(journal, victim.pid)
            victim.kill9()
            killed.add(victim.pid)
            assert held, "the victim worked"
            workers.append(stack.enter_context(worker(valkey.url, namespace, journal)))
        eventually(lambda: settled(app), 60 + LEASE, what="everything is settled")
        for child in workers:
            assert "lease" not in child.output.replace("lease 3 s", ""), child.output

    # A reclaimed job enters at the tail of the line, so with a backlog its next start says nothing about recovery.
    assert lapses.looked > 10
    assert lapses.longest < 1.0, "a lapsed lease is back in the line within a second"
    lines = journal.lines()
    ended = Counter(str(line["id"]) for line in lines if line["what"] == "end")
    assert set(ended) == pushed, "every job has run to its end"
    check_redeliveries(lines, killed)
    check_attempts(lines, killed)
    check_nothing_left(valkey, namespace)


@pytest.mark.torture
def test_no_lease_of_a_dead_worker_is_of_any_use(
    app: Tenure, valkey: Server, namespace: str, tmp_path: pathlib.Path
) -> None:
    """Leases as the dead worker held them, used after its jobs went to another: settled and renewed in vain."""
    journal = Journal(tmp_path / "journal")
    app.push_many_sync(itertools.repeat(app.call("works", ["held", 60.0]), 20))
    asyncio.run(stale_leases_are_refused(app, valkey.url, namespace, journal))


async def stale_leases_are_refused(app: Tenure, url: str, namespace: str, journal: Journal) -> None:
    dead = Tenure(url, namespace=namespace)
    claimed = await dead.queue().claim(["default"], limit=20, lease=0.3, wait=1)
    stale: list[Lease] = list(claimed.leases)
    assert len(stale) == 20
    with worker(url, namespace, journal, concurrency=20, drain_timeout=0):
        await asyncio.to_thread(eventually, lambda: len(journal.lines("start")) == 20, 15, what="all are redelivered")
        assert set(await dead.queue().settle([Ack(lease) for lease in stale])) == {Settled.STALE}
        assert set(await dead.queue().renew(stale)) == {Renewal.LOST}
        assert (await dead.counts("default")).leased == 20
    await dead.aclose()


def worker(url: str, namespace: str, journal: Journal, **options: object) -> AbstractContextManager[Child]:
    arguments = [url, namespace, json.dumps({"lease": LEASE, "concurrency": 10, "sleep": 0.5, "tries": 20, **options})]
    environment = {"TENURE_TEST_JOURNAL": str(journal.path)}
    return processes.python("-m", "tests.worker.program", *arguments, env=environment)


class Lapses(threading.Thread):
    """Watches how long leases of the queue stay lapsed."""

    def __init__(self, app: Tenure) -> None:
        super().__init__(daemon=True)
        self.longest = 0.0
        self.looked = 0
        self._app = app
        self._ended = threading.Event()

    def run(self) -> None:
        since: float | None = None
        while not self._ended.wait(0.02):
            lapsed = self._app.counts_sync("default").lapsed
            now = time.monotonic()
            self.looked += 1
            since = (since or now) if lapsed else None
            self.longest = max(self.longest, now - since if since else 0.0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()


def until_done(journal: Journal, number: int) -> None:
    eventually(lambda: done(journal) >= number, 60, what=f"{number} jobs done", every=0.05)


def done(journal: Journal) -> int:
    return journal.path.read_bytes().count(b'"end"') if journal.path.exists() else 0


def settled(app: Tenure) -> bool:
    counts = app.counts_sync("default")
    return counts.ready + counts.delayed + counts.leased == 0


def leases_of(journal: Journal, pid: int) -> int:
    return sum(line["pid"] == pid for line in journal.lines("start"))


def check_redeliveries(lines: list[dict[str, Any]], dead: set[int]) -> None:
    """What a killed worker had begun and not ended began again elsewhere."""
    interrupted = 0
    for pid in dead:
        begun = {line["id"] for line in lines if line["pid"] == pid and line["what"] == "start"}
        begun -= {line["id"] for line in lines if line["pid"] == pid and line["what"] == "end"}
        interrupted += len(begun)
        for identity in begun:
            again = {line["pid"] for line in lines if line["id"] == identity and line["what"] == "start"}
            assert again > {pid}, "an interrupted job was redelivered"
    assert interrupted, "the kills hit running jobs"


def check_attempts(lines: list[dict[str, Any]], dead: set[int]) -> None:
    """A job ran again only where a dead worker had it, with a higher fence and attempt."""
    by_job: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if line["what"] == "start":
            by_job.setdefault(str(line["id"]), []).append(line)
    for starts in by_job.values():
        for earlier, later in itertools.pairwise(starts):
            assert earlier["pid"] in dead
            assert later["fence"] > earlier["fence"]
            assert later["attempt"] > earlier["attempt"]


def check_nothing_left(server: Server, namespace: str) -> None:
    """No structure holds a job: what is left is the queue's name, its counters and what expires."""
    with redis.Redis(unix_socket_path=server.socket, decode_responses=True) as client:
        for key in client.scan_iter(match=f"*{namespace}*", count=1000):
            kind = client.type(key)
            # How far the lines were walked: two numbers for ever, that listings count from.
            lasting = client.ttl(key) == -1 and not key.endswith("}:taken")
            assert not (lasting and kind in {"list", "stream", "zset", "hash"}), f"{key} ({kind}) is left"

"""Many processes on one file."""

import collections
import contextlib
import itertools
import json
import pathlib
from typing import Any

import pytest

from tenure.drivers.sql import SqliteQueue
from tenure.queue import Ack, Lease
from tests.sql.support import ENV, Q, ask, assert_consistent, claim, numbered, push
from tests.support import processes

HERE = pathlib.Path(__file__).parent
RACERS = 8


def script(name: str, *arguments: object) -> contextlib.AbstractContextManager[processes.Child]:
    return processes.python(HERE / name, *map(str, arguments), env=ENV)


@pytest.mark.torture
async def test_eight_processes_lose_and_double_nothing(path: pathlib.Path, queue: SqliteQueue, scale: int) -> None:
    seconds = 4.0 * scale
    with contextlib.ExitStack() as stack:
        racers = [stack.enter_context(script("racer.py", path, seed, seconds)) for seed in range(RACERS)]
        for racer in racers:
            assert racer.wait(seconds + 40) == 0, racer.output
        reports: list[dict[str, Any]] = [json.loads(racer.output.splitlines()[-1]) for racer in racers]
    numbers: collections.Counter[str] = collections.Counter()
    for report in reports:
        numbers.update(report["numbers"])
    assert_consistent(path)
    left = await queue.counts(Q)

    began = numbers["stored"] + numbers["retried"]
    ended = numbers["Ack done"] + numbers["Fail done"] + numbers["Release cancelled"]
    ended += numbers["cancelled"] + numbers["cleared"]
    assert began == ended + left.ready + left.delayed + left.leased, numbers
    assert numbers["Fail done"] == numbers["retried"] + numbers["forgotten"] + left.failed, numbers

    # Each lease ended once at most, each incarnation too; deliveries are numbered without a gap and fences rise.
    ends = [tuple(end) for report in reports for end in report["ends"]]
    assert len({end[:2] for end in ends}) == len(ends)
    assert max(collections.Counter(incarnation for incarnation, _, kind in ends if kind == "end").values()) == 1
    lives: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)
    for _, incarnation, deliveries, fence in (lease for report in reports for lease in report["leases"]):
        lives[incarnation].append((deliveries, fence))
    for life in lives.values():
        life.sort()
        assert [deliveries for deliveries, _ in life] == list(range(1, len(life) + 1))
        assert all(earlier[1] < later[1] for earlier, later in itertools.pairwise(life))

    # It was a race: settlements came too late, others not.
    assert numbers["Ack stale"] > 10
    assert numbers["Ack done"] > 100


async def test_many_processes_may_create_the_file_at_once(path: pathlib.Path) -> None:
    code = f"""
import asyncio, sys
from tenure.drivers.sql import SqliteQueue
from tenure.queue import Push
async def main():
    print("ready", flush=True)
    sys.stdin.read()
    queue = SqliteQueue({str(path)!r}, namespace="test")
    answers = await queue.push([Push(queue="q", id="of-" + sys.argv[1], envelope=b"")])
    assert answers[0].outcome == "stored"
    await queue.aclose()
asyncio.run(main())
"""
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(processes.python("-c", code, str(n), env=ENV)) for n in range(RACERS)]
        for child in children:
            assert child.wait(30) == 0, child.output
    assert ask(path, "SELECT count(*), count(DISTINCT incarnation) FROM tenure_jobs") == [(RACERS, RACERS)]
    assert_consistent(path)


@pytest.mark.torture
async def test_what_a_killed_process_was_told_is_stored_is_there(
    path: pathlib.Path, queue: SqliteQueue, scale: int
) -> None:
    code = f"""
import itertools
from tenure.drivers.sql import SqliteQueue
from tenure.queue import Push
pusher = SqliteQueue({str(path)!r}, namespace="test").pusher()
import sys
for batch in itertools.count():
    jobs = [Push(queue="q", id=f"{{sys.argv[1]}}-{{batch}}-{{n}}", envelope=b"x" * 2000) for n in range(50)]
    assert all(one.outcome == "stored" for one in pusher.push(jobs))
    print(batch, flush=True)
"""
    acknowledged: set[str] = set()
    for run in range(4 * scale):
        with processes.python("-c", code, str(run), env=ENV) as child:
            child.wait_for_output(f"{5 + 7 * run}\n", 20)
            child.kill9()
            told = [line for line in child.output.splitlines(keepends=True) if line.endswith("\n")]
        acknowledged |= {f"{run}-{int(line)}-{n}" for line in told for n in range(50)}
        assert_consistent(path)
    stored = {row[0] for row in ask(path, "SELECT id FROM tenure_jobs")}
    assert acknowledged <= stored
    # Batches are whole, and at most the one under way at the kill was stored unannounced.
    assert len(stored) % 50 == 0
    assert len(stored) - len(acknowledged) <= 50 * 4 * scale
    assert len(await claim(queue, 500)) == 500


async def test_a_worker_killed_between_claim_and_settlement_loses_nothing(
    path: pathlib.Path, queue: SqliteQueue
) -> None:
    await push(queue, *numbered(20))
    code = f"""
import asyncio, sys
from tenure.drivers.sql import SqliteQueue
async def main():
    queue = SqliteQueue({str(path)!r}, namespace="test")
    claimed = await queue.claim(["q"], limit=10, lease=0.3, wait=0)
    print("claimed", len(claimed.leases), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    with processes.python("-c", code, env=ENV) as child:
        child.wait_for_output("claimed 10\n", 20)
        child.kill9()
    leases: list[Lease] = []
    while len(leases) < 20:
        got = await claim(queue, 20, wait=5)
        assert got, "the dead worker's leases lapse"
        leases += got
    assert sorted(lease.deliveries for lease in leases) == [1] * 10 + [2] * 10
    await queue.settle([Ack(lease) for lease in leases])
    assert_consistent(path)


async def test_a_child_of_a_fork_has_connections_of_its_own(path: pathlib.Path) -> None:
    code = f"""
import asyncio, os, sqlite3, sys, threading
from tenure.drivers.sql import SqliteQueue
from tenure.queue import Ack, Push
queue = SqliteQueue({str(path)!r}, namespace="test")
keeper, pusher = queue.keeper(), queue.pusher()
stop = threading.Event()
pushed = 0

def keep_pushing():
    # A transaction is under way at nearly every moment, the fork included.
    global pushed
    while not stop.is_set():
        pusher.push([Push(queue="q", id=f"t{{pushed}}", envelope=b"x")])
        pushed += 1

async def work(name):
    await queue.push([Push(queue="w", id=name, envelope=b"x")])
    claimed = await queue.claim(["w"], limit=1, lease=60, wait=5)
    keeper.renew(claimed.leases)
    settled = await queue.settle([Ack(lease) for lease in claimed.leases])
    return [one.value for one in settled]

assert asyncio.run(work("before")) == ["done"]
thread = threading.Thread(target=keep_pushing)
thread.start()
for number in range(20):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            pusher.push([Push(queue="q", id=f"c{{number}}", envelope=b"x")])
            code = 0 if asyncio.run(work(f"child-{{number}}")) == ["done"] else 2
        finally:
            os._exit(code)
    assert asyncio.run(work(f"parent-{{number}}")) == ["done"]
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, number
stop.set()
thread.join()
print("pushed", pushed + 20)
"""
    with processes.python("-W", "ignore::DeprecationWarning", "-c", code, env=ENV) as child:
        assert child.wait(40) == 0, child.output
        pushed = int(child.output.split()[-1])
    assert_consistent(path)
    assert ask(path, "SELECT count(*) FROM tenure_jobs") == [(pushed,)]


async def test_a_child_that_outlives_its_parent_writes_to_the_file_that_others_read(path: pathlib.Path) -> None:
    code = f"""
import os
from tenure.drivers.sql import SqliteQueue
from tenure.queue import Push
parent = os.getpid()
pusher = SqliteQueue({str(path)!r}, namespace="test").pusher()
pusher.push([Push(queue="q", id="parent", envelope=b"x")])
if os.fork() == 0:
    pusher.push([Push(queue="q", id="child-1", envelope=b"x")])
    while os.getppid() == parent:
        os.sched_yield()
    pusher.push([Push(queue="q", id="child-2", envelope=b"x")])
    print("the child is done", flush=True)
    os._exit(0)
pusher.close()
os._exit(0)
"""
    with processes.python("-c", code, env=ENV) as parent:
        processes.eventually(lambda: "the child is done" in parent.output, 20)
    # A parent that believed itself the last to close would have removed the log that its child still wrote to.
    assert {row[0] for row in ask(path, "SELECT id FROM tenure_jobs")} == {"parent", "child-1", "child-2"}

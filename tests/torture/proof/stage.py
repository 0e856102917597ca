"""One recorded run: pushers and workers in processes of their own, faults one after another, a drain, a verdict."""

import json
import pathlib
import random
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec.structs import replace

from tenure import Tenure
from tenure.testing.history import Dump, Event, Fault, History, Tally, Terms, Verdict, Worker, encoded, read
from tests.support import processes
from tests.support.processes import Child, eventually
from tests.torture.proof.places import Place, counted, tally
from tests.torture.proof.program import QUEUES
from tests.torture.proof.recording import CRASH, LOGS, now

LEASE = 1.5
MARGIN = 20.0
"""Seconds after a fault within which every worker must make progress."""


class Running:
    """One process of a run."""

    def __init__(self, child: Child, process: str) -> None:
        self.child = child
        self.process = process
        self.since = now()
        self.until: int | None = None


class Stage:
    """What faults act upon."""

    def __init__(self, place: Place, namespace: str, directory: pathlib.Path, seed: int, hold: float) -> None:
        self.place = place
        self.namespace = namespace
        self.directory = directory
        self.logs = directory / "logs"
        self.logs.mkdir(exist_ok=True)
        self.chance = random.Random(seed)
        self.hold = hold
        self.workers: list[Running] = []
        self.past: list[Running] = []
        self.pushers: list[Running] = []
        self.faults: list[Fault] = []
        self._stack = ExitStack()
        self._tails: dict[pathlib.Path, int] = {}
        self._settled: dict[str, int] = {}
        self._first = 0
        self.rate = 0

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # ----------------------------------------------------------------------------------------------------- processes

    def spawn(self, role: str, *, crash: str = "", url: str | None = None, **options: Any) -> Running:
        """Start a process, and return when it runs."""
        arguments = [role, url or self.place.url, self.namespace, json.dumps(options)]
        env = {CRASH: crash, LOGS: str(self.logs)}
        child = self._stack.enter_context(processes.python("-m", "tests.torture.proof.program", *arguments, env=env))
        child.wait_for_output("process ", 30)
        name = child.output.split("process ", 1)[1].split()[0]
        return Running(child, name)

    def worker(self, *, crash: str = "", **options: Any) -> Running:
        """Start a worker; it is one of those that must make progress, unless it is to crash."""
        options["worker"] = {"lease": LEASE, **options.get("worker", {})}
        running = self.spawn("work", crash=crash, **options)
        if not crash:
            self.workers.append(running)
        return running

    def ready(self, running: Running) -> Running:
        running.child.wait_for_output("worker started", 30)
        running.since = now()
        return running

    def pusher(self, rate: int) -> Running:
        self.rate = rate
        running = self.spawn("push", rate=rate, first=self._first)
        self._first += 1_000_000
        self.pushers.append(running)
        return running

    def victim(self) -> Running:
        return self.chance.choice(self.workers)

    def gone(self, running: Running) -> None:
        """This worker has died, or was ended; another one takes its place."""
        running.until = now()
        self.workers.remove(running)
        self.past.append(running)
        self.ready(self.worker())

    def retire(self, running: Running) -> None:
        """End a worker that was there for a while."""
        running.until = now()
        assert running.child.stop(30) == 0, running.child.output[-3000:]
        self.workers.remove(running)
        self.past.append(running)

    def once(self, *jobs: list[Any]) -> list[str]:
        """Push these jobs, as ``[name, arguments]``, from a process of their own, and return their ids."""
        pushing = self.spawn("once", jobs=list(jobs))
        assert pushing.child.wait(40) == 0, pushing.child.output[-3000:]
        return pushing.child.output.rpartition("pushed: ")[2].split()

    def app(self) -> Tenure:
        return Tenure(self.place.direct, namespace=self.namespace)

    # ---------------------------------------------------------------------------------------------------------- facts

    def last(self, seconds: float | None = None) -> None:
        """Let something last."""
        threading.Event().wait(self.hold if seconds is None else seconds)

    def settled(self) -> dict[str, int]:
        """When each process last heard that a settlement was taken."""
        for path in self.logs.glob("work-*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._tails.get(path, 0))
                whole, _, _ = file.read().rpartition(b"\n")
            self._tails[path] = self._tails.get(path, 0) + (len(whole) + 1 if whole else 0)
            for line in whole.splitlines():
                if b'"settle"' in line and b'"phase":"ok"' in line:
                    self._settled[path.stem] = json.loads(line)["at"]
        return self._settled

    def told(self, *parts: bytes) -> bool:
        """Tell whether a worker's log has a line with all these parts."""
        for path in self.logs.glob("work-*.jsonl"):
            for line in path.read_bytes().splitlines():
                if all(part in line for part in parts):
                    return True
        return False

    def failures(self, since: int) -> int:
        """How many pushes have failed since then, or ended as unknown."""
        failed = 0
        for path in self.logs.glob("push-*.jsonl"):
            for line in path.read_bytes().splitlines():
                if b'"phase":"fail"' in line or b'"phase":"info"' in line:
                    failed += json.loads(line)["at"] >= since
        return failed

    def given_back(self, ids: Sequence[str]) -> bool:
        """Tell whether a worker has released one of these jobs."""
        return any(self.told(b'"settle"', b'"release"', job_id.encode()) for job_id in ids)

    def ended(self, ids: Sequence[str], timeout: float) -> None:
        """Return when the handlers of all these jobs have ended."""

        def all_ended() -> bool:
            return all(self.told(b'"effect"', b'"end"', job_id.encode()) for job_id in ids)

        eventually(all_ended, timeout, what="handlers end", every=0.1)

    def come_back(self, since: int) -> None:
        """Wait until every worker has made progress, or has had its time to: then the check says so."""
        by = since + int(MARGIN * 1e6) + 500_000
        eventually(lambda: self._all_since(since) or now() > by, MARGIN + 5, every=0.03)

    def _all_since(self, since: int) -> bool:
        settled = self.settled()
        return all(settled.get(worker.process, 0) > since for worker in self.workers)

    # ------------------------------------------------------------------------------------------------------- the end

    def drain(self) -> list[Dump]:
        """End the pushers, wait until nothing is left to do, and look."""
        for pusher in self.pushers:
            pusher.child.signal(signal.SIGTERM)
        for pusher in self.pushers:
            assert pusher.child.wait(45) == 0, pusher.child.output[-3000:]
        app = self.app()
        try:
            by = now() + int((30 + 10 * LEASE) * 1e6)

            def over() -> bool:
                left = [app.counts_sync(queue) for queue in QUEUES]
                return not any(one.ready + one.delayed + one.leased for one in left) or now() > by

            eventually(over, 90, every=0.05)
            for worker in self.workers:
                worker.until = now()
                assert worker.child.stop(30) == 0, worker.child.output[-3000:]
            return [
                replace(self.place.look(queue, counted(app.counts_sync(queue))), compositions=tallies(app, queue))
                for queue in QUEUES
            ]
        finally:
            app.close_sync()

    def events(self) -> Iterator[Event]:
        """All that was recorded."""
        for path in sorted(self.logs.glob("*.jsonl")):
            yield from read(path)
        for running in [*self.workers, *self.past]:
            yield Worker(running.process, running.since, running.until or now())
        yield from self.place.read(QUEUES)
        yield from self.faults

    def verdict(self, dumps: Sequence[Dump], terms: Terms) -> Verdict:
        history = History(terms)
        history.add(self.events())
        history.add(dumps)
        return history.verdict()


def tallies(app: Tenure, queue: str) -> dict[str, Tally]:
    """What the store says of the compositions of a queue."""
    found: dict[str, Tally] = {}
    cursor: str | None = None
    while True:
        page = app.operate.compositions.listed_sync(queue, limit=500, cursor=cursor)
        found |= {one.id: tally(one) for one in page.compositions}
        cursor = page.cursor
        if cursor is None:
            return found


@contextmanager
def effective(stage: Stage, name: str) -> Iterator["Proof"]:
    """Record a fault: when it was, and what shows it."""
    proof = Proof()
    began = now()
    yield proof
    stage.faults.append(Fault(name, began, now(), proof.text, proof.overlap, proof.forgets))
    with (stage.directory / "faults.jsonl").open("ab") as file:
        file.write(encoded(stage.faults[-1]))


class Proof:
    """What shows that a fault took effect."""

    def __init__(self) -> None:
        self.text = ""
        self.overlap: int | None = None
        self.forgets = False

    def shown(self, text: str, overlap: int | None = None) -> None:
        self.text = text
        self.overlap = overlap

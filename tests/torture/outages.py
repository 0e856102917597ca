"""The outages: what each does to a server, what it means to a push, and the verdict on a load that lived through it."""

import asyncio
import itertools
import json
import pathlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support import faults
from tests.support.processes import Child
from tests.support.proxy import Proxy
from tests.support.servers import Server
from tests.support.topologies import client
from tests.torture.steady import RATE

NOT_SENT = "ConnectionFailed"
UNKNOWN = "OutcomeUnknown"
AFTER = 10.0
"""Seconds after an outage within which every worker must make progress."""
CONNECTIONS = 6
"""What one worker keeps: to claim, to wait (on one or two), to settle, to renew, and to look for a restart."""
MOST_LINES = 20
"""Log lines of one worker about one outage: fewer than this."""


@dataclass
class Scene:
    """Where an outage takes place."""

    server: Server
    namespace: str
    hold: float
    proxy: Proxy | None = None

    @property
    def url(self) -> str:
        return self.server.url if self.proxy is None else self.proxy.url


@dataclass(frozen=True)
class Outage:
    """A state of the store, and what it means to a push that begins while it lasts."""

    name: str
    inflict: Callable[[Scene], AbstractContextManager[object]]
    means: frozenset[str] = frozenset()
    """How pushes fail meanwhile; some must, or the outage has not touched them. Empty: none may."""
    besides: frozenset[str] = frozenset()
    """How else they may fail, on the way into the outage and out of it."""
    queue: str | None = None
    """The only queue that it hits."""
    waits: bool = False
    """Pushes wait until it is over, and are stored then."""
    through_proxy: bool = False

    def __str__(self) -> str:
        return self.name


@contextmanager
def hung_up_on(scene: Scene) -> Iterator[object]:
    with faults.killed_connections(scene.server) as repeated:
        yield repeated
        assert repeated.effects > repeated.rounds, "the load's connections were among those that were ended"


@contextmanager
def without_scripts(scene: Scene) -> Iterator[object]:
    with faults.forgotten_scripts(scene.server) as repeated:
        yield repeated
        assert repeated.rounds >= scene.hold * 3


@contextmanager
def no_room(scene: Scene) -> Iterator[object]:
    """No new connections are taken, and those that were open are ended, or nobody would notice."""
    with closing(client(scene.server)) as control:
        theirs = [
            entry["id"] for entry in control.client_list(_type="normal") if entry["id"] != str(control.client_id())
        ]
        with faults.no_more_clients(scene.server):
            assert sum(control.client_kill_filter(_id=number) for number in theirs)
            yield None


@contextmanager
def wrong_type(scene: Scene) -> Iterator[object]:
    """A text stands where one queue's jobs should be. What was there comes back, unchanged: scripts write nothing."""
    key = f"{{{scene.namespace}:aside}}:jobs"
    away = f"{key}:away"
    move = "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end"
    with closing(client(scene.server)) as control:
        control.eval(f"{move} redis.call('SET', KEYS[1], 'not a hash')", 2, key, away)
        try:
            yield None
            assert control.get(key) == "not a hash"
        finally:
            control.eval(f"redis.call('DEL', KEYS[2]) {move}", 2, away, key)


def lost_on_the_way(scene: Scene) -> AbstractContextManager[object]:
    assert scene.proxy is not None
    return faults.half_open(scene.proxy)


def refused(name: str, code: str, inflict: Callable[[Scene], AbstractContextManager[object]], **more: Any) -> Outage:
    return Outage(name, inflict, means=frozenset({code}), **more)


UNREACHABLE = frozenset({NOT_SENT})
OUTAGES: Sequence[Outage] = (
    Outage("killed", lambda scene: faults.killed(scene.server), means=UNREACHABLE, besides=frozenset({"LOADING"})),
    Outage("no-room", no_room, means=UNREACHABLE),
    Outage("scripts-forgotten", without_scripts),
    Outage("hung-up-on", hung_up_on, besides=UNREACHABLE),
    Outage("half-open", lost_on_the_way, waits=True, besides=UNREACHABLE, through_proxy=True),
    refused("read-only", "READONLY", lambda scene: faults.read_only(scene.server)),
    refused("loading", "LOADING", lambda scene: faults.loading(scene.server, hold=scene.hold + 3), besides=UNREACHABLE),
    refused("out-of-memory", "OOM", lambda scene: faults.out_of_memory(scene.server)),
    refused("failing-saves", "MISCONF", lambda scene: faults.failing_saves(scene.server)),
    refused("busy", "BUSY", lambda scene: faults.busy(scene.server)),
    refused("forbidden", "NOPERM", lambda scene: faults.forbidden(scene.server, "evalsha", "eval")),
    refused("wrong-type", "WRONGTYPE", wrong_type, queue="aside"),
)


def named(name: str) -> Outage:
    return next(outage for outage in OUTAGES if outage.name == name)


# ---------------------------------------------------------------------------------------------------------- the verdict


class Facts:
    """The journal, read as it grows."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._read: list[dict[str, Any]] = []
        self._offset = 0

    def read(self, what: str | None = None) -> list[dict[str, Any]]:
        """Return all facts so far, or those of one kind."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._offset)
                # A line that is being written right now is not there yet.
                whole, _, _ = file.read().rpartition(b"\n")
            self._read += [json.loads(line) for line in whole.splitlines()]
            self._offset += len(whole) + 1 if whole else 0
        return [line for line in self._read if what in {None, line["what"]}]


@dataclass
class History:
    """What happened: the journal of all processes, and the times of the outage."""

    lines: list[dict[str, Any]]
    begun: float
    ended: float
    workers: list[int]
    of: dict[str, list[dict[str, Any]]] = field(init=False)

    def __post_init__(self) -> None:
        self.of = {}
        for line in self.lines:
            self.of.setdefault(line["what"], []).append(line)

    def ids(self, what: str) -> set[str]:
        return {line["id"] for line in self.of.get(what, ())}

    def pushed(self, *, ok: bool) -> set[str]:
        return {
            line["id"] for line in self.of["push"] if (line["outcome"] == "ok") is ok and line["outcome"] != UNKNOWN
        }

    def during(self, outage: Outage) -> list[dict[str, Any]]:
        """The pushes that began while the outage lasted, on the queues that it hit."""
        return [
            line for line in self.of["push"]
            if self.begun <= line["began"] <= self.ended and outage.queue in {None, line["queue"]}
        ]  # fmt: skip

    def seconds_to_progress(self) -> dict[int, float | None]:
        """How long after the outage each worker first brought a job to its end."""
        ends: dict[int, float | None] = dict.fromkeys(self.workers)
        for line in self.of.get("settled", ()):
            if line["at"] >= self.ended and ends.get(line["pid"], 0.0) is None:
                ends[line["pid"]] = line["at"] - self.ended
        return ends


def check_that_it_was_felt(history: History, outage: Outage) -> Counter[str]:
    """An outage that nobody felt proves nothing; one that means something else than is said of it is a defect."""
    pushes = history.during(outage)
    seconds = history.ended - history.begun
    assert len(pushes) >= seconds * RATE / (4 if outage.queue else 2), "unknown: too few operations overlapped"
    outcomes = Counter(line["outcome"] if line["at"] < history.ended else "waited" for line in pushes)
    if outage.means or outage.waits:
        # Pushes of one moment go together; when a call is lost, those behind it wait for its repeat.
        touched = outcomes["waited"] + sum(outcomes[kind] for kind in outage.means)
        assert touched >= len(pushes) / 2, f"unknown: the outage touched too few operations, {outcomes}"
    everywhere = {line["outcome"] for line in history.of["push"]} - {"ok"}
    assert everywhere <= outage.means | outage.besides, f"pushes failed otherwise, {everywhere}"
    return outcomes


def check_other_queues(history: History, outage: Outage) -> None:
    """What befalls one queue is felt by no other: its jobs are settled meanwhile as before."""
    if outage.queue is None:
        return
    others = {line["id"] for line in history.of["push"] if line["queue"] != outage.queue}
    settled = [line for line in history.of["settled"] if history.begun <= line["at"] <= history.ended]
    done = sum(line["id"] in others for line in settled)
    assert done >= (history.ended - history.begun) * RATE / 4, f"{done} jobs of other queues were settled meanwhile"


def check_pushes(history: History) -> None:
    """What was accepted has run, what definitely failed has not, and nothing ran that nobody pushed."""
    ended, started = history.ids("end"), history.ids("start")
    accepted, failed = history.pushed(ok=True), history.pushed(ok=False)
    lost = accepted - ended
    assert not lost, f"{len(lost)} accepted jobs are lost, {sorted(lost)[:3]}"
    ghosts = failed & started
    assert not ghosts, f"{len(ghosts)} pushes that had failed have run, {sorted(ghosts)[:3]}"
    assert started <= {line["id"] for line in history.of["push"]}


def check_settlements(history: History) -> None:
    """No lease settled a job that had gone to another one, and no job was handed out after it was settled."""
    taken: dict[str, list[int]] = {}
    for line in history.of["settled"]:
        taken.setdefault(line["id"], []).append(line["fence"])
    starts: dict[str, list[dict[str, Any]]] = {}
    for line in history.of["start"]:
        starts.setdefault(line["id"], []).append(line)
    for identity, fences in taken.items():
        assert len(fences) == 1, f"{identity} was settled twice"
        assert fences[0] == max(line["fence"] for line in starts[identity]), f"{identity} was settled by a stale lease"
    stale = {(line["id"], line["fence"]) for line in history.of.get("stale", ())}
    for identity, begun in starts.items():
        for earlier, later in itertools.pairwise(sorted(begun, key=lambda line: line["fence"])):
            assert later["fence"] > earlier["fence"], f"{identity} was handed out twice under one fence"
            assert later["attempt"] >= earlier["attempt"]
    assert not stale & {(identity, fence) for identity, fences in taken.items() for fence in fences}


def log_lines(child: Child) -> list[str]:
    return child.output.splitlines()


def check_worker(child: Child, before: int, seconds: float | None) -> int:
    """It lives, works, and has said little; return how many lines."""
    said = log_lines(child)[before:]
    assert child.exit_code is None, "\n".join(said[-30:])
    assert seconds is not None, "no progress after the outage:\n" + "\n".join(said[-30:])
    assert seconds <= AFTER
    assert len(said) < MOST_LINES, "\n".join(said)
    return len(said)


def connections(server: Server) -> int:
    """How many clients are connected, but for the one that asks."""
    with closing(client(server)) as control:
        return len(control.client_list(_type="normal")) - 1


def now() -> float:
    """The clock of all facts: one for all processes of a host."""
    return time.monotonic()


def last(seconds: float) -> None:
    """Let an outage last."""
    threading.Event().wait(seconds)


class Counting(Proxy):
    """A proxy that notes when somebody connects."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.attempts: list[float] = []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.attempts.append(now())
        await super()._serve(reader, writer)


def most_within(times: Sequence[float], seconds: float) -> int:
    """Return how many of these moments lie in one window at most."""
    return max(sum(first <= at < first + seconds for at in times) for first in times)

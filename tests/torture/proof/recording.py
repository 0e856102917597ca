"""The clients' side of a recorded run: what was asked of the driver, what it answered, what handlers did.

A process has a log of its own, and writes each line at once: what it wrote before a SIGKILL is there.
"""

import asyncio
import os
import pathlib
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Literal

import msgspec

from tenure.compositions import NewComposition, Node
from tenure.errors import ConnectionFailed, StoreRefused
from tenure.queue import Ack, Claimed, Drop, Fail, Lease, Push, Pushed, Release, Renewal, SetAside, Settled, Settlement
from tenure.testing.history import Call, Effect, Event, Subject, encoded
from tests.torture.proof.plans import Plans

VERBS: dict[type, str] = {Ack: "ack", Release: "release", Fail: "fail", Drop: "drop", SetAside: "aside"}
Point = Literal["after-claim", "before-handler", "mid-handler", "after-handler", "settle-sent", "settle-answered"]
POINTS: tuple[Point, ...] = (
    "after-claim",
    "before-handler",
    "mid-handler",
    "after-handler",
    "settle-sent",
    "settle-answered",
)
LOGS = "TENURE_PROOF_LOGS"
"""Names the directory of the logs."""
CRASH = "TENURE_PROOF_CRASH"
"""Names a point of the worker, and how often it is passed before the process dies there: ``mid-handler:3``."""


def now() -> int:
    return time.time_ns() // 1000


class Log:
    """The log of this process."""

    def __init__(self, directory: pathlib.Path, role: str) -> None:
        self.process = f"{role}-{os.getpid()}-{secrets.token_hex(2)}"
        self._pid = os.getpid()
        self._numbers = count(1)
        self.path = directory / f"{self.process}.jsonl"
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        point, _, times = os.environ.get(CRASH, "").partition(":")
        self._point, self._left = point, int(times or 0)

    def write(self, event: Event) -> None:
        if os.getpid() == self._pid:  # a child of a fork is not this process
            os.write(self._file, encoded(event))

    def passing(self, point: Point) -> None:
        """Die here, if this is the point, and it is time."""
        if point == self._point:
            self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def dies_at(self, point: Point) -> bool:
        return point == self._point and self._left <= 1

    def effect(self, what: Literal["start", "end"], lease: Any, attempt: int) -> None:
        self.write(Effect(self.process, now(), what, lease.queue, lease.id, lease.fence, attempt))

    @contextmanager
    def call(self, operation: Any, subjects: Sequence[Subject]) -> Iterator["Answer"]:
        """Write that a call begins, and what became of it."""
        answer = Answer(self, operation, tuple(subjects))
        answer.write("invoke")
        try:
            yield answer
        except (ConnectionFailed, StoreRefused) as error:
            # Of a push these say that nothing was stored; other calls may have done a part.
            answer.write("fail" if operation == "push" else "info", type(error).__name__)
            raise
        except BaseException as error:
            answer.write("info", type(error).__name__)
            raise
        answer.write("ok")


class Answer:
    """A call under way."""

    def __init__(self, log: Log, operation: Any, subjects: tuple[Subject, ...]) -> None:
        self.subjects = subjects
        self._log = log
        self._operation = operation
        self._number = next(log._numbers)

    def told(self, outcomes: Sequence[str]) -> None:
        """Note what the driver told of each job."""
        told = zip(self.subjects, outcomes, strict=True)
        self.subjects = tuple(msgspec.structs.replace(one, outcome=outcome) for one, outcome in told)

    def pushed(self, jobs: Sequence[Push], pushed: Sequence[Pushed]) -> None:
        """Note what became of each push, and who held it."""
        self.told([one.outcome for one in pushed])
        told = zip(self.subjects, jobs, pushed, strict=True)
        self.subjects = tuple(
            msgspec.structs.replace(one, holder=found.id if job.unique and found.outcome == "held" else "")
            for one, job, found in told
        )

    def write(self, phase: Any, error: str = "") -> None:
        self._log.write(Call(self._log.process, self._number, self._operation, phase, now(), self.subjects, error))


def pushes(jobs: Sequence[Push]) -> list[Subject]:
    return [Subject(job.queue, job.id, unique=job.unique) for job in jobs]


def held(leases: Sequence[Lease]) -> list[Subject]:
    return [Subject(lease.queue, lease.id, lease.token) for lease in leases]


def recorded(base: Any, log: Log, **options: Any) -> Any:
    """Return a driver class that writes its calls down; ``options`` are given to each that is made."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        base.__init__(self, *args, **{**kwargs, **options})

    return type("Recorded", (Recorded, base), {"log": log, "plans": Plans(), "__init__": init})


class Recorded:
    """Stands before a driver."""

    log: Log
    plans: Plans

    async def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        with self.log.call("push", pushes(jobs)) as answer:
            pushed: Sequence[Pushed] = await self._next.push(jobs)
            answer.pushed(jobs, pushed)
        return pushed

    async def prepare(self, composition: NewComposition) -> bool:
        self.plans.begin(composition)
        prepared: bool = await self._next.prepare(composition)
        return prepared

    async def add(self, home: str, composition_id: str, nodes: Sequence[Node]) -> None:
        self.plans.add(home, composition_id, nodes)
        await self._next.add(home, composition_id, nodes)

    async def start(self, home: str, composition_id: str) -> None:
        self.log.write(self.plans.end(home, composition_id))
        with self.log.call("start", [Subject(home, composition_id)]):
            await self._next.start(home, composition_id)

    async def claim(self, *args: Any, **kwargs: Any) -> Claimed:
        claimed: Claimed = await self._next.claim(*args, **kwargs)
        if claimed.leases:
            with self.log.call("claim", held(claimed.leases)):
                pass
            self.log.passing("after-claim")
        return claimed

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settled]:
        subjects = [Subject(one.lease.queue, one.lease.id, one.lease.token, VERBS[type(one)]) for one in settlements]
        with self.log.call("settle", subjects) as answer:
            if settlements and self.log.dies_at("settle-sent"):
                await self._die_while(self._next.settle(settlements))
            settled: Sequence[Settled] = await self._next.settle(settlements)
            answer.told([one.value for one in settled])
        if settlements:
            self.log.passing("settle-sent")
            self.log.passing("settle-answered")
        return settled

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        with self.log.call("renew", held(leases)) as answer:
            renewed: Sequence[Renewal] = await self._next.renew(leases)
            answer.told([one.value for one in renewed])
        return renewed

    def pusher(self) -> Any:
        return RecordedPusher(self._next.pusher(), self.log)

    def keeper(self) -> Any:
        return RecordedKeeper(self._next.keeper(), self.log)

    @property
    def _next(self) -> Any:
        return super()

    async def _die_while(self, sending: Any) -> None:
        """Let it be sent, and do not live to hear the answer."""
        task = asyncio.ensure_future(sending)
        for _ in range(8):
            await asyncio.sleep(0)
        self.log.passing("settle-sent")
        await task


class RecordedPusher:
    """A blocking pusher that writes its calls down."""

    def __init__(self, pusher: Any, log: Log) -> None:
        self._pusher = pusher
        self._log = log

    def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        with self._log.call("push", pushes(jobs)) as answer:
            pushed: Sequence[Pushed] = self._pusher.push(jobs)
            answer.pushed(jobs, pushed)
        return pushed

    def close(self) -> None:
        self._pusher.close()


class RecordedKeeper:
    """A keeper that writes its calls down."""

    def __init__(self, keeper: Any, log: Log) -> None:
        self._keeper = keeper
        self._log = log

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        with self._log.call("renew", held(leases)) as answer:
            renewed: Sequence[Renewal] = self._keeper.renew(leases)
            answer.told([one.value for one in renewed])
        return renewed

    def close(self) -> None:
        self._keeper.close()

"""The leases that this process holds, from the claim to the store's answer."""

import asyncio
import threading
from enum import IntEnum
from typing import Final

from tenure.context import StopFlag
from tenure.effects import Effects
from tenure.queue import Lease
from tenure.worker.work import Work


class Stage(IntEnum):
    """How far a held lease has come."""

    AHEAD = 0
    """Claimed ahead: it waits for a slot."""
    RUNNING = 1
    SETTLING = 2
    """Its outcome is known, and on its way to the store."""
    ENDED = 3


class Stop(IntEnum):
    """Why a running handler was told to stop."""

    TIMEOUT = 1
    CANCELLED = 2
    """Somebody asked for it."""
    LOST = 3
    """The store said that the lease is no longer ours."""
    LAPSED = 4
    """No renewal has succeeded in time: the lease may be ours or not."""
    SHUTDOWN = 5


_MISSING: Final = object()


class Held:
    """One held lease and what this process knows about it."""

    __slots__ = (
        "abandoned",
        "correlation",
        "deadline",
        "effects",
        "flag",
        "lease",
        "name",
        "renew_until",
        "seconds",
        "since",
        "stage",
        "stop",
        "task",
        "timer",
        "work",
    )

    def __init__(self, lease: Lease, now: float) -> None:
        self.lease: Lease = lease
        self.name: str = ""
        self.correlation: str | None = None
        """The correlation id that it carries, once it was opened."""
        self.stage: Stage = Stage.AHEAD
        self.since: float = now
        """When it entered its stage; monotonic."""
        self.deadline: float = lease.deadline
        """Until when it is ours for certain; each successful renewal moves it."""
        self.renew_until: float | None = None
        """From when on the keeper leaves it alone: a timeout bounds its lease, also when the loop cannot act on it."""
        self.seconds: float = 0.0
        """How long its handler ran."""
        self.stop: Stop | None = None
        self.flag: StopFlag = StopFlag()
        """What its handler sees as ``current().cancelled``."""
        self.effects: Effects = Effects.NONE
        """How far the handler's ``current().transaction()`` has come."""
        self.abandoned: bool = False
        self.work: Work | None = None
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def tell(self) -> None:
        """Let its handler see that it should stop. Safe from any thread."""
        self.flag.set()

    def enter(self, stage: Stage, now: float) -> None:
        """Go on to the next stage."""
        self.stage = stage
        self.since = now


class HeldLeases:
    """All held leases. The loop writes, the keeper's thread reads snapshots."""

    def __init__(self) -> None:
        # By object: one claim gives all its leases the same token, and a job may be held twice, once of them in vain.
        self._held: dict[Held, object] = {}
        self._lock = threading.Lock()
        self._suspects = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def suspect(self) -> bool:
        """Whether one of them is one crash short of its limit (P4: at most one a process)."""
        return self._suspects > 0

    def add(self, held: Held) -> None:
        """Hold a lease."""
        with self._lock:
            self._held[held] = None
        self._suspects += held.lease.suspect

    def remove(self, held: Held) -> None:
        """Hold it no longer; removing it twice changes nothing."""
        with self._lock:
            known = self._held.pop(held, _MISSING)
        if known is not _MISSING:
            self._suspects -= held.lease.suspect

    def snapshot(self) -> list[Held]:
        """Return all of them, as they are now."""
        with self._lock:
            return list(self._held)

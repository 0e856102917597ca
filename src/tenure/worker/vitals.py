"""How a worker fares, told from any thread: what probes and metrics read while the event loop may stand still.

Reading never waits for the loop. All of it is single numbers, each of which Python reads in one step.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from tenure.worker.claims import Claims
from tenure.worker.held import HeldLeases
from tenure.worker.keeper import KeeperThread
from tenure.worker.line import Line
from tenure.worker.settler import Settler
from tenure.worker.stall import Judged
from tenure.worker.watch import Heartbeat

LIVE_SECONDS: Final = 60.0
"""Seconds without a turn of the event loop after which a worker counts as dead. Long, because whatever restarts it ends
its jobs; its leases are renewed meanwhile."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a worker that are looked at."""

    line: Line
    leases: HeldLeases
    claims: Claims
    settler: Settler
    keeper: KeeperThread
    heartbeat: Heartbeat
    loops: Sequence[Judged]


class Trouble(msgspec.Struct, frozen=True):
    """What became of one kind of store call so far."""

    failed: int
    """Calls that failed."""
    outages: int
    """How often they began to fail."""


class Vitals:
    """The signs of life of one worker. Before it starts and after its end they are those of one that does nothing."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency: int = concurrency
        """Jobs that may run at the same time."""
        self._parts: Parts | None = None

    def attach(self, parts: Parts) -> None:
        """Look at these from now on."""
        self._parts = parts

    @property
    def illness(self) -> str:
        """Why it counts as dead, for people; empty while it lives."""
        if self._parts is None:
            return ""
        if (age := self._parts.heartbeat.age) > LIVE_SECONDS:
            return f"the event loop has not turned for {age:.0f} s"
        doubtful = next((loop for loop in self._parts.loops if loop.doubtful), None)
        return "" if doubtful is None else f"{doubtful.failing} for {doubtful.still:.0f} s"

    @property
    def ready(self) -> bool:
        """Whether the last claim that was due succeeded."""
        return self._parts is not None and self._parts.claims.ready

    @property
    def running(self) -> int:
        """Jobs that run."""
        return 0 if self._parts is None else self._parts.line.running

    @property
    def finished(self) -> int:
        """Jobs that have left their slot so far."""
        return 0 if self._parts is None else self._parts.line.finished

    @property
    def held(self) -> int:
        """Leases that it holds: those of running jobs, and those claimed ahead or being settled."""
        return 0 if self._parts is None else len(self._parts.leases)

    @property
    def claims(self) -> int:
        """Claims so far, failed ones included."""
        return 0 if self._parts is None else self._parts.claims.calls

    @property
    def lag(self) -> float:
        """Seconds by which the event loop was late the last time it was looked at, or is late now."""
        return 0.0 if self._parts is None else max(0.0, self._parts.heartbeat.lag)

    @property
    def late(self) -> float:
        """Seconds by which the event loop was late, all together."""
        return 0.0 if self._parts is None else self._parts.heartbeat.late

    @property
    def troubles(self) -> Mapping[str, Trouble]:
        """What became of each kind of store call: ``claim``, ``renew`` and ``settle``."""
        parts = self._parts
        if parts is None:
            return dict.fromkeys(("claim", "renew", "settle"), Trouble(0, 0))
        renewing, settling = parts.keeper.outage, parts.settler.outage
        return {
            "claim": Trouble(parts.claims.failed, parts.claims.outages),
            "renew": Trouble(renewing.failed_calls, renewing.begun),
            "settle": Trouble(settling.failed_calls, settling.begun),
        }

"""Applications with scheduled jobs, on a store in memory whose clock can be moved."""

import time

from tenure import Tenure
from tenure.drivers.memory import MemoryQueue
from tenure.queue import Lease, Queue


class MovedClock:
    """The machine's clock, moved."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def time(self) -> float:
        return time.time() + self.ahead


def plain() -> None:
    """Do nothing."""


def greet(name: str, *, times: int = 1) -> None:
    """Greet."""


async def waits() -> None:
    """Wait."""


def application() -> Tenure:
    """Return a new application in memory, without jobs."""
    return Tenure("memory://")


def on_clock(app: Tenure) -> MovedClock:
    """Give an application's store a clock that can be moved, before its first use."""
    clock = MovedClock()
    queue = app.queue()
    assert isinstance(queue, MemoryQueue)
    MemoryQueue.__init__(queue, clock=clock)
    return clock


async def taken(queue: Queue, name: str = "default") -> list[Lease]:
    """Lease all that is ready."""
    leases: list[Lease] = []
    while got := (await queue.claim([name], limit=100, lease=60, wait=0)).leases:
        leases += got
    return leases

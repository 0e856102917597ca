"""The blocking side: a keeper and a pusher, for any thread."""

from collections.abc import Callable, Sequence

from tenure.drivers.memory.store import Store
from tenure.queue import Lease, Push, Pushed, Renewal


class MemoryKeeper:
    """Renews leases from any thread."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        return self._store().renew(leases)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class MemoryPusher:
    """Pushes from any thread."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store the jobs: see ``Queue.push``."""
        return self._store().push(jobs)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

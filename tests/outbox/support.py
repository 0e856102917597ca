"""What the tests of the outbox share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tenure.outbox import Relay
from tenure.portal import blocking
from tenure.queue import Lease
from tests.transactions.support import QUEUE, Business, numbers, pushing


@dataclass(frozen=True)
class Scene(Business):
    """A business in a database that holds the outbox, and an application whose jobs are elsewhere."""

    def push(self, number: int, **options: Any) -> Any:
        return self.app.push_sync(pushing(self.app, number, **options))

    def push_many(self, numbers: Sequence[int], *, transaction: Any, **options: Any) -> Any:
        calls = [pushing(self.app, number, **options) for number in numbers]
        return self.app.push_many_sync(calls, transaction=transaction)

    def relay(self) -> int:
        """Move everything that waits, and return how many jobs that were."""
        return blocking("relay", lambda: Relay(self.app).once())

    def lag(self) -> dict[tuple[str, str], int]:
        return {(one.connection, one.queue): one.jobs for one in self.app.outbox_lag_sync()}

    def leases(self, queue: str = QUEUE, limit: int = 1000) -> Sequence[Lease]:
        """Take all ready jobs of a queue."""

        async def claim() -> Sequence[Lease]:
            return (await self.app.queue().claim([queue], limit=limit, lease=60, wait=0)).leases

        return blocking("claim", claim)

    def moved(self, queue: str = QUEUE) -> list[int]:
        """Take all ready jobs of a queue, and return their numbers in order."""
        return numbers(self.leases(queue))

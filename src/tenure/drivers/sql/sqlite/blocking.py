"""The blocking side: a keeper and a pusher, each with a connection of its own."""

from collections.abc import Sequence

from tenure.drivers.sql.sqlite.parts import Part, outcomes, parts
from tenure.drivers.sql.sqlite.session import Session
from tenure.drivers.sql.sqlite.transitions import pushing, settling
from tenure.errors import StoreError
from tenure.queue import Lease, Push, Pushed, Renewal


class SqliteKeeper:
    """Renews leases from a thread of its own; a claim that waits for a locked file does not hold it up."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        if not leases:
            return []
        renewals: list[Renewal]
        (renewals,) = self._session.write([lambda transaction: settling.renew(transaction, leases)], durable=False)
        return renewals

    def close(self) -> None:
        """Close the connection; idempotent, and safe before first use."""
        self._session.close()


class SqlitePusher:
    """Pushes from threads without an event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store the jobs: see ``Queue.push``."""
        pushed: list[Pushed] = []
        for part in parts(jobs):
            try:
                pushed += self._push(part)
            except StoreError as error:
                return outcomes(jobs, pushed, part, error)
        return pushed

    def _push(self, part: Part) -> list[Pushed]:
        pushed: list[Pushed]
        (pushed,) = self._session.write([lambda transaction: pushing.push(transaction, part)], durable=True)
        return pushed

    def close(self) -> None:
        """Close the connection; idempotent, and safe before first use."""
        self._session.close()

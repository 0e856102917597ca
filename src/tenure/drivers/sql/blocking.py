"""The blocking side: a keeper and a pusher, each with a connection of its own."""

from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

from tenure.drivers.sql.engine import Session
from tenure.drivers.sql.parts import Part, outcomes, parts
from tenure.drivers.sql.transitions import Transitions
from tenure.errors import StoreError
from tenure.queue import Lease, Push, Pushed, Renewal

Tx = TypeVar("Tx")


class SqlKeeper(Generic[Tx]):
    """Renews leases from a thread of its own; a claim that waits for a lock does not hold it up."""

    def __init__(self, session: Session[Tx], transitions: Transitions[Tx]) -> None:
        self._session = session
        self._transitions = transitions

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order. Never acquires."""
        if not leases:
            return []
        renewals: list[Renewal]
        (renewals,) = self._session.write([partial(self._transitions.renew, leases=leases)], durable=False)
        return renewals

    def close(self) -> None:
        """Close the connection; idempotent, and safe before first use."""
        self._session.close()


class SqlPusher(Generic[Tx]):
    """Pushes from threads without an event loop."""

    def __init__(self, session: Session[Tx], transitions: Transitions[Tx]) -> None:
        self._session = session
        self._transitions = transitions

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
        (pushed,) = self._session.write([partial(self._transitions.push, jobs=part)], durable=True)
        return pushed

    def close(self) -> None:
        """Close the connection; idempotent, and safe before first use."""
        self._session.close()

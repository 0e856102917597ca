"""Calls whose numbers somebody else keeps: how the relay of an outbox pushes, so that a repeat changes nothing."""

from collections.abc import Sequence
from typing import Protocol

from tenure.queue import Push, Pushed


class Forgotten(Exception):
    """The store has no record that the call could follow; nothing was written.

    It was emptied, restored, or failed over, or the caller's own record is older than the store's.
    """

    def __init__(self) -> None:
        super().__init__("the store has no record that this call could follow; nothing was written")


class Relays(Protocol):
    """A driver that stores jobs by calls which the caller numbers."""

    async def push_numbered(self, client: str, number: int, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store jobs of one queue and one class of durability by the client's call of that number, once (P1).

        Numbers begin with 1 and rise. The last number again changes nothing, and is answered for all the same: the
        store's record of it does not expire, so that a repeat is harmless after days too. At most 500 jobs, or 1 MiB
        but for a single job. Raises ``Forgotten`` for a lower number, and for one above 1 of a client that the store
        does not know; ``StoreError`` as ``Queue.push`` does, ``DurabilityNotReached`` among its outcomes.
        """
        ...

"""Renewals: each lease by its own length, each answer in its place. Does no I/O."""

from collections.abc import Sequence

from tenure.drivers.redis import record
from tenure.errors import StoreError
from tenure.queue import Lease, Renewal

MOST = 1000
"""How many leases one call renews at most."""

_LETTERS = {"h": Renewal.HELD, "c": Renewal.CANCEL_REQUESTED, "l": Renewal.LOST}


class Renewals:
    """One call of ``renew``: its parts by queue, and the answers as they come in."""

    def __init__(self, leases: Sequence[Lease]) -> None:
        self._answers = [Renewal.UNKNOWN] * len(leases)
        self._heard = False
        self._error: StoreError | None = None
        self.parts: list[tuple[str, list[int], list[str]]] = []
        """Queue, places, members."""
        open_parts: dict[str, tuple[str, list[int], list[str]]] = {}
        for place, lease in enumerate(leases):
            part = open_parts.get(lease.queue)
            if part is None or len(part[1]) >= MOST:
                part = open_parts[lease.queue] = (lease.queue, [], [])
                self.parts.append(part)
            part[1].append(place)
            part[2].append(record.member(lease))

    def answered(self, places: list[int], letters: bytes) -> None:
        """Take a part's answer: '' when all are held, else a letter a lease."""
        self._heard = True
        for place, letter in zip(places, letters.decode() or "h" * len(places), strict=True):
            self._answers[place] = _LETTERS[letter]

    def failed(self, error: StoreError) -> None:
        """Take a part's error: the node of one queue may be away while those of the others are not."""
        self._error = self._error or error

    def result(self) -> list[Renewal]:
        """Return every lease's answer; raises the first error when no part was answered."""
        if self._error is not None and not self._heard:
            raise self._error
        return self._answers

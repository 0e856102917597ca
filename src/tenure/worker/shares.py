"""In which order a claim asks its queues: as they are listed, or so that each gets its share.

Shares are counted by what a queue really served, never by its turn. Each queue has a clock, which a job of it moves on
by one over its weight; the queue whose clock is furthest behind is asked first. A queue without jobs keeps no credit:
its clock follows the others', so that it is asked first when it has one, and cannot make up for the time that it was
empty. This is start-time fair queueing (Goyal, Vin and Cheng, 1996), in batches.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from tenure.queue import Lease


class Order(Protocol):
    """Decides the order of one claim's queues, and how much of its room the claim may fill."""

    def order(self, queues: Sequence[str]) -> tuple[str, ...]:
        """Return these queues, the one to be asked first in front."""
        ...

    def most(self, queues: Sequence[str], room: int) -> int:
        """Return how many jobs a claim of these, in this order, may bring: 1 to ``room``."""
        ...

    def took(self, queues: Sequence[str], most: int, leases: Sequence[Lease]) -> None:
        """Take note of what a claim of at most so many brought."""
        ...


class Listed:
    """Strict order: a queue is served when those before it are empty."""

    def order(self, queues: Sequence[str]) -> tuple[str, ...]:
        """Return them as they are listed."""
        return tuple(queues)

    def most(self, queues: Sequence[str], room: int) -> int:  # noqa: ARG002 - all of it, whatever the queues
        """Return all the room."""
        return room

    def took(self, queues: Sequence[str], most: int, leases: Sequence[Lease]) -> None:
        """Remember nothing."""


class Shares:
    """Weighted order."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        # Whole numbers, so that clocks which should be equal are: an hour of theirs is divisible by every weight.
        self._hour = math.lcm(*weights.values())
        self._weights = dict(weights)
        self._clocks = dict.fromkeys(weights, 0)
        self._now = 0
        """The clock of the queue that was served last, when it was."""
        self._busy = set(weights)
        """Queues that may have more: nothing is known yet, or the last claim stopped at them."""

    def order(self, queues: Sequence[str]) -> tuple[str, ...]:
        """Return them by their clocks; of equal ones, as they are listed."""
        return tuple(sorted(queues, key=self._clocks.__getitem__))

    def most(self, queues: Sequence[str], room: int) -> int:
        """Return the share of the first queue that may have more; the next claim brings the others theirs.

        It is what lets all of those reach the same clock, were the room filled.
        """
        busy = [queue for queue in queues if queue in self._busy]
        if not busy:
            return room
        weight = credit = 0
        first = self._clocks[busy[0]]
        for queue in busy:
            behind = self._clocks[queue] - first
            if behind * weight - credit >= room * self._hour:
                break  # it is so far ahead that nothing of this room is for it
            weight += self._weights[queue]
            credit += behind * self._weights[queue]
        share = -(-(room * self._hour + credit) * self._weights[busy[0]] // (weight * self._hour))
        return max(1, min(share, room))

    def took(self, queues: Sequence[str], most: int, leases: Sequence[Lease]) -> None:
        """Move on the clocks of those that served, and take the credit of those that could have and did not."""
        served = Counter(lease.queue for lease in leases)
        if served:
            self._now = max(self._now, min(self._clocks[queue] for queue in served))
        for queue, jobs in served.items():
            self._clocks[queue] += jobs * self._hour // self._weights[queue]
        for queue, clock in self._clocks.items():
            self._clocks[queue] = max(clock, self._now)
        full = len(leases) >= most
        for queue in queues:
            self._busy.discard(queue)
            left = served.pop(queue, 0)
            if full and left and not served:
                self._busy.add(queue)  # and those behind it were not asked
                return


def ordering(weights: Mapping[str, int] | None) -> Order:
    """Return the shares of these weights, or strict order where there are none."""
    return Listed() if weights is None else Shares(weights)

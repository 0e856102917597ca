"""Which queues the next claim asks: all of them, unless some fail.

A claim asks several queues in one call, and one queue can fail it: a key of another type, a right that is missing for
that queue, a node of a cluster that is away. Its neighbours must not suffer for it. So after a failure the queues are
asked one by one, which also tells when the store is back; those that still fail are left out and tried again by
themselves, the others go on together.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.errors import StoreError
from tenure.outage import Outage


class Asked(NamedTuple):
    """What a claim is to ask."""

    queues: tuple[str, ...]
    wait: float
    """Seconds that it may wait."""
    whole: bool
    """It asks all queues, so that an empty answer means that nothing is there."""


class _Sick:
    """A queue that fails alone."""

    def __init__(self, queue: str) -> None:
        self.outage = Outage(f"claiming jobs of queue {queue}")
        self.again = 0.0


class Rota:
    """The queues of one worker, and how each of them fares."""

    def __init__(self, queues: Sequence[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._queues = tuple(queues)
        self._monotonic = monotonic
        self._outage = Outage("claiming jobs")
        self._turn = 0
        self._doubtful: list[str] = []
        """Known to have been in a call that failed, and not asked since."""
        self._sick: dict[str, _Sick] = {}
        self.outages: int = 0
        """How often claims began to fail, of one queue or of all."""

    @property
    def failing(self) -> bool:
        """Whether no queue is known to work."""
        return self._outage.going_on

    def next(self, wait: float) -> Asked:
        """Return what the next claim asks; ``wait`` is how long it may wait at most."""
        if len(self._queues) > 1:
            alone = self._alone()
            if alone is not None:
                return Asked((alone,), 0.0, whole=False)
        if not self._sick:
            return Asked(self._queues, wait, whole=True)
        well = tuple(queue for queue in self._queues if queue not in self._sick)
        until = min(sick.again for sick in self._sick.values()) - self._monotonic()
        return Asked(well, max(0.0, min(wait, until)), whole=False)

    def _alone(self) -> str | None:
        if self._outage.going_on:
            # One call a try, as for one queue; another one each time, so that a sick one hides nobody's recovery.
            self._turn = (self._turn + 1) % len(self._queues)
            return self._queues[self._turn]
        if self._doubtful:
            return self._doubtful[0]
        now = self._monotonic()
        return next((queue for queue, sick in self._sick.items() if sick.again <= now), None)

    def answered(self, queues: Sequence[str]) -> None:
        """Take note that a claim of these succeeded."""
        if self._outage.going_on:
            self._outage.succeeded()
            self._doubtful = [queue for queue in self._queues if queue not in self._sick]
        for queue in queues:
            if queue in self._doubtful:
                self._doubtful.remove(queue)
            sick = self._sick.pop(queue, None)
            if sick is not None:
                sick.outage.succeeded()

    def failed(self, queues: Sequence[str], error: StoreError) -> float:
        """Take note that a claim of these failed, and return the seconds until the next one."""
        if len(queues) == 1 and len(self._queues) > 1 and not self._outage.going_on:
            [queue] = queues
            if queue in self._doubtful:
                self._doubtful.remove(queue)
            sick = self._sick.setdefault(queue, _Sick(queue))
            self.outages += not sick.outage.going_on
            sick.again = self._monotonic() + sick.outage.failed(error)
            if len(self._sick) < len(self._queues):
                return 0.0
        self.outages += not self._outage.going_on
        return self._outage.failed(error)

"""What the outbox holds, as the relay and operators see it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tenure.queue import Push


class Line(NamedTuple):
    """The jobs of one queue of one connection: what is moved in order."""

    namespace: str
    target: str
    """The connection's name."""
    queue: str

    @property
    def values(self) -> Mapping[str, str]:
        """Its parts, as statements name them."""
        return self._asdict()


class Waiting(NamedTuple):
    """What waits in a line."""

    line: Line
    jobs: int
    age: float
    """Seconds since the first of them was written."""


class Sending(msgspec.Struct, frozen=True):
    """A call that is recorded, and that may have been sent."""

    client: str
    number: int
    rows: Sequence[int]
    """The ids of its rows."""
    jobs: Sequence[Push]
    repeated: bool
    """It was recorded earlier: whether it was sent, nobody knows."""

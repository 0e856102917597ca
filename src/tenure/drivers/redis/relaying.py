"""Pushes whose client and number somebody else keeps: the relay of an outbox."""

from collections.abc import Sequence
from typing import Final

from tenure.drivers.redis.connection import Reply
from tenure.drivers.redis.keys import QueueKeys
from tenure.drivers.redis.lanes import Lane, Lanes, NumberedCall, Patience
from tenure.drivers.redis.scripts import Script
from tenure.relaying import Forgotten

FOR_GOOD: Final = b"3155760000000"
"""A hundred years, in milliseconds: whoever repeats such a call may do so after days."""


class _OneLane(Lanes):
    """Gives out one lane."""

    def __init__(self, lane: Lane) -> None:
        super().__init__()
        self._lane = lane

    def take(self, kind: str, queue: str) -> Lane:  # noqa: ARG002 - it has but one
        return self._lane

    def give(self, kind: str, queue: str, lane: Lane) -> None:
        """Nobody takes it again."""


class RelayedCall(NumberedCall):
    """A push by a lane that its caller numbers: its record is kept for good, and no other id is taken for it."""

    kept = FOR_GOOD

    def __init__(
        self,
        lane: Lane,
        patience: Patience,
        queue: str,
        keys: QueueKeys,
        script: Script,
        arguments: Sequence[bytes | str | int],
    ) -> None:
        super().__init__(_OneLane(lane), patience, queue, keys, script, arguments)

    def answered(self, reply: Reply) -> bool:
        """Take the reply; raises ``Forgotten`` when the store cannot place the number."""
        if reply[0] == b"old":
            raise Forgotten
        return super().answered(reply)


def lane_of(client: str, number: int) -> Lane:
    """Return the lane of a client, at a number."""
    lane = Lane()
    lane.client, lane.number = client, number
    return lane

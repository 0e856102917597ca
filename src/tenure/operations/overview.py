"""What the store itself tells of its queues, at a cost that does not grow with what is in them."""

from collections.abc import Sequence

import msgspec

from tenure.config import DEFAULT
from tenure.errors import NotSupported
from tenure.operations.operations import Operations
from tenure.queue import Counts


class QueueOverview(msgspec.Struct, frozen=True):
    """One queue as its store sees it."""

    name: str
    counts: Counts
    paused: bool | None
    """None when the driver pauses nothing."""


async def overview(operations: Operations, queues: Sequence[str], *, connection: str = DEFAULT) -> list[QueueOverview]:
    """Read these queues, in order: one call each, and one for all of them."""
    paused: Sequence[bool | None]
    try:
        paused = await operations.paused(queues, connection=connection)
    except NotSupported:
        paused = [None] * len(queues)
    return [
        QueueOverview(name, await operations.counts(name, connection=connection), flag)
        for name, flag in zip(queues, paused, strict=True)
    ]

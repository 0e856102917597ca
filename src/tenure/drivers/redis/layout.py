"""What tells the drivers on Redis apart: how the jobs that are ready stand in line."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from tenure.drivers.redis.durability import CLASSES
from tenure.drivers.redis.scripts import Line
from tenure.queue import Capabilities


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue's ready jobs are kept; all its other keys are the same."""

    line: Line
    """What the scripts are made with."""
    capabilities: Capabilities
    readers: Mapping[str, bytes]
    """The line's keys, each with a command that reads it and is refused when it holds something else."""
    consumers: bool
    """The server keeps the names of those who take from the line."""


LISTS: Final = Layout(
    line="list",
    capabilities=Capabilities(
        driver="redis", shared=True, results=True, unique=True, compositions=True, schedules=True, durability=CLASSES
    ),
    readers=MappingProxyType({"ready": b"LLEN", "ready:prio": b"ZCARD"}),
    consumers=False,
)
"""A list, and a sorted set for other priorities than 0."""

STREAMS: Final = Layout(
    line="stream",
    capabilities=Capabilities(
        driver="redis-streams",
        shared=True,
        priorities=False,
        results=True,
        unique=True,
        compositions=True,
        schedules=True,
        durability=CLASSES,
    ),
    readers=MappingProxyType({"ready": b"XLEN", "ready:sweep": b"HLEN"}),
    consumers=True,
)
"""A stream with one consumer group."""

LAYOUTS: Final[Mapping[str, Layout]] = MappingProxyType(
    {layout.capabilities.driver: layout for layout in (LISTS, STREAMS)}
)
"""The layouts, by the names of their drivers."""

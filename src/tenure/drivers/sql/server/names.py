"""What the tables are called."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from tenure.errors import ConfigurationError

TABLES: Final = (
    *("queues", "counters", "jobs", "endings", "unreadable", "cleared"),
    *("compositions", "nodes"),
    *("schedules", "paused", "settings", "clients", "numbers"),
    *("outbox", "outbox_relay"),
)
BLOCK: Final = 1000
"""How many numbers of the sequence are taken at a time."""

DEFAULT_PREFIX: Final = "tenure_"

_PREFIX: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}", re.ASCII)
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Names:
    """A prefix of all tables and the schema that they are in; none is the connection's own.

    Raises ``ConfigurationError`` for what is not a plain identifier: names cannot be bound, they become part of texts.
    """

    prefix: str = DEFAULT_PREFIX
    schema: str | None = None

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise ConfigurationError("table_prefix", "must be 1 to 32 of a-z, 0-9 and '_', no digit first")
        if self.schema is not None and not _SCHEMA.fullmatch(self.schema):
            raise ConfigurationError("schema", "must be 1 to 63 of a-z, 0-9 and '_', no digit first")

    def table(self, name: str) -> str:
        """Return the full name of one table, or of the sequence."""
        return f"{self.schema}.{self.prefix}{name}" if self.schema else f"{self.prefix}{name}"

    def key(self, *parts: str) -> int:
        """Return 64 bits that stand for something of these tables alone."""
        text = "\0".join([self.schema or "", self.prefix, *parts])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)

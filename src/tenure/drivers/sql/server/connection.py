"""What the driver asks of a client library: one connection, texts with named values, and few kinds of trouble."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tenure.drivers.sql.server.texts import Dialect
from tenure.enlisting import Statements

Values = Mapping[str, Any]
Step = tuple[str, Values]


class Result(NamedTuple):
    """What a statement brought."""

    rows: list[Any]
    changed: int
    """How many rows it changed."""


class Lost(Exception):
    """The connection is gone or useless. A transaction under way ends without effect, unless its end had begun."""


class Again(Exception):
    """The database rolled the transaction back because of others, in a deadlock say: all of it may be repeated."""


class Connection(Protocol):
    """One connection, used by one thread at a time. Every call is bounded in time.

    Raises ``Lost``, ``Again``, or a ``StoreError`` that says what the server refused.
    """

    def script(self, steps: Sequence[Step]) -> list[Result]:
        """Run statements one after the other, in one round trip."""
        ...

    def run(self, text: str, values: Values) -> Result:
        """Run one statement."""
        ...

    def insert(self, text: str, rows: Sequence[Values]) -> int:
        """Run one ``Insert`` and return how many rows are new."""
        ...

    def numbers(self, text: str, forget: str, blocks: int) -> list[int]:
        """Take that many blocks of numbers, and return the first number of each."""
        ...

    def close(self) -> None:
        """Close it; idempotent, never raises."""
        ...


class Server(Protocol):
    """A database server, as the driver sees it."""

    dialect: Dialect

    def connect(self) -> Connection:
        """Open a connection, ready for transactions; raises ``ConnectionFailed``."""
        ...

    @property
    def begin(self) -> Sequence[str]:
        """How a writing transaction begins."""
        ...

    @property
    def begin_reading(self) -> Sequence[str]:
        """How a transaction begins that reads one state of everything."""
        ...

    def finding(self, find: str, *, alone: bool) -> Sequence[str]:
        """Return how to find queues and keep others from clearing them, or from any change; ``keys`` is bound too."""
        ...

    def trouble(self, error: BaseException) -> Exception:
        """Return what an error of any client library for this server means: see ``Connection``."""
        ...

    def callers(self, caller: Statements) -> Connection:
        """Return a caller's connection, in the middle of its transaction, as one of ours."""
        ...

    def notifying(self, channel: str, queues: Sequence[str]) -> Step | None:
        """Return how to tell other processes that there is something in these queues, if that can be done."""
        ...

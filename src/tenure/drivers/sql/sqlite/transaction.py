"""What a transition sees of the transaction that it runs in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tenure.clock import Clock
from tenure.drivers.sql.sqlite import statements
from tenure.drivers.sql.units import SECOND

Values = Sequence[Any] | Mapping[str, Any]


class Rows(Protocol):
    """What a statement brought, as ``sqlite3`` tells it."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...


class Executes(Protocol):
    """A connection of ``sqlite3``, or what does as one."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Rows:
        """Run a statement."""
        ...

    def executemany(self, sql: str, parameters: Any, /) -> object:
        """Run a statement once for each set of values."""
        ...


@dataclass(slots=True)
class QueueRow:
    """One queue, as the transaction found it, and by how much the transitions have moved its counters since."""

    name: str
    number: int
    line: int
    fence: int
    ready: int = 0
    delayed: int = 0
    leased: int = 0
    failed: int = 0
    unreadable: int = 0
    abandoned: int | None = None
    """A line that a clear left behind and that still has rows."""
    paused: bool = False
    """Nothing of it is handed out."""
    first_until: int | None = None
    """Until when the first of the ends is kept that it has; None when it has none."""
    first_todo: int | None = None
    """When something is to be done with the first of the compositions whose home it is; None when with none."""
    d_ready: int = 0
    d_delayed: int = 0
    d_leased: int = 0
    d_failed: int = 0
    d_unreadable: int = 0

    @property
    def moved(self) -> tuple[int, int, int, int, int]:
        """By how much the counters move, in the order of the statement that moves them."""
        return self.d_ready, self.d_delayed, self.d_leased, self.d_failed, self.d_unreadable


class Transaction:
    """One transition's hold on the connection: its time, its queues, and whom to wake once it is committed.

    ``now`` is read after the file was locked, from this host's clock. All processes that use the file run on this
    host, so that is the store's one clock (P8).
    """

    def __init__(self, connection: Executes, namespace: str, clock: Clock) -> None:
        self._connection = connection
        self.namespace: str = namespace
        self._queues: dict[str, QueueRow | None] = {}
        self.now: int = int(clock.time() * SECOND)
        self.woken: set[str] = set()
        self.unfinished: set[str] = set()
        """The homes of compositions of which nodes are left to be worked off."""

    def all(self, statement: str, values: Values = ()) -> list[Any]:
        """Return the rows of a statement."""
        return self._connection.execute(statement, values).fetchall()

    def one(self, statement: str, values: Values = ()) -> Any:
        """Return the first row of a statement, or None."""
        return self._connection.execute(statement, values).fetchone()

    def change(self, statement: str, values: Values = ()) -> int:
        """Run a statement and return how many rows it changed."""
        return self._connection.execute(statement, values).rowcount

    def change_each(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each set of values."""
        self._connection.executemany(statement, values)

    def numbers(self, count: int) -> range:
        """Take that many numbers from the sequence."""
        last: int = self.all(statements.NEXT_NUMBERS, (count,))[0][0]
        return range(last - count + 1, last + 1)

    def find(self, name: str) -> QueueRow | None:
        """Return the queue, or None when nothing was ever pushed to it."""
        if name not in self._queues:
            row = self.one(statements.FIND_QUEUE, (self.namespace, name))
            self._queues[name] = None if row is None else QueueRow(name, *row)
        return self._queues[name]

    def open(self, name: str) -> QueueRow:
        """Return the queue, made when there is none."""
        queue = self.find(name)
        if queue is None:
            number, line = self.numbers(2)
            self.change(statements.ADD_QUEUE, (number, line, self.namespace, name))
            queue = self._queues[name] = QueueRow(name, number, line, fence=0)
        return queue

    def known(self) -> list[str]:
        """Return the names of all queues, sorted."""
        return [name for (name,) in self.all(statements.LIST_QUEUES, (self.namespace,))]

    def finish(self) -> None:
        """Write the counters that were moved. The last step of a writing transaction."""
        for queue in self._queues.values():
            if queue is not None and any(queue.moved):
                self.change(statements.COUNT, (*queue.moved, queue.number))

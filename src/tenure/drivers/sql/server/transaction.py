"""What a transition sees of the transaction that it runs in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from tenure.drivers.sql.claims import Sight
from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.connection import Connection, Result, Server, Step, Values
from tenure.drivers.sql.server.names import BLOCK
from tenure.drivers.sql.server.texts import Each, Insert, Statement, Texts


class Place(NamedTuple):
    """Whose jobs a connection sees, and as whom it writes."""

    server: Server
    texts: Texts
    namespace: str


class Call(NamedTuple):
    """What a writing transaction is recorded under."""

    client: str
    number: int
    slot: int
    """Which of its queues' counters it moves."""


@dataclass(slots=True)
class QueueRow:
    """One queue, as the transaction found it, and by how much the transitions have moved its counters since."""

    name: str
    number: int
    line: int = 0
    abandoned: int | None = None
    """A line that a clear left behind and that still has rows."""
    paused: bool = False
    """Nothing of it is handed out."""
    first_until: int | None = None
    """Until when the first of the ends is kept that it has; None when it has none."""
    first_todo: int | None = None
    """When something is to be done with the first of the compositions whose home it is; None when with none."""
    ready: int = 0
    delayed: int = 0
    leased: int = 0
    failed: int = 0
    unreadable: int = 0

    @property
    def moved(self) -> dict[str, int]:
        """By how much the counters move."""
        return {
            "ready": self.ready,
            "later": self.delayed,
            "leased": self.leased,
            "failed": self.failed,
            "unreadable": self.unreadable,
        }


class Recorded(Exception):
    """This call was committed before."""


COMMIT: Final = "COMMIT"
ROLLBACK: Final = "ROLLBACK"


class Transaction:
    """One transition's hold on a connection: its time, its queues, and whom to wake once it is committed.

    It begins with the first statement, together with that. ``now`` is read then, from the database's moving clock.
    """

    def __init__(self, connection: Connection, place: Place, call: Call | None, *, begun: bool = False) -> None:
        self._connection = connection
        self._place = place
        self._call = call
        self._began = begun
        self._now: int | None = None
        self._queues: dict[str, QueueRow | None] = {}
        self.namespace: str = place.namespace
        self.woken: set[str] = set()
        self.told: set[str] = set()
        """Queues of which other processes need not be told."""
        self.unfinished: set[str] = set()
        """The homes of compositions of which nodes are left to be worked off."""

    # ------------------------------------------------------------------------------------------------ its statements

    def all(self, statement: Statement, **values: Any) -> list[Any]:
        """Return the rows of a statement."""
        return self._run(statement, values).rows

    def one(self, statement: Statement, **values: Any) -> Any:
        """Return the first row of a statement, or None."""
        rows = self._run(statement, values).rows
        return rows[0] if rows else None

    def change(self, statement: Statement, **values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self._run(statement, values).changed

    def change_each(self, statement: Each, records: Sequence[Values]) -> None:
        """Change each job by a record of its own."""
        if records:
            self._run(statement, {"given": msgspec.json.encode(records).decode()})

    def change_all(self, statement: Statement, incarnations: Iterable[int], **values: Any) -> int:
        """Change these jobs, all alike, and return how many there were."""
        listed = list(incarnations)
        return self._run(statement, {"incarnations": listed, **values}).changed if listed else 0

    def insert(self, statement: Insert, rows: Sequence[Values]) -> int:
        """Add rows, and return how many are new."""
        self._begin()
        return self._connection.insert(self._place.texts.of(statement), rows)

    def numbers(self, count: int) -> list[int]:
        """Take that many numbers, each larger than all that were taken before."""
        if not count:
            return []
        self._begin()
        texts, blocks = self._place.texts, -(-count // BLOCK)
        firsts = self._connection.numbers(texts.of(statements.NEXT_NUMBER), texts.of(statements.DROP_NUMBER), blocks)
        return [number for first in firsts for number in range(first, first + BLOCK)][:count]

    def _run(self, statement: Statement, values: Values) -> Result:
        self._begin()
        return self._connection.run(self._place.texts.of(statement), values)

    @property
    def now(self) -> int:
        """The time by the database's clock, in microseconds since 1970."""
        if self._now is None:
            self._now = int(self.one(statements.CLOCK)[0])
        return self._now

    # ---------------------------------------------------------------------------------------------------- its queues

    def find(self, *names: str) -> list[QueueRow]:
        """Return those of the queues that were ever pushed to, in order, each once."""
        missing = [name for name in names if name not in self._queues]
        if missing:
            self._look(missing)
        return [queue for name in dict.fromkeys(names) if (queue := self._queues[name]) is not None]

    def known(self, name: str) -> QueueRow | None:
        """Return one queue, or None when nothing was ever pushed to it."""
        return next(iter(self.find(name)), None)

    def alone(self, name: str) -> QueueRow | None:
        """Return one queue in which nobody else changes anything until the end."""
        self._look([name], alone=True)
        return self._queues[name]

    def see(self, names: Sequence[str]) -> list[tuple[QueueRow, Sight]]:
        """Return those of the queues that were ever pushed to, and what a claim would find in each."""
        rows = self._look(list(dict.fromkeys(names)), statements.SEE_QUEUES)
        sights = {name: Sight(*row) for name, *row in rows}
        return [(queue, sights[queue.name]) for queue in self.find(*names)]

    def open(self, names: Iterable[str]) -> None:
        """Make those of the queues that there are none of."""
        wanted = sorted(set(names))
        found = {queue.name for queue in self.find(*wanted)}
        new = [name for name in wanted if name not in found]
        if new:
            numbers = iter(self.numbers(2 * len(new)))
            rows = [
                {"number": next(numbers), "line": next(numbers), "namespace": self.namespace, "name": name}
                for name in new
            ]
            self.insert(statements.ADD_QUEUE, rows)
            self._look(new)

    def _look(
        self, names: Sequence[str], find: Statement = statements.FIND_QUEUES, *, alone: bool = False
    ) -> list[Any]:
        """Read queues, and return what the statement tells of each besides, behind its name."""
        server, texts = self._place.server, self._place.texts
        values: dict[str, Any] = {"namespace": self.namespace, "names": list(names)}
        if self._call is None:
            looking = [texts.of(find)]
        else:
            looking = list(server.finding(texts.of(find), alone=alone))
            keys = [texts.names.key(self.namespace, name) for name in names]
            values["keys"] = sorted(keys)
        results = self._begin([(text, values) for text in looking])
        for name in names:
            self._queues.setdefault(name, None)
        rest = []
        for now, name, number, line, abandoned, paused, until, todo, *more in results[-1].rows:
            self._now = int(now)
            if name is not None:
                queue = self._queues[name] = self._queues[name] or QueueRow(name, number)
                queue.line, queue.abandoned, queue.paused, queue.first_until = line, abandoned, bool(paused), until
                queue.first_todo = todo
                rest.append((name, *more))
        return rest

    # ------------------------------------------------------------------------------------------ its beginning, its end

    def _begin(self, more: Sequence[Step] = ()) -> list[Result]:
        """Begin, unless it has begun, and run some more steps in the same round trip."""
        if self._began:
            return self._connection.script(more) if more else []
        server, call = self._place.server, self._call
        if call is None:
            steps: list[Step] = [(text, {}) for text in server.begin_reading]
        else:
            steps = [(text, {}) for text in server.begin]
            steps.append((self._place.texts.of(statements.NUMBER), {"client": call.client, "call": call.number}))
        self._began = True
        first = len(steps)
        results = self._connection.script([*steps, *more])
        if call is not None and not results[first - 1].changed:
            raise Recorded
        return results[first:]

    def commit(self) -> None:
        """Write the counters that were moved, and end: the last step of a writing transaction, one round trip."""
        if self._began and self._call is not None:
            self._connection.script([*self._moves(self._call.slot), (COMMIT, {})])

    def _moves(self, slot: int) -> list[Step]:
        """Return what writes the counters that were moved."""
        count = self._place.texts.of(statements.COUNT)
        return [
            (count, {"queue": queue.number, "slot": slot, **queue.moved})
            for queue in sorted(filter(None, self._queues.values()), key=lambda queue: queue.number)
            if any(queue.moved.values())
        ]

    def roll_back(self) -> None:
        """End without effect."""
        if self._began:
            self._connection.script([(ROLLBACK, {})])

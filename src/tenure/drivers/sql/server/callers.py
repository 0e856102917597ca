"""Jobs written by a caller's own connection, in the middle of its transaction."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from tenure.drivers.sql.engine import Engine
from tenure.drivers.sql.parts import parts
from tenure.drivers.sql.server import questions, statements
from tenure.drivers.sql.server.connection import Again, Connection, Lost, Result, Server, Step, Values
from tenure.drivers.sql.server.names import BLOCK
from tenure.drivers.sql.server.session import SLOTS, channel
from tenure.drivers.sql.server.transaction import Call, Place, QueueRow, Transaction
from tenure.drivers.sql.server.transitions.pushing import push
from tenure.drivers.sql.server.transitions.settling import settle
from tenure.enlisting import Statements, Trouble
from tenure.errors import ConnectionFailed, InvalidOption, StoreRefused
from tenure.queue import Ack, Lease, Push, Pushed, Settled

CALLERS: Final = range(SLOTS, SLOTS + 1024)
"""Slots of counters for the transactions of callers. They may last, and whoever moves the same slot waits for them."""


class Callers:
    """Pushes in the transactions of callers whose connections lead to our tables, by whatever library.

    A connection of our own does what must not wait for the caller's commit, and sees what its transaction does not.
    """

    def __init__(self, place: Place, beside: Callable[[], Engine[Transaction]]) -> None:
        self._place = place
        self._beside = beside
        self._ours: tuple[Any, ...] = ()
        self._numbers: Mapping[str, int] = {}

    def push(self, caller: Statements, jobs: Sequence[Push]) -> list[Pushed] | None:
        """Store the jobs and tell waiting workers, all of it with the caller's commit; None if it is not our database.

        Raises ``StoreError``; then the caller's transaction may be good for nothing but to be rolled back.
        """
        with troubles():
            return self._push(caller, jobs)

    def join(self, caller: Statements, lease: Lease) -> float | None:
        """Look whether the connection can end leases, which may take its time; None if it is not our database.

        Raises ``InvalidOption`` for a transaction that cannot end a lease which was renewed after it had begun.
        """
        with troubles():
            fresh = self._fresh(caller)
            if fresh is None:
                return None
            if not fresh:
                raise InvalidOption(
                    "the transaction must be READ COMMITTED: at its isolation level PostgreSQL would refuse the "
                    "acknowledgement of a lease that was renewed meanwhile; nothing was written"
                )
            self._made(caller, [lease.queue])
            return math.inf

    def acknowledge(self, caller: Statements, lease: Lease) -> bool:
        """End a lease with the caller's commit; False, and nothing written, when it is not current."""
        with troubles():
            transaction = CallersTransaction(self._place.server.callers(caller), self._place)
            # By its number, as jobs are spread: who commits at the same time hardly waits.
            transaction.slot = CALLERS[lease.incarnation % len(CALLERS)]
            transaction.hold(lease.queue, self._numbers[lease.queue], [lease.id])
            (settled,) = settle(transaction, [Ack(lease)])
            transaction.finish()
            self._tell(transaction)
            return settled is not Settled.STALE

    def _fresh(self, caller: Statements) -> bool | None:
        """Tell whether each statement sees what is committed then; None if it is not our database."""
        if caller.dialect != self._place.server.dialect:
            return None
        connection = self._place.server.callers(caller)
        fresh, *theirs = connection.run(self._place.texts.of(questions.WHEREABOUTS), {}).rows[0]
        return bool(fresh) if self._is_ours(caller, tuple(theirs)) else None

    def _push(self, caller: Statements, jobs: Sequence[Push]) -> list[Pushed] | None:
        fresh = self._fresh(caller)
        if fresh is None:
            return None
        connection = self._place.server.callers(caller)
        names = sorted({job.queue for job in jobs})
        numbers = self._made(caller, names)
        transaction = CallersTransaction(connection, self._place)
        for name in names:
            transaction.hold(name, numbers[name], [job.id for job in jobs if job.queue == name])
        if not fresh:
            # Nobody clears these queues any more, but the transaction sees them as they were when it began.
            transaction.know(caller.aside(lambda: self._beside().read(partial(_find, names=names)).result()))
        pushed = [outcome for part in parts(jobs) for outcome in push(transaction, part)]
        transaction.finish()
        self._tell(transaction)
        return pushed

    def _tell(self, transaction: "CallersTransaction") -> None:
        """Tell waiting workers of jobs, with the caller's commit."""
        step = self._place.server.notifying(channel(self._place), sorted(transaction.woken))
        if step is not None:
            transaction.tell(step)

    def _is_ours(self, caller: Statements, theirs: tuple[Any, ...]) -> bool:
        """Tell whether the tables that a connection sees are ours: another server may have such, and another schema."""
        if theirs[-1] is None:
            return False
        if theirs != self._ours:  # not asked yet; or the server was restarted, or the tables were made anew
            self._ours = caller.aside(lambda: self._beside().read(_whereabouts).result())
            self._numbers = {}
        return theirs == self._ours

    def _made(self, caller: Statements, names: Sequence[str]) -> Mapping[str, int]:
        """Return the queues' numbers. Those that there are none of are made, and that is committed at once.

        Whoever else pushes to them would wait for the caller. On MySQL a mere look by name for a queue that is not
        there would keep others from making it.
        """
        numbers = self._numbers
        if not numbers.keys() >= set(names):
            made = caller.aside(lambda: self._beside().write(partial(_open, names=names), durable=False).result())
            numbers = self._numbers = {**numbers, **{queue.name: queue.number for queue in made}}
        return numbers


class CallersTransaction(Transaction):
    """A transition's hold on a caller's connection.

    It has no number, no beginning and no end of its own. Its counters have slots of their own, so that no worker waits
    for a caller; which of them follows from the numbers that it took, so that callers hardly wait for each other.
    """

    def __init__(self, connection: Connection, place: Place) -> None:
        super().__init__(connection, place, Call("", 0, CALLERS[0]), begun=True)
        self.slot: int = CALLERS[0]

    def numbers(self, count: int) -> list[int]:
        """Take that many numbers, each larger than all that were taken before."""
        taken = super().numbers(count)
        if taken:
            self.slot = CALLERS[taken[0] // BLOCK % len(CALLERS)]
        return taken

    def hold(self, name: str, number: int, ids: Sequence[str]) -> None:
        """Keep others from clearing a queue until the caller's end, and look at it.

        By its number: MySQL would keep others from making queues whose names are near.
        """
        texts = self._place.texts
        values = {"keys": [texts.names.key(self.namespace, name)], "number": number}
        steps = [(text, values) for text in self._place.server.finding(texts.of(questions.LINE), alone=False)]
        for now, line, ends in self._connection.script(steps)[-1].rows:
            self._now = int(now)
            queue = self._queues[name] = QueueRow(name, number, line)
            # Ends that no id replaces are not touched, nor swept: their rows would stay locked.
            if ends and self.all(statements.FIND_END_STATES, queue=number, ids=list(ids), now=self._now):
                queue.first_until = self._now + 1

    def know(self, queues: Sequence[QueueRow]) -> None:
        """Take queues as they were found elsewhere. What a clear left of them is not swept: it would stay locked."""
        for queue in queues:
            known = self._queues.get(queue.name)
            ends = None if known is None else known.first_until
            self._queues[queue.name] = QueueRow(queue.name, queue.number, queue.line, first_until=ends)

    def finish(self) -> None:
        """Write the counters that were moved: the last step."""
        self._connection.script(self._moves(self.slot))

    def tell(self, step: Step) -> None:
        """Tell others of jobs, behind the last step."""
        self._connection.run(*step)


class CallersConnection:
    """A caller's connection as one of ours. What inserting and counting up take is each server's own."""

    def __init__(self, caller: Statements, server: Server) -> None:
        self._caller = caller
        self._server = server

    def script(self, steps: Sequence[Step]) -> list[Result]:
        """Run statements one after the other."""
        return [self.run(text, values) for text, values in steps]

    def run(self, text: str, values: Values) -> Result:
        """Run one statement."""
        try:
            rows, changed = self._caller.run(text, values)
        except Trouble as trouble:
            raise self._server.trouble(trouble.cause or trouble) from None
        return Result(rows, changed)

    def run_each(self, text: str, rows: Sequence[Values]) -> None:
        """Run one statement for each row."""
        try:
            self._caller.run_each(text, rows)
        except Trouble as trouble:
            raise self._server.trouble(trouble.cause or trouble) from None

    def close(self) -> None:
        """Leave it to the caller."""


@contextlib.contextmanager
def troubles() -> Iterator[None]:
    """Turn what goes wrong on a caller's connection into what he is to know."""
    try:
        yield
    except Again as error:
        raise StoreRefused("BUSY", f"{error}: roll the transaction back and repeat all of it") from None
    except Lost as error:
        raise ConnectionFailed(f"{error} in the caller's transaction, and nothing of that is stored") from None


def _whereabouts(transaction: Transaction) -> tuple[Any, ...]:
    return tuple(transaction.one(questions.WHEREABOUTS)[1:])


def _find(transaction: Transaction, names: Sequence[str]) -> list[QueueRow]:
    return transaction.find(*names)


def _open(transaction: Transaction, names: Sequence[str]) -> list[QueueRow]:
    transaction.open(names)
    return transaction.find(*names)

"""One connection, its transactions, and what becomes of one whose end nobody told."""

import contextlib
import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from tenure.drivers.sql.server import statements
from tenure.drivers.sql.server.connection import Again, Connection, Lost
from tenure.drivers.sql.server.transaction import Call, Place, Recorded, Transaction
from tenure.errors import ConnectionFailed, OutcomeUnknown, StoreError, StoreRefused
from tenure.naming import new_token
from tenure.waiting import Waiters

T = TypeVar("T")

SLOTS: Final = 32
"""How many connections may move a queue's counters at once."""
MOST_TRIES: Final = 10
"""How often a transaction is tried that the database rolls back because of others."""
MOST_CONNECTIONS: Final = 3
"""How many connections may break under one transaction of which nothing is written, before the caller is told."""
REPEATING: Final = 30.0
"""Seconds for which a commit is asked after whose reply was lost, before ``OutcomeUnknown`` (P1)."""
SHORTEST_NAP: Final = 0.005
LONGEST_NAP: Final = 1.0
FORGOTTEN: Final = 3600
"""Seconds after which the last call of a silent connection is forgotten."""
STEP: Final = 100


class Own:
    """What a session has in one process: a child of a fork begins with its own, and leaves its parent's alone."""

    def __init__(self) -> None:
        self.pid: int = os.getpid()
        self.lock: threading.Lock = threading.Lock()
        self.connection: Connection | None = None
        self.client: str = new_token()
        self.number: int = 0
        self.slot: int = secrets.randbelow(SLOTS)


class Session:
    """A client in the sense of P1: one connection, one call at a time, each numbered.

    A call is one transaction. Its number is its first write, and its answers are known before it ends. When the reply
    to COMMIT is lost, the call is repeated, and the number tells whether there is anything left to do: it waits for
    the end of the first try, if that still runs.
    """

    def __init__(self, place: Place, waiters: Waiters) -> None:
        self._place = place
        self._waiters = waiters
        self._channel = channel(place)
        self._own = Own()

    # ------------------------------------------------------------------------------------------------------ its calls

    def read(self, operation: Callable[[Transaction], T]) -> T:
        """Run an operation that changes nothing, on one state of the database."""
        own = self._mine()
        with own.lock:
            broken = 0
            while True:
                transaction = Transaction(self._open(own), self._place, None)
                try:
                    answer = operation(transaction)
                    transaction.roll_back()
                except (Lost, Again) as error:
                    self._close(own)
                    broken += 1
                    if broken == MOST_CONNECTIONS:
                        raise ConnectionFailed(f"{error}; nothing was read") from error
                except BaseException:
                    self._roll_back(own, transaction)
                    raise
                else:
                    return answer

    def write(self, operations: Sequence[Callable[[Transaction], Any]], *, durable: bool) -> list[Any]:  # noqa: ARG002
        """Run the operations in one transaction and return what each returned; all are done or none is.

        How durable a commit is, is the server's to say: ``durable`` changes nothing.
        """
        own = self._mine()
        with own.lock:
            own.number += 1
            transaction, results = self._written(own, operations)
            if transaction.woken:
                self._tell(own, transaction)
        return results

    def close(self) -> None:
        """Close the connection; idempotent. The next use opens another."""
        own = self._mine()
        with own.lock:
            if own.connection is not None and own.number:
                with contextlib.suppress(Lost, Again, StoreError):
                    own.connection.run(self._place.texts.of(statements.FORGET_CLIENT), {"client": own.client})
            self._close(own)

    # ---------------------------------------------------------------------------------------------- one of them, whole

    def _written(self, own: Own, operations: Sequence[Callable[[Transaction], Any]]) -> tuple[Transaction, list[Any]]:
        end = time.monotonic() + REPEATING
        unsure: tuple[Transaction, list[Any]] | None = None
        tries = broken = 0
        while True:
            try:
                transaction = Transaction(self._open(own), self._place, Call(own.client, own.number, own.slot))
                results = self._attempt(own, transaction, operations)
                try:
                    transaction.commit()
                except Lost:
                    unsure = transaction, results
                    raise
                except (Again, StoreError):
                    self._roll_back(own, transaction)
                    raise
            except Recorded:
                # Only a call that was sent to its end can have been recorded, so its answers are known.
                if unsure is None:
                    raise StoreError("a call was recorded that was never made; nothing was written") from None
                return unsure
            except Again as error:
                tries += 1
                if tries == MOST_TRIES:
                    raise StoreRefused("BUSY", f"{error}, {tries} times in a row; try again") from error
            except (Lost, ConnectionFailed) as error:
                self._close(own)
                broken += 1
                self._give_up(error, broken, end, unsure=unsure is not None)
            else:
                return transaction, results
            time.sleep(_nap(tries + broken))

    def _attempt(
        self, own: Own, transaction: Transaction, operations: Sequence[Callable[[Transaction], Any]]
    ) -> list[Any]:
        try:
            return [operation(transaction) for operation in operations]
        except Lost:
            raise
        except BaseException:
            self._roll_back(own, transaction)
            raise

    def _give_up(self, error: Exception, broken: int, end: float, *, unsure: bool) -> None:
        """Raise what the caller is to know, when it is no use to go on."""
        if unsure:
            if time.monotonic() >= end:
                raise OutcomeUnknown(
                    f"the reply to a COMMIT was lost, and for {REPEATING:g} s nobody could be asked whether it was done"
                ) from error
        elif isinstance(error, ConnectionFailed):
            raise error
        elif broken == MOST_CONNECTIONS:
            raise ConnectionFailed(f"{error}; nothing was written") from error

    def _roll_back(self, own: Own, transaction: Transaction) -> None:
        """End a transaction; a connection that cannot is not used again, so that none stays in the middle of one."""
        try:
            transaction.roll_back()
        except (Lost, Again, StoreError):
            self._close(own)

    def _tell(self, own: Own, transaction: Transaction) -> None:
        """Wake who waits, here and elsewhere. Who is not reached looks by himself, within a second."""
        self._waiters.wake(transaction.woken)
        step = self._place.server.notifying(self._channel, sorted(transaction.woken - transaction.told))
        if step is not None and own.connection is not None:
            try:
                own.connection.run(*step)
            except (Lost, Again, StoreError):
                self._close(own)

    # ------------------------------------------------------------------------------------------------- its connection

    def _mine(self) -> Own:
        if self._own.pid != os.getpid():
            self._own = Own()  # the parent's connection is its own: not even closing it is ours
        return self._own

    def _open(self, own: Own) -> Connection:
        if own.connection is None:
            own.connection = self._place.server.connect()
            if own.number == 1:
                self._sweep(own.connection)
        return own.connection

    def _sweep(self, connection: Connection) -> None:
        """Forget some calls of connections that fell silent; every new one does, so that they do not pile up."""
        texts, age = self._place.texts, FORGOTTEN * 1_000_000
        with contextlib.suppress(Lost, Again, StoreError):
            found = connection.run(texts.of(statements.OLD_CLIENTS), {"age": age, "step": STEP}).rows
            if found:
                clients = [client for (client,) in found]
                connection.run(texts.of(statements.DROP_CLIENTS), {"age": age, "clients": clients})

    def _close(self, own: Own) -> None:
        connection, own.connection = own.connection, None
        if connection is not None:
            connection.close()


def channel(place: Place) -> str:
    """Return the name under which the processes of a namespace hear of each other."""
    return f"{place.texts.names.prefix}{place.texts.names.key(place.namespace) & 0xFFFF_FFFF_FFFF:x}"


def _nap(tries: int) -> float:
    longest: float = min(LONGEST_NAP, SHORTEST_NAP * 2.0**tries)
    return random.uniform(0.5, 1) * longest  # noqa: S311 - no secret

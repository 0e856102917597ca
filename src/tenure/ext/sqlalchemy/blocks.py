"""A transaction that ``current().transaction()`` begins and ends."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.orm import Session, SessionTransaction

from tenure.enlisting import Begun, Statements
from tenure.errors import WrongContext
from tenure.ext.sqlalchemy.callers import RunSync, connection_of, refuse, refuse_autocommit, unwrapped
from tenure.ext.sqlalchemy.statements import SqlalchemyStatements

T = TypeVar("T")


def begin(option: str, given: object) -> Begun:
    """Return the transaction of a connection or a session that is in none; raises ``InvalidOption``."""
    return _Block(option, *unwrapped(option, given))


class _Block:
    """``run_sync`` is of an asynchronous one."""

    def __init__(self, option: str, handle: Session | Connection, run_sync: RunSync[Any] | None) -> None:
        self._option = option
        self._handle = handle
        self._run_sync = run_sync
        self._transaction: SessionTransaction | RootTransaction | None = None

    def call(self, step: Callable[[], T]) -> T:
        if self._run_sync is not None:
            raise WrongContext(f"{self._option}: the transaction is an asynchronous one: use 'async with'")
        return step()

    async def call_async(self, step: Callable[[], T]) -> T:
        if self._run_sync is None:
            return step()
        done: T = await self._run_sync(lambda _: step())
        return done

    def begin(self) -> None:
        if self._handle.in_transaction():
            refuse(self._option, "a transaction has begun already: the block begins it, and ends it")
        if isinstance(self._handle, Session):
            bind = self._handle.bind
            if isinstance(bind, Connection) and bind.in_transaction():
                refuse(self._option, "the session is part of a transaction that the block would not commit")
        self._transaction = self._handle.begin()
        try:
            refuse_autocommit(self._option, self._connection())
        except BaseException:
            self._transaction.rollback()
            raise

    def within(self, work: Callable[[Statements], T]) -> T:
        assert self._transaction is not None, "it was begun"
        if not self._transaction.is_active:
            raise WrongContext(
                f"{self._option}: the transaction has failed, or was ended inside the block, which ends it itself; "
                "what was committed so stands, and the job is not acknowledged"
            )
        if isinstance(self._handle, Session):
            self._handle.flush()
        return work(SqlalchemyStatements(self._connection(), awaited=self._run_sync is not None))

    def commit(self) -> None:
        self._handle.commit()

    def roll_back(self) -> None:
        self._handle.rollback()

    def _connection(self) -> Connection:
        return connection_of(self._option, self._handle) if isinstance(self._handle, Session) else self._handle

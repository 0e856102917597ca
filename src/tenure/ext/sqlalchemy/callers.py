"""What a push was given, as a transaction that it can be part of."""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

from sqlalchemy import Connection, TwoPhaseTransaction, exc
from sqlalchemy.orm import Session, scoped_session

from tenure.enlisting import Enlisted, Following, Statements
from tenure.errors import InvalidOption, WrongContext
from tenure.ext.sqlalchemy import connections, sessions
from tenure.ext.sqlalchemy.pending import Pending
from tenure.ext.sqlalchemy.statements import SqlalchemyStatements

T = TypeVar("T")
RunSync = Callable[[Callable[[Any], T]], Awaitable[T]]


def enlist(option: str, given: object) -> Enlisted:
    """Return the open transaction of a connection or a session; raises ``InvalidOption`` when there is none."""
    found, run_sync = unwrapped(option, given)
    return (
        _of_session(option, found, run_sync) if isinstance(found, Session) else _of_connection(option, found, run_sync)
    )


def unwrapped(option: str, given: object) -> tuple[Session | Connection, RunSync[Any] | None]:
    """Return the blocking session or connection of what was given, and what runs its steps if that is awaited."""
    found: Any = given
    if isinstance(given, scoped_session) or type(given).__name__ == "async_scoped_session":
        found = found()
    run_sync: RunSync[Any] | None = None
    for name in ("sync_session", "sync_connection"):
        if hasattr(found, name):  # an asynchronous one: not imported here, where its greenlets may be missing
            run_sync, found = found.run_sync, getattr(found, name)
    if isinstance(found, Session | Connection):
        return found, run_sync
    if found is None:
        raise InvalidOption(f"{option}: the connection was not opened; nothing was sent")
    raise InvalidOption(
        f"{option} takes a Connection, a Session, an AsyncConnection or an AsyncSession of SQLAlchemy, not its "
        f"{type(given).__name__}; nothing was sent"
    )


class _Caller:
    """An open transaction; ``run_sync`` is of an asynchronous one."""

    def __init__(
        self,
        option: str,
        run_sync: RunSync[Any] | None,
        connection: Callable[[], Connection],
        pending: Callable[[], Pending],
    ) -> None:
        self._option = option
        self._run_sync = run_sync
        self._connection = connection
        self._pending = pending

    def within(self, work: Callable[[Statements], T]) -> T:
        if self._run_sync is not None:
            raise WrongContext(
                f"{self._option}: the transaction is an asynchronous one, which blocking code cannot write in; "
                "use 'await push()'; nothing was sent"
            )
        return self._done(work)

    async def within_async(self, work: Callable[[Statements], T]) -> T:
        if self._run_sync is None:
            return self._done(work)
        done: T = await self._run_sync(lambda _: self._done(work))
        return done

    def after_commit(self, following: Following) -> None:
        self._pending().add(following, awaited=self._run_sync is not None)

    def _done(self, work: Callable[[Statements], T]) -> T:
        connection = self._connection()
        refuse_autocommit(self._option, connection)
        return work(SqlalchemyStatements(connection, awaited=self._run_sync is not None))


# ------------------------------------------------------------------------------------------------------------ sessions


def _of_session(option: str, session: Session, run_sync: RunSync[Any] | None) -> _Caller:
    # A session that was closed looks like a new one: what was pushed into it would wait for a commit that nobody makes.
    if not session.in_transaction():
        refuse(option, "the session is in no transaction; begin one, or push after its first statement")
    if not session.is_active:
        refuse(option, "the session's transaction has failed; roll it back")
    return _Caller(option, run_sync, lambda: connection_of(option, session), lambda: _pending_of(session))


def connection_of(option: str, session: Session) -> Connection:
    """Return the connection of a session; raises ``InvalidOption`` when it has not the one."""
    try:
        return session.connection()
    except exc.UnboundExecutionError:
        refuse(option, "the session has no database of its own, or several; give its connection(bind_arguments=…)")


def _pending_of(session: Session) -> Pending:
    try:
        bind = session.get_bind()
    except exc.UnboundExecutionError:
        bind = None
    if isinstance(bind, Connection) and bind.in_transaction():
        return connections.pending(bind)  # the session's own commit may not be the outermost one
    return sessions.pending(session)


# --------------------------------------------------------------------------------------------------------- connections


def _of_connection(option: str, connection: Connection, run_sync: RunSync[Any] | None) -> _Caller:
    if connection.closed:
        refuse(option, "the connection is closed")
    transaction = connection.get_transaction()
    if transaction is None:
        refuse(option, "the connection is in no transaction; begin one, or push after its first statement")
    if not transaction.is_active:
        refuse(option, "the connection's transaction has failed; roll it back")

    def pending() -> Pending:
        refuse_autocommit(option, connection)
        if isinstance(transaction, TwoPhaseTransaction):
            refuse(option, "nothing tells of a commit in two phases; give the session that makes it")
        return connections.pending(connection)

    return _Caller(option, run_sync, lambda: connection, pending)


def refuse_autocommit(option: str, connection: Connection) -> None:
    """Raise ``InvalidOption`` for a connection whose statements are each committed alone."""
    pooled = connection.connection
    assert pooled.dbapi_connection is not None, "it is in a transaction"
    try:
        alone = connection.dialect.detect_autocommit_setting(pooled.dbapi_connection)
    except NotImplementedError:
        return
    # SQLite's library says the same of a connection whose transactions are begun by hand.
    if alone and not getattr(pooled.driver_connection, "in_transaction", False):
        refuse(option, "the connection is in autocommit: there is no transaction to be part of")


def refuse(option: str, problem: str) -> NoReturn:
    """Raise ``InvalidOption``."""
    raise InvalidOption(f"{option}: {problem}; nothing was sent")

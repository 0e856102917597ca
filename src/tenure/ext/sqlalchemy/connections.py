"""What follows the commit of a connection.

SQLAlchemy tells of a commit before it is made, and of nothing after it. So the dialect's own methods are watched, of
each engine whose connections were given to a push: what makes the commit knows when it is made. What waits lies in the
``info`` of the database connection, where these methods find it.
"""

from typing import Any

from sqlalchemy import Connection, Dialect
from sqlalchemy.engine import Transaction
from sqlalchemy.pool import PoolProxiedConnection

from tenure.ext.sqlalchemy.pending import KEY, Pending


class _OfTransaction(Pending):
    """What waits for one transaction: a connection may have been given back without the end of an earlier one."""

    def __init__(self, transaction: Transaction | None) -> None:
        super().__init__()
        self.transaction = transaction


def pending(connection: Connection) -> Pending:
    """Return what waits for the end of the connection's outermost transaction."""
    _watch(connection.dialect)
    transaction = connection.get_transaction()
    found = connection.info.get(KEY)
    if not isinstance(found, _OfTransaction) or found.transaction is not transaction:
        found = connection.info[KEY] = _OfTransaction(transaction)
    return found


def _watch(dialect: Dialect) -> None:
    if getattr(dialect.do_commit, "watched_by_tenure", False):
        return
    commit, roll_back = dialect.do_commit, dialect.do_rollback
    savepoint, undo = dialect.do_savepoint, dialect.do_rollback_to_savepoint

    def do_commit(connection: PoolProxiedConnection) -> None:
        commit(connection)
        found = connection.info.pop(KEY, None)
        if found is not None and found.transaction.is_active:
            found.follow()

    def do_rollback(connection: PoolProxiedConnection) -> None:
        connection.info.pop(KEY, None)
        roll_back(connection)

    def do_savepoint(connection: Connection, name: str) -> None:
        savepoint(connection, name)
        if KEY in connection.info:
            connection.info[KEY].savepoint(name)

    def do_rollback_to_savepoint(connection: Connection, name: str) -> None:
        undo(connection, name)
        if KEY in connection.info:
            connection.info[KEY].undo(name)

    watched: dict[str, Any] = {
        "do_commit": do_commit,
        "do_rollback": do_rollback,
        "do_savepoint": do_savepoint,
        "do_rollback_to_savepoint": do_rollback_to_savepoint,
    }
    do_commit.watched_by_tenure = True  # type: ignore[attr-defined]
    vars(dialect).update(watched)

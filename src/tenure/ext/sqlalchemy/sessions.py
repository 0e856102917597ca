"""What follows the commit of a session."""

from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction

from tenure.ext.sqlalchemy.pending import KEY, Pending


def pending(session: Session) -> Pending:
    """Return what waits for the session's commit; from now on it is told of each."""
    found = session.info.get(KEY)
    if not isinstance(found, _Watch):
        found = session.info[KEY] = _Watch()
        event.listen(session, "after_transaction_create", found.begun)
        event.listen(session, "after_commit", found.committed)
        event.listen(session, "after_soft_rollback", found.rolled_back)
        event.listen(session, "after_transaction_end", found.ended)
    return found.pending


class _Watch:
    """Listens to one session, for as long as that lives."""

    def __init__(self) -> None:
        self.pending = Pending()
        self._committed = False

    def begun(self, session: Session, transaction: SessionTransaction) -> None:  # noqa: ARG002 - the event's
        if transaction.nested:
            self.pending.savepoint(transaction)

    def rolled_back(self, session: Session, transaction: SessionTransaction) -> None:  # noqa: ARG002 - the event's
        if transaction.nested:
            self.pending.undo(transaction)

    def committed(self, session: Session) -> None:
        if not session.in_nested_transaction():
            self._committed = True

    def ended(self, session: Session, transaction: SessionTransaction) -> None:  # noqa: ARG002 - the event's
        """Do what waits once the session is done with the outermost transaction and its connections are free."""
        if transaction.parent is not None:
            return
        committed, self._committed = self._committed, False
        if committed:
            self.pending.follow()
        else:
            self.pending.clear()

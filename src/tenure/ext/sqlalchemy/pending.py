"""What waits for a commit."""

from collections.abc import Hashable
from typing import Final, NamedTuple

from sqlalchemy.util import await_only

from tenure.enlisting import Following, follow

KEY: Final = "tenure.after_commit"
"""Where it waits: in the ``info`` of a session, or of a connection."""


class Waiting(NamedTuple):
    """One of them, and whether whoever commits awaits that."""

    following: Following
    awaited: bool

    def run(self) -> None:
        """Do it. An awaited commit runs in a greenlet, from which the loop can go on meanwhile."""
        if self.awaited:
            await_only(self.following.run_async())
        else:
            self.following.run()

    async def run_async(self) -> None:
        """Do it."""
        await self.following.run_async()

    def abandon(self, error: BaseException) -> None:
        """Tell that it is not done."""
        self.following.abandon(error)


class Pending:
    """What follows one transaction, in order, and how much of it stood before each savepoint."""

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self._marks: dict[Hashable, int] = {}

    def add(self, following: Following, *, awaited: bool) -> None:
        """Do something after the commit."""
        self._waiting.append(Waiting(following, awaited))

    def savepoint(self, which: Hashable) -> None:
        """Remember what stands before a savepoint."""
        self._marks[which] = len(self._waiting)

    def undo(self, which: Hashable) -> None:
        """Forget what came after a savepoint; that is all, when it is older than the first of it."""
        del self._waiting[self._marks.get(which, 0) :]

    def clear(self) -> None:
        """Forget everything: the transaction has ended."""
        self._waiting.clear()
        self._marks.clear()

    def follow(self) -> None:
        """The transaction is committed: do all of it."""
        waiting = list(self._waiting)
        self.clear()
        follow(waiting, Waiting.run)

"""The connections of one driver, closed before the process forks."""

import os
import weakref

from tenure.drivers.sql.sqlite.session import Location, Session
from tenure.waiting import Waiters


class Forks:
    """Closes the connections of some sessions before the process forks.

    Both sides of the fork open their own again when they next need one. A transaction under way is awaited first.
    What is registered for forks stays so for the life of the process: this object does, its sessions need not.
    """

    def __init__(self) -> None:
        self.sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._suspended: list[Session] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._suspend, after_in_parent=self._resume, after_in_child=self._resume)

    def _suspend(self) -> None:
        self._suspended = list(self.sessions)
        for session in self._suspended:
            session.suspend()

    def _resume(self) -> None:
        while self._suspended:
            self._suspended.pop().resume()


class Sessions:
    """Makes the sessions of one driver, and sees to it that none of them has a connection while the process forks."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._forks: Forks | None = None

    def new(self, waiters: Waiters) -> Session:
        """Return a new session."""
        if self._forks is None:
            self._forks = Forks()
        session = Session(self._location, waiters)
        self._forks.sessions.add(session)
        return session

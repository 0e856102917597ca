"""The connections of one driver, closed before the process forks."""

import os
import weakref

from tenure.drivers.sql.sqlite.session import Location, Session
from tenure.waiting import Waiters


class Sessions:
    """Makes sessions, and sees to it that none of them has a connection while the process forks.

    Both sides of the fork open their own again when they next need one. A transaction under way is awaited first.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._suspended: list[Session] = []
        self._watching = False

    def new(self, waiters: Waiters) -> Session:
        """Return a new session."""
        self._watch()
        session = Session(self._location, waiters)
        self._sessions.add(session)
        return session

    def suspend(self) -> None:
        """Close every connection and keep everybody out."""
        self._suspended = list(self._sessions)
        for session in self._suspended:
            session.suspend()

    def resume(self) -> None:
        """Let everybody in again."""
        while self._suspended:
            self._suspended.pop().resume()

    def _watch(self) -> None:
        if self._watching or not hasattr(os, "register_at_fork"):
            return
        self._watching = True
        # What is registered stays registered for the life of the process: it must not keep this object alive.
        this = weakref.ref(self)

        def before() -> None:
            sessions = this()
            if sessions is not None:
                sessions.suspend()

        def after() -> None:
            sessions = this()
            if sessions is not None:
                sessions.resume()

        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)

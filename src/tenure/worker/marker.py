"""The restart marker: an opaque text in the store, which ``tenure restart`` replaces.

A worker remembers the one that it finds first. When there is another one later, it finishes what runs and exits, and
whoever supervises it starts a new one.
"""

import time
from collections.abc import Callable
from typing import Final, cast

from tenure.errors import StoreError
from tenure.operating import Control
from tenure.outage import Outage
from tenure.queue import Queue, feature

INTERVAL: Final = 1.0
"""Seconds between two looks, at least."""


def control(queue: Queue) -> Control | None:
    """Return the driver as what tells workers what to do, if it can."""
    return cast("Control", queue) if feature(queue, Control) else None


class RestartMarker:
    """Whether a restart was asked for since this worker began. Without ``control`` none ever is."""

    def __init__(self, control: Control | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._control = control
        self._monotonic = monotonic
        self._outage = Outage("reading the restart marker")
        self._next_look = float("-inf")
        self._known = False
        self._first: str | None = None

    @property
    def due(self) -> bool:
        """Whether it is time to look again."""
        return self._control is not None and self._monotonic() >= self._next_look

    async def changed(self) -> bool:
        """Look into the store, and tell whether there is another marker than at first.

        A store that does not answer is asked again later, and holds up no claim: it is one of the outages that the log
        tells of. A marker that is gone asks for nothing; the store lost it.
        """
        if self._control is None:
            return False
        try:
            marker = await self._control.restart_marker()
        except StoreError as error:
            self._next_look = self._monotonic() + max(INTERVAL, self._outage.failed(error))
            return False
        self._next_look = self._monotonic() + INTERVAL
        self._outage.succeeded()
        if not self._known:
            self._known, self._first = True, marker
        return marker is not None and marker != self._first

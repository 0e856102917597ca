"""Which server has a key, and where a call goes on when it came to the wrong one. Does no I/O.

What must be asked for is asked by an ``Inquiry``, which the asynchronous and the blocking side carry out alike.
"""

import random
import time
from collections.abc import Generator
from typing import NamedTuple, Protocol

from tenure.drivers.redis.connection import Reply
from tenure.drivers.redis.server import Server
from tenure.drivers.redis.trouble import Trouble, Unsent

Inquiry = Generator[tuple[Server, bytes], Reply, None]
"""Yields a server and a packed command; is sent the reply, or thrown the ``Trouble``."""

ANSWER = 1.0
"""Seconds that an inquiry waits for one answer."""


class Turn(NamedTuple):
    """What is to be done about a trouble: the call is sent again under the same number, for nothing was executed."""

    server: Server | None = None
    """Where to, this once; None: wherever the key now belongs."""
    asking: bool = False
    """That server takes it only with an ASKING before it."""
    pause: bool = False
    """Not at once: it will be some time until somebody takes it."""


class Topology(Protocol):
    """The servers that are one store. Shared by all loops and threads: each change is one assignment."""

    @property
    def due(self) -> bool:
        """What is known must be looked up, or looked up anew, before it is used."""
        ...

    @property
    def spread(self) -> bool:
        """Keys may lie on different servers."""
        ...

    @property
    def version(self) -> int:
        """Rises when servers have gone."""
        ...

    def look(self) -> Inquiry:
        """Look it up; raises a ``Trouble`` when nobody tells and nothing is known that may be used."""
        ...

    def server_of(self, key: bytes) -> Server | None:
        """Return the server that has a key; None when nobody is known to have it."""
        ...

    def slot_of(self, key: bytes) -> int:
        """Return a number that is equal for keys that can be named in one command."""
        ...

    def keeps(self, server: Server) -> bool:
        """Tell whether connections to it are of use."""
        ...

    def troubled(self, server: Server, trouble: Trouble) -> Turn | None:
        """Take a trouble that a call had with a server; None when it is for the call to judge."""
        ...


class Alone:
    """One server that has everything."""

    due = False
    spread = False
    version = 0

    def __init__(self, server: Server) -> None:
        self._server = server

    def look(self) -> Inquiry:
        """Look up nothing."""
        yield from ()

    def server_of(self, key: bytes) -> Server:  # noqa: ARG002
        """Return the server."""
        return self._server

    def slot_of(self, key: bytes) -> int:  # noqa: ARG002
        """Return the same for all keys."""
        return 0

    def keeps(self, server: Server) -> bool:
        """Tell whether it is the one."""
        return server is self._server

    def troubled(self, server: Server, trouble: Trouble) -> None:
        """Leave it to the call."""

    def __str__(self) -> str:
        return str(self._server)


_AT_ONCE = 4
"""How often a call is sent on without a pause."""
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.5


class Way:
    """One call's way to the server that takes it."""

    def __init__(self, topology: Topology, patience: float) -> None:
        """``patience``: for how many seconds it may be sent on."""
        self._topology = topology
        self._until = time.monotonic() + patience
        self._turns = 0
        self._pause = _FIRST_PAUSE
        self._connected_elsewhere = False
        self.server: Server | None = None
        """Where it goes next, if not to where its key belongs."""
        self.asking: bool = False

    def onward(self, server: Server | None, trouble: Trouble) -> float | None:
        """Take a trouble: return the seconds to wait before sending again, or None when the call must judge."""
        self.server, self.asking = None, False
        if server is None:
            return None
        turn = self._topology.troubled(server, trouble)
        if turn is None or time.monotonic() > self._until:
            return None
        if isinstance(trouble, Unsent):
            # Once, in case another has its place already; a server that is missed is the call's to report.
            if self._connected_elsewhere:
                return None
            self._connected_elsewhere = True
        self.server, self.asking = turn.server, turn.asking
        self._turns += 1
        if not turn.pause and self._turns <= _AT_ONCE:
            return 0.0
        pause = self._pause * random.uniform(0.5, 1.5)  # noqa: S311
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return pause

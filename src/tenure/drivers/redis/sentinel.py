"""A primary that sentinels watch: they name it, and name another one when it is lost."""

import time
from collections.abc import Sequence

from tenure.drivers.redis.connection import pack
from tenure.drivers.redis.server import Server
from tenure.drivers.redis.topology import Inquiry, Turn
from tenure.drivers.redis.trouble import Rejected, Trouble, Unsent

CONFIRM_EVERY = 1.0
"""Seconds after which the sentinels are asked again whether the primary is still the one.

A primary that was cut off takes writes for a moment when it is back, and loses them when it is demoted: whoever has an
open connection to it would not notice.
"""
_PAUSING = frozenset({"READONLY", "UNBLOCKED", "MASTERDOWN"})
"""Refusals of a server that is no primary, or not any more."""


class Sentinel:
    """The primary of that name, as the first sentinel to answer names it."""

    spread = False

    def __init__(self, sentinels: Sequence[Server], name: str, primary: Server) -> None:
        """``primary`` tells how any primary is entered; where it is, the sentinels tell."""
        self._sentinels = list(sentinels)
        self._name = name
        self._question = pack(b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", name)
        self._model = primary
        self._known: dict[tuple[str, int], Server] = {}
        self._primary: Server | None = None
        self._suspect = True
        self._confirmed_at = 0.0
        self.version: int = 0

    @property
    def due(self) -> bool:
        """The primary is not known, has given trouble, or was named too long ago."""
        return self._suspect or time.monotonic() - self._confirmed_at > CONFIRM_EVERY

    def look(self) -> Inquiry:
        """Ask one sentinel after the other."""
        why = "no sentinel answers"
        for sentinel in list(self._sentinels):
            try:
                address = yield sentinel, self._question
            except Rejected:
                why = "the sentinels refuse to answer"
            except Trouble:
                continue
            else:
                if address:
                    self._take(sentinel, address[0].decode(), int(address[1]))
                    return
                why = "the sentinels know no primary of that name"
        if self._suspect:
            raise Unsent(f"{why}; nothing was sent")
        # Those who watch are away, and what they watch gives no trouble.
        self._confirmed_at = time.monotonic()

    def _take(self, sentinel: Server, host: str, port: int) -> None:
        primary = self._known.get((host, port))
        if primary is None:
            primary = self._known.setdefault((host, port), self._model.at(host, port, primary_only=True))
        before = self._primary
        self._primary = primary
        self._suspect = False
        self._confirmed_at = time.monotonic()
        if self._sentinels[0] is not sentinel:
            self._sentinels = [sentinel, *(other for other in self._sentinels if other is not sentinel)]
        if before not in {None, primary}:
            self.version += 1

    def slot_of(self, key: bytes) -> int:  # noqa: ARG002
        """Return the same for all keys."""
        return 0

    def server_of(self, key: bytes) -> Server | None:  # noqa: ARG002
        """Return the primary."""
        return self._primary

    def keeps(self, server: Server) -> bool:
        """Tell whether it is the primary, or a sentinel."""
        return server is self._primary or server in self._sentinels

    def troubled(self, server: Server, trouble: Trouble) -> Turn | None:
        """Look for another primary after any trouble with this one, and wait for one that is being chosen."""
        if isinstance(trouble, Rejected) and trouble.code not in _PAUSING:
            return None
        if server is self._primary and not self._suspect:
            # The next look begins with another sentinel: this one may be the last to hear of a failover.
            self._sentinels = [*self._sentinels[1:], self._sentinels[0]]
            self._suspect = True
        if isinstance(trouble, Rejected):
            return Turn(pause=True)
        return Turn() if isinstance(trouble, Unsent) else None

    def __str__(self) -> str:
        return f"{self._name} of the sentinels at {', '.join(map(str, self._sentinels))}"

"""A cluster: the server of a key is the one that serves its slot. All keys of a queue lie in one slot."""

import random
import time
from collections.abc import Sequence

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from tenure.drivers.redis.connection import Reply, pack
from tenure.drivers.redis.server import Server
from tenure.drivers.redis.topology import Inquiry, Turn
from tenure.drivers.redis.trouble import Elsewhere, Rejected, Trouble, Unsent

LOOK_EVERY = 0.2
"""Seconds that lie between two looks at least."""
_SLOTS = pack(b"CLUSTER", b"SLOTS")
_PAUSING = frozenset({"TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "UNBLOCKED"})
"""Refusals that end by themselves, when a slot has moved or another server has taken over."""


class Cluster:
    """The nodes, and which slot each serves; learnt at first use, and again after each sign of a change."""

    spread = True

    def __init__(self, seeds: Sequence[Server]) -> None:
        self._seeds = seeds
        self._nodes: dict[tuple[str, int], Server] = {}
        self._owners: list[Server | None] | None = None
        self._serving: frozenset[Server] = frozenset()
        self._stale = True
        self._looked_at = 0.0
        self._best: Server | None = None
        """Whoever is likely to know what has changed."""
        self.version: int = 0

    @property
    def due(self) -> bool:
        """There has been a sign of a change, or nothing is known yet."""
        return self._stale and (self._owners is None or time.monotonic() - self._looked_at > LOOK_EVERY)

    def look(self) -> Inquiry:
        """Ask one node after the other which slots are whose."""
        last: Trouble = Unsent("no node is known; nothing was sent")
        for node in self._to_ask():
            try:
                ranges = yield node, _SLOTS
            except Trouble as trouble:
                last = trouble
            else:
                self._take(node, ranges)
                return
        self._looked_at = time.monotonic()
        if self._owners is None:
            raise last

    def _to_ask(self) -> list[Server]:
        serving = list(self._serving)
        # Not always the same one first: it may be the one that has not heard yet.
        random.shuffle(serving)
        first = [] if self._best is None else [self._best]
        return list(dict.fromkeys([*first, *serving, *self._seeds]))

    def _take(self, asked: Server, ranges: Reply) -> None:
        owners: list[Server | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, primary, *_ in ranges:
            owners[first : last + 1] = [self._node(asked, primary[0], primary[1])] * (last + 1 - first)
        serving = frozenset(owner for owner in owners if owner is not None)
        gone = self._serving - serving
        self._serving = serving
        self._owners = owners
        self._stale = not serving
        self._looked_at = time.monotonic()
        self._best = None
        if gone:
            self.version += 1

    def _node(self, asked: Server, host: bytes | str | None, port: int) -> Server:
        name = host.decode() if isinstance(host, bytes) else host
        if not name or name == "?":
            name = asked.host  # a node that does not know its own address is where it was reached
        node = self._nodes.get((name, port))
        return node or self._nodes.setdefault((name, port), self._seeds[0].at(name, port))

    def slot_of(self, key: bytes) -> int:
        """Return the key's slot."""
        return int(key_slot(key))

    def server_of(self, key: bytes) -> Server | None:
        """Return the node that serves the key's slot, as far as is known."""
        owners = self._owners
        owner = None if owners is None else owners[key_slot(key)]
        # Any node tells where to go, or that nobody serves the slot.
        return owner or next(iter(self._serving), None)

    def keeps(self, server: Server) -> bool:
        """Tell whether it serves slots, or is asked for them."""
        return server in self._serving or server in self._seeds

    def troubled(self, server: Server, trouble: Trouble) -> Turn | None:
        """Follow a redirection, wait for what is being moved, and look for another node when one is missed."""
        if isinstance(trouble, Elsewhere):
            node = self._node(server, trouble.host, trouble.port)
            if trouble.asking:
                return Turn(node, asking=True)
            if self._owners is not None:
                self._owners[trouble.slot] = node
                self._serving |= {node}
            self._best = node
            self._stale = True
            return Turn()
        if isinstance(trouble, Rejected):
            if trouble.code not in _PAUSING:
                return None
            self._stale = True
            return Turn(pause=True)
        self._stale = True
        if isinstance(trouble, Unsent):
            self._looked_at = 0.0  # it is gone: look at once, whenever the last look was
            return Turn()
        return None

    def __str__(self) -> str:
        return f"cluster at {', '.join(map(str, self._seeds))}"

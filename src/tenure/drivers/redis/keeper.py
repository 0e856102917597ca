"""The keeper: renews leases from a thread, on a connection of its own, whatever the event loop is busy with."""

from collections.abc import Sequence

from tenure.drivers.redis.blocking import BlockingLinks
from tenure.drivers.redis.endpoint import Endpoint
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.lanes import Patience
from tenure.drivers.redis.plain import PlainCall
from tenure.drivers.redis.renewing import Renewals
from tenure.drivers.redis.scripts import Scripts
from tenure.errors import StoreError
from tenure.queue import Lease, Renewal

MOVES = 1.0
"""Seconds to wait for a queue that nobody takes calls for: those of other queues are to be renewed meanwhile."""


class RedisKeeper:
    """See ``tenure.queue.Keeper``."""

    def __init__(self, endpoint: Endpoint, keyspace: Keyspace, scripts: Scripts, patience: Patience) -> None:
        self._links = BlockingLinks(endpoint, patience.answer, min(patience.moves, MOVES))
        self._keyspace = keyspace
        self._scripts = scripts

    def renew(self, leases: Sequence[Lease]) -> Sequence[Renewal]:
        """Extend each lease by its own length from now, and answer for each in order."""
        renewals = Renewals(leases)
        script = self._scripts["renew"]
        for queue, places, members in renewals.parts:
            keys = self._keyspace.queue(queue).all(script.keys)
            try:
                renewals.answered(places, self._links.perform(PlainCall.of(script, keys, members)))
            except StoreError as error:
                renewals.failed(error)
        return renewals.result()

    def close(self) -> None:
        """Close the connection; idempotent, and safe before first use."""
        self._links.close()

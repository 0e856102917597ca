"""The blocking pusher: the same numbered calls, from any thread, without an event loop."""

import os
from collections.abc import Sequence

from tenure.drivers.redis.blocking import BlockingLinks
from tenure.drivers.redis.durability import Assurance, ConfirmedCall, Known
from tenure.drivers.redis.endpoint import Endpoint
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.lanes import Lanes, NumberedCall, Patience
from tenure.drivers.redis.plain import PlainCall
from tenure.drivers.redis.pushing import Answer, Bulk, Part
from tenure.drivers.redis.scripts import Scripts
from tenure.errors import ConnectionFailed, DurabilityNotReached, NotSupported, OutcomeUnknown, StoreError
from tenure.queue import Capabilities, Push, Pushed


class RedisPusher:
    """See ``tenure.queue.Pusher``."""

    def __init__(
        self,
        endpoint: Endpoint,
        keyspace: Keyspace,
        capabilities: Capabilities,
        scripts: Scripts,
        patience: Patience,
        assurance: Assurance,
    ) -> None:
        self._links = BlockingLinks(endpoint, patience.answer, patience.moves)
        self._keyspace = keyspace
        self._capabilities = capabilities
        self._scripts = scripts
        self._patience = patience
        self._assurance = assurance
        self._known = Known(capabilities.driver)
        self._lanes: dict[int, Lanes] = {}
        self._registered: set[str] = set()

    def push(self, jobs: Sequence[Push]) -> Sequence[Pushed]:
        """Store the jobs: see ``tenure.queue.Queue.push``."""
        bulk = Bulk(jobs, self._capabilities)
        for part in bulk.parts:
            try:
                answer, unconfirmed = self._send(part)
            except (StoreError, NotSupported) as error:
                bulk.failed(part, error)
                break
            if unconfirmed is not None:
                bulk.unconfirmed(part, answer, unconfirmed)
                break
            bulk.answered(part, answer)
        return bulk.result()

    def _send(self, part: Part) -> tuple[Answer, DurabilityNotReached | None]:
        known = part.queue in self._registered
        if not known:
            try:
                self._links.perform(PlainCall(b"SADD", self._keyspace.queues, part.queue))
            except OutcomeUnknown as error:
                raise ConnectionFailed("the connection broke before the push was sent; nothing was stored") from error
            self._registered.add(part.queue)
        # Client ids are made in the process that uses them: a child's calls must not be taken for its parent's.
        lanes = self._lanes.setdefault(os.getpid(), Lanes())
        keys = self._keyspace.queue(part.queue)
        script = self._scripts["push"]
        call = NumberedCall(lanes, self._patience, part.queue, keys, script, part.arguments)
        short: DurabilityNotReached | None = None
        if part.durability == 1:
            reply = self._links.perform(call)
        else:
            confirmed = ConfirmedCall(call, part.durability, self._assurance, self._known)
            try:
                self._links.perform(confirmed)
            except DurabilityNotReached as unconfirmed:
                short = unconfirmed
            reply = confirmed.reply
        if known and reply[2:] == [b"1"]:
            # Its first jobs ever, and we knew it before: the store was emptied under us, and its list of queues too.
            self._registered.discard(part.queue)
        return Answer.told(reply[1]), short

    def close(self) -> None:
        """Close the connections; idempotent, and safe before first use."""
        self._links.close()

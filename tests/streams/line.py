"""A queue of the driver redis-streams, and its stream as one sees it from outside."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import redis

from tenure.drivers.redis import RedisQueue
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.layout import STREAMS
from tenure.drivers.redis.scripts import Scripts
from tests.redis.steps import Q

GROUP = "tenure"


class StreamLine:
    """One queue on one server; ``another()`` is what another process would make."""

    def __init__(self, url: str, client: redis.Redis, namespace: str, scripts: Scripts | None = None) -> None:
        self.client = client
        self.keys = Keyspace(namespace).queue(Q)
        self.key = self.keys.named("ready")
        self._made: list[RedisQueue] = []
        self._url, self._namespace = url, namespace
        self.scripts = scripts or Scripts(line="stream")
        self.queue = self.another()

    def another(self) -> RedisQueue:
        queue = RedisQueue.from_url(self._url, namespace=self._namespace, layout=STREAMS, scripts=self.scripts)
        self._made.append(queue)
        return queue

    async def aclose(self) -> None:
        for queue in self._made:
            await queue.aclose()

    def command(self, *words: bytes | str | int) -> Any:
        """Send a command and return the reply as RESP 2 has it."""
        self.client.set_response_callback(str(words[0]), lambda reply, **_: reply)
        return cast("Any", self.client).execute_command(*words)

    @property
    def entries(self) -> list[tuple[bytes, list[bytes]]]:
        """The stream's entries: their ids and their fields and values, flat."""
        return [(entry, fields) for entry, fields in self.command("XRANGE", self.key, "-", "+")]

    @property
    def pending(self) -> list[bytes]:
        """The entries that are pending, by their ids."""
        return [entry for entry, *_ in self.command("XPENDING", self.key, GROUP, "-", "+", 10_000)]

    @property
    def consumers(self) -> Mapping[bytes, int]:
        """How many entries are pending on each consumer."""
        told = [
            dict(zip(one[::2], one[1::2], strict=True)) for one in self.command("XINFO", "CONSUMERS", self.key, GROUP)
        ]
        return {one[b"name"]: one[b"pending"] for one in told}

    def plant(self, *fields: str, entry: str = "*") -> bytes:
        """Add an entry by hand."""
        added: bytes = self.command("XADD", self.key, entry, *fields)
        return added

    def read(self, consumer: str, count: int) -> Sequence[bytes]:
        """Read by hand, as a claim that breaks off behind its first command would leave it."""
        read = self.command("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, "STREAMS", self.key, ">")
        return [entry for entry, _ in read[0][1]] if read else []

    def retire(self, idle: int = 0) -> int:
        """Delete the consumers that have been idle for so many ms."""
        script = self.scripts["retire"]
        deleted: int = self.command("EVAL", script.source, 1, self.key, idle)
        return deleted

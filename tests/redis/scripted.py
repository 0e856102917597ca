"""The scripts called one by one, with a clock that the test sets: what the driver does, without the driver."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import redis
from redis.exceptions import NoScriptError

from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.scripts import Scripts, packaged

TTL = 3_600_000

# Only the clock is another: it stands in the queue's key `clock`, in ms. All else is what is shipped.
_CLOCK = """
local now = tonumber(redis.call('GET', string.match(KEYS[1], '^[^}]*}') .. ':clock'))
local later, micros = now, now * 1000
"""


def with_set_clock(**changed: str) -> Scripts:
    """Return the scripts with the test's clock in place of the server's; `changed` replaces whole sources."""
    return Scripts({**packaged(), "include/now": _CLOCK, **changed})


class Scripted:
    """One queue on one server."""

    def __init__(self, client: redis.Redis, namespace: str, scripts: Scripts | None = None) -> None:
        self.client = client
        self.scripts = scripts or Scripts()
        self.keys = Keyspace(namespace).queue("q")

    def key(self, name: str) -> bytes:
        return self.keys.named(name)

    def set_clock(self, now: int) -> None:
        self.client.set(self.key("clock"), now)

    def call(self, name: str, arguments: Sequence[Any] = (), **named: str) -> Any:
        """Call a script; `named` gives the keys that are a call's own (client, fresh, leftover)."""
        script = self.scripts[name]
        keys = [self.keys.named(named.get(key.replace(":", "_"), key)) for key in script.keys]
        try:
            return self.command("EVALSHA", script.digest, len(keys), *keys, *arguments)
        except NoScriptError:
            return self.command("EVAL", script.source, len(keys), *keys, *arguments)

    def command(self, *arguments: Any) -> Any:
        return cast("Any", self.client).execute_command(*arguments)

    def numbered(self, name: str, client: str, number: int, arguments: Sequence[Any] = (), **named: str) -> Any:
        """Call a script as a client's call of that number."""
        repeat = named.pop("repeat", "0")
        own = {"client": f"client:{client}", "fresh": f"gone:{client}-{number}", **named}
        return self.call(name, [number, repeat, TTL, *arguments], **own)

    def push(self, client: str, number: int, *jobs: tuple[str, str, bytes]) -> Any:
        return self.numbered("push", client, number, [argument for job in jobs for argument in job])

    def claim(
        self,
        client: str,
        number: int,
        limit: int = 10,
        lease: int = 1000,
        token: str = "t",
        suspects: int = 1,
        crash_limit: int = 3,
        repeat: int = 0,
    ) -> Any:
        arguments = [limit, lease, token, suspects, crash_limit]
        return self.numbered("claim", client, number, arguments, repeat=str(repeat))

    def settle(self, client: str, number: int, acks: Sequence[Any], others: Sequence[tuple[Any, ...]] = ()) -> Any:
        arguments = [len(acks), *acks, *(argument for other in others for argument in other)]
        return self.numbered("settle", client, number, arguments)

    def listed(self, state: str, limit: int) -> list[str]:
        """Return the ids of a listing, read in pages."""
        ids: list[str] = []
        line, place, mark = b"1", b"", b""
        while line:
            _, line, place, mark, *page = self.call(state, [limit, line, place, mark])
            assert len(page) == 3 * limit or not line
            ids += [entry.partition(b"|")[0].decode() for entry in page[::3]]
        return ids

    def dump(self) -> dict[str, Any]:
        """Return all that the queue's keys hold, by name."""
        start = self.key("")
        held: dict[str, Any] = {}
        for key in sorted(self.client.scan_iter(match=re.sub(rb"([{}])", rb"\\\1", start) + b"*", count=1000)):
            name = key.removeprefix(start).decode()
            if name != "clock":
                value = self._value(key)
                if value == []:
                    continue  # a stream stays when its last record goes
                # Leftovers are listed by the whole names of their keys.
                held[name] = [each.removeprefix(start) for each in value] if name == "gone" else value
        return held

    def _value(self, key: bytes) -> Any:
        client = self.client
        kind = cast("bytes", client.type(key))
        if kind == b"string":
            return client.get(key)
        if kind == b"hash":
            return client.hgetall(key)
        if kind == b"list":
            return client.lrange(key, 0, -1)
        if kind == b"stream":
            return [fields for _, fields in cast("Sequence[tuple[bytes, Mapping[bytes, bytes]]]", client.xrange(key))]
        pairs = cast("Sequence[tuple[bytes, float]]", client.zrange(key, 0, -1, withscores=True))
        return [(member, int(score)) for member, score in pairs]

"""The names of all keys, made in one place.

All keys of a queue share the hash tag ``{namespace:queue}``, so that a script may touch them together on a cluster.
"""

import re
from collections.abc import Sequence

from tenure import naming
from tenure.errors import InvalidOption

_PREFIX = re.compile(r"[A-Za-z0-9._:-]{0,128}", re.ASCII)


class QueueKeys:
    """The keys of one queue."""

    def __init__(self, start: str) -> None:
        self._start = start
        self._named: dict[tuple[str, ...], tuple[bytes, ...]] = {}

    def named(self, name: str) -> bytes:
        """Return the key of that name, as it stands in the scripts' headers."""
        return f"{self._start}:{name}".encode()

    def all(self, names: tuple[str, ...]) -> tuple[bytes, ...]:
        """Return the keys of those names, in order."""
        keys = self._named.get(names)
        if keys is None:
            keys = self._named[names] = tuple(self.named(name) for name in names)
        return keys

    def client(self, client: str) -> bytes:
        """Return the key that holds a client's last call number with its answer (P1)."""
        return f"{self._start}:client:{client}".encode()

    def leftover(self, name: str) -> bytes:
        """Return the key under which a clear leaves the records that it removed."""
        return f"{self._start}:gone:{name}".encode()


class Keyspace:
    """The keys of one namespace. Refuses, with ``InvalidOption``, names that could reach another one's."""

    def __init__(self, namespace: str, prefix: str = "") -> None:
        self.namespace: str = naming.check_namespace(namespace)
        if not _PREFIX.fullmatch(prefix):
            raise InvalidOption(
                f"prefix {naming.shown(prefix)} is not a key prefix: at most 128 of letters, digits, '.', '_', ':', '-'"
            )
        self._prefix = prefix
        self._queues: dict[str, QueueKeys] = {}

    @property
    def queues(self) -> bytes:
        """The key of the set of queues that were ever pushed to."""
        return f"{self._prefix}{self.namespace}:queues".encode()

    @property
    def restart(self) -> bytes:
        """The key of the restart marker."""
        return f"{self._prefix}{self.namespace}:restart".encode()

    def queue(self, name: str) -> QueueKeys:
        """Return the keys of a queue."""
        keys = self._queues.get(name)
        if keys is None:
            keys = QueueKeys(f"{self._prefix}{{{self.namespace}:{naming.check_queue(name)}}}")
            self._queues[name] = keys
        return keys

    def wake(self, queues: Sequence[str]) -> list[bytes]:
        """Return the wake-up keys of queues, in order."""
        return [self.queue(name).all(("wake",))[0] for name in queues]

    def paused(self, queues: Sequence[str]) -> list[bytes]:
        """Return the keys that tell whether queues are paused, in order."""
        return [self.queue(name).all(("paused",))[0] for name in queues]

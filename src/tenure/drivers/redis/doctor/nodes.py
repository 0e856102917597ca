"""The nodes of a cluster: which slots are served, and a key by which each node can be asked."""

from collections.abc import Iterator, Mapping
from itertools import count

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from tenure.drivers.redis.doctor.facts import Ask, serious
from tenure.operating import Finding


class Nodes:
    """What a node said of all of them."""

    def __init__(self, keys: Mapping[str, bytes], served: int) -> None:
        self.keys: Mapping[str, bytes] = keys
        """A key in the slots of each primary, by the primary's name."""
        self.served: int = served

    def check(self) -> Iterator[Finding]:
        """Judge whether all slots are served."""
        missing = REDIS_CLUSTER_HASH_SLOTS - self.served
        if missing:
            yield serious(
                "cluster",
                f"{missing:,} of {REDIS_CLUSTER_HASH_SLOTS:,} slots are served by nobody",
                "queues whose slot is among them are refused (CLUSTERDOWN), and by default all others too",
                "bring the missing nodes back, or give their slots to others (redis-cli --cluster fix)",
            )


async def read(ask: Ask) -> Nodes:
    """Ask which primary serves what."""
    keys: dict[str, bytes] = {}
    served = 0
    for first, last, primary, *_ in await ask(b"CLUSTER", "SLOTS"):
        host = primary[0].decode(errors="replace") if isinstance(primary[0], bytes) else "?"
        served += last + 1 - first
        keys.setdefault(f"{host}:{primary[1]}", _key_within(first, last))
    return Nodes(keys, served)


def _key_within(first: int, last: int) -> bytes:
    return next(key for number in count() if first <= key_slot(key := str(number).encode()) <= last)

"""What lies under our keys: types, counters, and the fence, which no clock may be behind."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

from tenure.drivers.redis.doctor.facts import DENIED, Ask, serious, warning
from tenure.drivers.redis.keys import Keyspace, QueueKeys
from tenure.drivers.redis.layout import Layout
from tenure.errors import StoreRefused
from tenure.operating import Finding

READERS: Final[Mapping[str, bytes]] = {
    "jobs": b"HLEN",
    "running": b"HLEN",
    "delayed": b"ZCARD",
    "leased": b"ZCARD",
    "suspects": b"LLEN",
    "failed": b"HLEN",
    "failed:at": b"ZCARD",
    "unreadable": b"XLEN",
    "cancel": b"HLEN",
    "kept": b"HLEN",
    "kept:at": b"ZCARD",
    "gone": b"LLEN",
    "taken": b"HLEN",
    "wake": b"LLEN",
    "seq": b"GET",
    "fence": b"GET",
    "paused": b"GET",
    "unique": b"HLEN",
    "flows": b"HLEN",
    "flows:nodes": b"HLEN",
    "flows:due": b"LLEN",
    "flows:until": b"ZCARD",
    "flows:ids": b"ZCARD",
    "schedules": b"HLEN",
    "schedules:at": b"HLEN",
}
"""A command that reads each key, but for those of the line, and is refused when it holds something else."""
MARGIN: Final = 1_000_000
"""Microseconds that a fence may lie ahead of the clock: a burst of claims within one microsecond moves it on."""
MOST_QUEUES: Final = 1000
"""How many queues are looked at."""


async def check(ask: Ask, keyspace: Keyspace, layout: Layout) -> AsyncIterator[Finding]:
    """Look at each queue's keys, in constant time for each."""
    queues = await known(ask, keyspace)
    if queues is None:
        yield serious(
            "types",
            f"the key {keyspace.queues.decode()} does not hold the set of queues",
            "nothing can be pushed to a new queue",
            "find out which program uses the key, and give one of the two another prefix or namespace",
        )
        return
    if len(queues) > MOST_QUEUES:
        yield warning(
            "queues",
            f"there are {len(queues):,} queues; the first {MOST_QUEUES:,} were looked at",
            "listings of all queues grow slow",
            "use fewer queues: a queue is a kind of work, not a customer",
        )
    for queue in queues[:MOST_QUEUES]:
        async for finding in _queue(ask, queue, keyspace.queue(queue), {**READERS, **layout.readers}):
            yield finding


async def known(ask: Ask, keyspace: Keyspace) -> list[str] | None:
    """Return the queues that the store lists, sorted; none when that is forbidden, None when it holds no such list."""
    try:
        names = await ask(b"SMEMBERS", keyspace.queues)
    except StoreRefused as refusal:
        if refusal.code == "WRONGTYPE":
            return None
        if refusal.code not in DENIED:
            raise
        return []
    return sorted(name.decode(errors="replace") for name in names)


async def _queue(ask: Ask, name: str, keys: QueueKeys, readers: Mapping[str, bytes]) -> AsyncIterator[Finding]:
    held: dict[str, bytes | int | None] = {}
    wrong: list[str] = []
    for kind, reader in readers.items():
        try:
            held[kind] = await ask(reader, keys.named(kind))
        except StoreRefused as refusal:
            if refusal.code == "WRONGTYPE":
                wrong.append(keys.named(kind).decode())
            elif refusal.code not in DENIED:
                raise
    if wrong:
        yield serious(
            "types",
            f"queue {name}: what lies under {', '.join(wrong)} is not tenure's",
            "calls to the queue are refused (WRONGTYPE): nothing is pushed, claimed or settled",
            "find out which program uses the key, then move it away; give one of the two another prefix or namespace",
        )
    sequence = held.get("seq")
    if isinstance(sequence, bytes) and (not sequence.isdigit() or len(sequence) > 18):
        yield serious(
            "sequence",
            f"queue {name}: the sequence of incarnations is not a number",
            "pushes and claims are refused (WRONGVALUE)",
            f"set {keys.named('seq').decode()} to a whole number above all that were given, such as the time in ms",
        )
    fence = held.get("fence")
    if isinstance(fence, bytes):
        async for finding in _fence(ask, name, keys, fence):
            yield finding


async def _fence(ask: Ask, name: str, keys: QueueKeys, fence: bytes) -> AsyncIterator[Finding]:
    if not fence.isdigit():
        yield serious(
            "fence",
            f"queue {name}: the fence is not a number",
            "the next claim starts it anew from the clock; fences given before may be higher",
            "find out who wrote to the key",
        )
        return
    try:
        seconds, micros = await ask(b"TIME", key=keys.named("fence"))
    except StoreRefused as refusal:
        if refusal.code not in DENIED:
            raise
        return
    ahead = int(fence) - int(seconds) * 1_000_000 - int(micros)
    if ahead > MARGIN:
        yield serious(
            "fence",
            f"queue {name}: its last claim was made {ahead / 1_000_000:,.0f} s ahead of the server's clock",
            "the clock went back: leases and delayed jobs wait so much longer than they should",
            "put the server's clock right, and keep it so with NTP; claims pull back what lies too far ahead",
        )

"""The unreadable store: a stream, whose ids are the keys of its records, and rise with time."""

import re
from collections.abc import Iterator, Sequence

from tenure.drivers.redis.session import Session
from tenure.errors import InvalidOption
from tenure.naming import shown
from tenure.operating import UnreadableRecord
from tenure.summaries import check_limit

MOST = 500
"""How many records one call lists or removes at most."""
_KEY = re.compile(r"(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})", re.ASCII)


class UnreadableRecords:
    """The unreadable records, as one event loop sees them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def listed(self, queue: str, limit: int, after: str) -> list[UnreadableRecord]:
        """Return records, oldest first, those behind a key; without their bytes."""
        check_limit(limit)
        if after and not _KEY.fullmatch(after):
            raise InvalidOption(f"{shown(after)} is not the key of an unreadable record")
        records: list[UnreadableRecord] = []
        while len(records) < limit:
            reply = await self._session.run(queue, "unreadable", (after, min(MOST, limit - len(records))))
            if not reply:
                break
            records += _told(queue, reply)
            after = records[-1].key
        return records

    async def content(self, queue: str, key: str) -> bytes | None:
        """Return one record byte for byte, or None."""
        stream = self._session.keyspace.queue(queue).named("unreadable")
        if not _KEY.fullmatch(key):
            return None
        for _, flat in await self._session.command(b"XRANGE", stream, key, key):
            fields: dict[bytes, bytes] = dict(zip(flat[::2], flat[1::2], strict=True))
            return fields.get(b"record", b"")
        return None

    async def drop(self, queue: str, keys: Sequence[str]) -> list[bool]:
        """Remove records for good, and tell for each in order whether it was there."""
        self._session.keyspace.queue(queue)
        dropped = [False] * len(keys)
        places = [place for place, key in enumerate(keys) if _KEY.fullmatch(key)]
        for start in range(0, len(places), MOST):
            part = places[start : start + MOST]
            _, letters = await self._session.write(queue, "drop", [keys[place] for place in part])
            for place, letter in zip(part, letters.decode(), strict=True):
                dropped[place] = letter == "y"
        return dropped


def _told(queue: str, reply: Sequence[bytes | int]) -> Iterator[UnreadableRecord]:
    for key, job_id, reason, size in zip(*(iter(reply),) * 4, strict=True):
        named = _text(key)
        yield UnreadableRecord(
            queue=queue,
            key=named,
            id=_text(job_id),
            reason=_text(reason),
            set_aside_at=int(named.partition("-")[0]) / 1000,
            size=int(size),
        )


def _text(told: bytes | int) -> str:
    return told.decode(errors="replace") if isinstance(told, bytes) else str(told)

"""The unreadable store of one queue in memory (P11)."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from tenure.operating import UnreadableRecord
from tenure.summaries import check_limit, number_after, record_number


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that was set aside whole."""

    id: str
    envelope: bytes = field(repr=False)
    reason: str
    set_aside_at: float


class UnreadableRecords:
    """Records by rising numbers, which are never used again."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._numbers: list[int] = []
        self._records: dict[int, Unreadable] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._numbers)

    def add(self, number: int, record: Unreadable) -> None:
        """Take a record in; its number is higher than all before."""
        self._numbers.append(number)
        self._records[number] = record

    def page(self, limit: int, after: str) -> list[UnreadableRecord]:
        """Return records, oldest first, those behind a key."""
        check_limit(limit)
        start = bisect_right(self._numbers, number_after(after))
        return [_told(self._queue, number, self._records[number]) for number in self._numbers[start : start + limit]]

    def content(self, key: str) -> bytes | None:
        """Return one record byte for byte, or None."""
        number = record_number(key)
        record = None if number is None else self._records.get(number)
        return None if record is None else record.envelope

    def drop(self, key: str) -> bool:
        """Remove a record; False when there is none with this key."""
        number = record_number(key)
        if number is None or self._records.pop(number, None) is None:
            return False
        del self._numbers[bisect_left(self._numbers, number)]
        return True


def _told(queue: str, number: int, record: Unreadable) -> UnreadableRecord:
    return UnreadableRecord(
        queue=queue,
        key=str(number),
        id=record.id,
        reason=record.reason,
        set_aside_at=record.set_aside_at,
        size=len(record.envelope),
    )

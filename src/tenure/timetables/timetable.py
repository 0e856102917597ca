"""What every timetable can tell, and what follows from it."""

from collections import deque
from collections.abc import Iterator
from typing import Protocol


class Timetable(Protocol):
    """Slots in time, in seconds since 1970."""

    @property
    def text(self) -> str:
        """What it was made from, for people."""
        ...

    def next(self, after: float) -> float | None:
        """Return the first slot behind an instant, or None if there is none any more."""
        ...

    def slots(self, after: float) -> Iterator[float]:
        """Yield the slots behind an instant, in order; cheaper than asking for each next one."""
        ...


def last_slot(timetable: Timetable, after: float, until: float) -> float | None:
    """Return the last slot, ``after`` < it <= ``until``, or None; at the same price however many there are."""
    found = timetable.next(after)
    if found is None or found > until:
        return None
    end = until
    while end - found > 0.0005:
        middle = (found + end) / 2
        later = timetable.next(middle)
        if later is not None and later <= until:
            found = later
        else:
            end = middle
    return found


def newest_slots(timetable: Timetable, after: float, until: float, most: int) -> list[float]:
    """Return the slots, ``after`` < each <= ``until``, the newest ``most`` of them, in order.

    Looks back from the end in stretches that double, so that it costs what it brings and not what it leaves out.
    """
    stretch = 1.0
    while True:
        start = max(after, until - stretch)
        found: deque[float] = deque(maxlen=most)
        seen = 0
        for slot in timetable.slots(start):
            if slot > until:
                break
            found.append(slot)
            seen += 1
        if seen >= most or start <= after:
            return list(found)
        stretch *= 2

"""What is to be done about a schedule that is due: which of its slots fire, and how far its cursor moves."""

from typing import Final, NamedTuple

from tenure.schedules import MOST_FIRED
from tenure.timetables import Definition, last_slot, newest_slots

GRACE: Final = 10.0
"""Seconds by which a slot may be late and is not missed yet: for ``catch_up="skip"``."""
MOST_CAUGHT_UP: Final = 1000
"""Slots that ``catch_up="all"`` goes back at most."""


class Step(NamedTuple):
    """One step of a schedule."""

    slots: tuple[float, ...]
    """Those that fire."""
    upto: float
    """Where the cursor moves to."""
    passed_over: bool
    """There were slots before that do not fire."""


def following(definition: Definition, cursor: float) -> float | None:
    """Return the slot that is next, whether or not it is due; None if there is none any more."""
    return definition.timetable.next(_start(definition, cursor))


def plan(definition: Definition, cursor: float, now: float) -> Step | None:
    """Return the next step of a schedule, at a time by the store's clock; None when nothing is due."""
    timetable, after = definition.timetable, _start(definition, cursor)
    last = last_slot(timetable, after, now)
    if last is None:
        return None
    if definition.catch_up == "all":
        slots = newest_slots(timetable, after, now, MOST_CAUGHT_UP)[:MOST_FIRED]
    elif definition.catch_up == "skip":
        slots = newest_slots(timetable, max(after, now - GRACE), now, MOST_FIRED)
    else:
        slots = [last]
    if not definition.overlap:
        slots = slots[-1:]
    if not slots:
        return Step((), last, passed_over=True)
    return Step(tuple(slots), slots[-1], passed_over=timetable.next(after) != slots[0])


def _start(definition: Definition, cursor: float) -> float:
    return max(cursor, definition.since)

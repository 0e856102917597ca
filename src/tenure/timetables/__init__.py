"""When something is due: cron expressions in a time zone, and intervals.

A timetable is pure arithmetic: it reads no clock and keeps nothing but what it has worked out. Its slots are whole
seconds, or milliseconds, since 1970, the same in every process that has the same database of time zones.
"""

from tenure.timetables.cron import Cron
from tenure.timetables.definition import CatchUp, Definition, When
from tenure.timetables.interval import Interval
from tenure.timetables.timetable import Timetable, last_slot, newest_slots

__all__ = ["CatchUp", "Cron", "Definition", "Interval", "Timetable", "When", "last_slot", "newest_slots"]

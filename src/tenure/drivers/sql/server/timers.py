"""The statements about schedules, one a role; the others, and how they are written, are in ``statements``."""

from typing import Final

from tenure.drivers.sql.server.texts import Differ

LIST: Final = """
SELECT name, slot, paused, last_job, definition FROM {schedules} WHERE queue = %(queue)s ORDER BY name
"""
"""The schedules of a queue; ``slot`` is the cursor."""

LOCK: Final = "SELECT last_job FROM {schedules} WHERE queue = %(queue)s AND name = %(name)s FOR UPDATE"
"""A schedule that nobody else changes until the end."""

DEFINE: Final = "UPDATE {schedules} SET definition = %(definition)s WHERE queue = %(queue)s AND name = %(name)s"
"""Another definition."""

ADD: Final = Differ(
    postgresql="""
INSERT INTO {schedules} (queue, name, slot, definition) VALUES (%(queue)s, %(name)s, %(now)s, %(definition)s)
ON CONFLICT DO NOTHING
""",
    mysql="""
INSERT INTO {schedules} (queue, name, slot, definition) VALUES (%(queue)s, %(name)s, %(now)s, %(definition)s)
ON DUPLICATE KEY UPDATE slot = slot
""",
)
"""A new schedule, unless there is one."""

MOVE: Final = """
UPDATE {schedules} SET slot = %(slot)s, last_job = COALESCE(NULLIF(%(job)s, ''), last_job)
WHERE queue = %(queue)s AND name = %(name)s AND slot = %(seen)s AND paused = 0 AND %(slot)s <= %(now)s
"""
"""Move a cursor, if it is where it was seen and the slot is due, and remember the job that is pushed, unless it is ''.
Whoever is second waits here, and finds it moved."""

PAUSE: Final = "UPDATE {schedules} SET paused = 1 WHERE queue = %(queue)s AND name = %(name)s AND paused = 0"
"""Fire nothing."""

RESUME: Final = """
UPDATE {schedules} SET paused = 0, slot = GREATEST(slot, %(now)s)
WHERE queue = %(queue)s AND name = %(name)s AND paused = 1
"""
"""Fire again, from now on."""

REMOVE: Final = "DELETE FROM {schedules} WHERE queue = %(queue)s AND name = %(name)s"
"""A schedule is gone."""

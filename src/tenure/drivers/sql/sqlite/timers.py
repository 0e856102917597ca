"""The statements about schedules, one a role; the others are in ``statements``."""

from typing import Final

LIST: Final = """
SELECT name, cursor, paused, last_job, definition FROM tenure_schedules WHERE queue = ? ORDER BY name
"""
"""The schedules of a queue."""

DEFINE: Final = "UPDATE tenure_schedules SET definition = ? WHERE queue = ? AND name = ?"
"""Another definition."""

ADD: Final = "INSERT INTO tenure_schedules (definition, queue, name, cursor) VALUES (?, ?, ?, ?)"
"""A new schedule."""

MOVE: Final = """
UPDATE tenure_schedules SET cursor = :slot
WHERE queue = :queue AND name = :name AND cursor = :seen AND paused = 0 AND :slot <= :now RETURNING last_job
"""
"""Move a cursor, if it is where it was seen and the slot is due."""

REMEMBER: Final = "UPDATE tenure_schedules SET last_job = ? WHERE queue = ? AND name = ?"
"""The job that was pushed last."""

PAUSE: Final = "UPDATE tenure_schedules SET paused = 1 WHERE queue = ? AND name = ? AND paused = 0"
"""Fire nothing."""

RESUME: Final = """
UPDATE tenure_schedules SET paused = 0, cursor = max(cursor, ?) WHERE queue = ? AND name = ? AND paused = 1
"""
"""Fire again, from now on."""

REMOVE: Final = "DELETE FROM tenure_schedules WHERE queue = ? AND name = ?"
"""A schedule is gone."""

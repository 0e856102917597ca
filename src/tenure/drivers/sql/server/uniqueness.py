"""The statements that unique jobs take besides, one a role; how they are written is said in ``statements``."""

from typing import Final

from tenure.drivers.sql.server.texts import Differ

FIND_HOLDERS: Final = Differ(
    postgresql="""
SELECT id, locked FROM {jobs} WHERE queue = %(queue)s AND id {among:ids}
UNION ALL SELECT id, locked FROM {jobs} WHERE queue = %(queue)s AND locked {among:locks}
""",
    # As they are now, also in a transaction that sees what was there when it began.
    mysql="""
(SELECT id, locked FROM {jobs} WHERE queue = %(queue)s AND id {among:ids} LOCK IN SHARE MODE)
UNION ALL
(SELECT id, locked FROM {jobs} WHERE queue = %(queue)s AND locked {among:locks} LOCK IN SHARE MODE)
""",
)
"""Jobs that keep others away: by their ids, or by the texts by which they are unique."""

FIND_CLEARED_HOLDERS: Final = """
SELECT incarnation FROM {jobs}
WHERE queue = %(queue)s AND locked {among:locks} AND state IN (READY, SUSPECT, DELAYED) AND shelf <> %(line)s
ORDER BY locked FOR UPDATE
"""
"""Unique jobs that waited in a line that was cleared: they are gone, and only their rows are left."""

UNLOCK: Final = "UPDATE {jobs} SET locked = NULL WHERE incarnation {among:incarnations}"
"""They keep no others away."""

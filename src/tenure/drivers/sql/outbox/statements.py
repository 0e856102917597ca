"""Every statement of the outbox, one a role, written once for the servers and for SQLite.

Marks are those of ``tenure.drivers.sql.server.texts``. On SQLite ``FOR UPDATE`` is left out: its writers are alone.
"""

from typing import Final

from tenure.drivers.sql.server.texts import Differ, Insert

_LINE: Final = "namespace = %(namespace)s AND target = %(target)s AND queue = %(queue)s"

# --------------------------------------------------------------------------------------------------------- writing

WHEREABOUTS: Final = Differ(
    postgresql="""
SELECT {now}, current_database(), CAST(pg_postmaster_start_time() AS text),
       CAST(CAST(to_regclass('{outbox}') AS oid) AS bigint)
""",
    mysql="""
SELECT {now}, DATABASE(), CONCAT_WS(' ', @@hostname, @@port, @@datadir),
       (SELECT CAST(create_time AS CHAR) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = '{outbox}')
""",
)
"""The time, and in which database of which server the outbox is that a connection sees: the last column is empty when
it sees none, and nothing fails."""

ADD: Final = Insert(
    "outbox",
    {
        "namespace": "text",
        "target": "text",
        "queue": "text",
        "job": "text",
        "priority": "smallint",
        "durability": "smallint",
        "crash_limit": "bigint",
        "due": "bigint",
        "expires": "bigint",
        "keep": "bigint",
        "unique_key": "text",
        "created": "bigint",
        "envelope": "bytea",
    },
    postgresql="",
    mysql="",
)
"""Jobs for other connections."""

# ---------------------------------------------------------------------------------------------------------- moving

NEXT_NAMESPACE: Final = Differ(
    postgresql="""
SELECT namespace FROM {outbox} WHERE namespace > %(after)s
ORDER BY namespace LIMIT 1
""",
    mysql="""
SELECT min(namespace) FROM {outbox} WHERE namespace > %(after)s
""",
)
"""The first namespace behind another; no row, or an empty one, when there is none. Either server reads the whole index
when it is asked in the other's way, PostgreSQL until it has statistics."""

NEXT_TARGET: Final = Differ(
    postgresql="""
SELECT target FROM {outbox} WHERE namespace = %(namespace)s AND target > %(after)s
ORDER BY target LIMIT 1
""",
    mysql="""
SELECT min(target) FROM {outbox} WHERE namespace = %(namespace)s AND target > %(after)s
""",
)
"""The next connection of a namespace."""

NEXT_QUEUE: Final = Differ(
    postgresql="""
SELECT queue FROM {outbox} WHERE namespace = %(namespace)s AND target = %(target)s AND queue > %(after)s
ORDER BY queue LIMIT 1
""",
    mysql="""
SELECT min(queue) FROM {outbox} WHERE namespace = %(namespace)s AND target = %(target)s AND queue > %(after)s
""",
)
"""The next queue of a connection."""

WAITING: Final = f"""
SELECT count(*), (SELECT created FROM {{outbox}} WHERE {_LINE} ORDER BY id LIMIT 1) FROM {{outbox}} WHERE {_LINE}
"""  # noqa: S608 - a constant
"""How many jobs wait in a line, and when the first of them was written."""

FIND_CALL: Final = f"SELECT client, number, sent FROM {{outbox_relay}} WHERE {_LINE} FOR UPDATE"  # noqa: S608
"""A line's last call, which nobody else looks at until the end."""

ADD_CALL: Final = Differ(
    postgresql="""
INSERT INTO {outbox_relay} (namespace, target, queue, client, number, seen)
VALUES (%(namespace)s, %(target)s, %(queue)s, %(client)s, 0, %(seen)s) ON CONFLICT DO NOTHING
""",
    mysql="""
INSERT INTO {outbox_relay} (namespace, target, queue, client, number, seen)
VALUES (%(namespace)s, %(target)s, %(queue)s, %(client)s, 0, %(seen)s) ON DUPLICATE KEY UPDATE number = number
""",
)
"""A line of which nothing was ever moved."""

RECORD: Final = f"""
UPDATE {{outbox_relay}} SET client = %(client)s, number = %(number)s, sent = %(sent)s, seen = %(seen)s
WHERE {_LINE} AND client = %(client_before)s AND number = %(number_before)s
"""  # noqa: S608 - a constant
"""A call is about to be sent; no row is changed when somebody else has gone on meanwhile."""

ANSWERED: Final = f"""
UPDATE {{outbox_relay}} SET sent = NULL, seen = %(seen)s
WHERE {_LINE} AND client = %(client)s AND number = %(number)s AND sent IS NOT NULL
"""  # noqa: S608 - a constant
"""A call's answer is in; no row is changed when somebody else has gone on meanwhile."""

SIZES: Final = f"""
SELECT id, length(envelope), durability FROM {{outbox}} WHERE {_LINE} ORDER BY id LIMIT %(limit)s
"""  # noqa: S608 - a constant
"""The first jobs of a line, without what is in them."""

ROWS: Final = """
SELECT id, job, priority, durability, crash_limit, due, expires, keep, unique_key, envelope
FROM {outbox} WHERE id {among:ids} ORDER BY id
"""
"""Jobs, whole."""

REMOVE: Final = "DELETE FROM {outbox} WHERE id {among:ids}"
"""Jobs that were moved."""

# ----------------------------------------------------------------------------------------------------------- locks

TRY_LOCK: Final = Differ(
    postgresql="SELECT pg_try_advisory_xact_lock(%(key)s)",
    mysql="SELECT GET_LOCK(CONCAT('tenure.', LEFT(SHA1(CONCAT(DATABASE(), %(key)s)), 32)), 0)",
)
"""Keep other relays from a line. PostgreSQL's lock ends with its transaction, so that a pooler may lend the connection
by the transaction; MySQL's belongs to the connection, and is one of the whole server."""

UNLOCK: Final = Differ(
    postgresql="ROLLBACK",
    mysql="SELECT RELEASE_LOCK(CONCAT('tenure.', LEFT(SHA1(CONCAT(DATABASE(), %(key)s)), 32)))",
)
"""Let them."""

TAKE: Final = f"""
UPDATE {{outbox_relay}} SET seen = %(seen)s WHERE {_LINE} AND (seen <= %(now)s OR seen > %(latest)s)
"""  # noqa: S608 - a constant
"""SQLite's form of a lock: a line is somebody's until a time."""

GIVE_BACK: Final = f"UPDATE {{outbox_relay}} SET seen = 0 WHERE {_LINE}"  # noqa: S608 - a constant
"""It is nobody's."""

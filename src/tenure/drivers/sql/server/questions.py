"""The statements that read and list, one a role; the others, and how they are written, are in ``statements``."""

from typing import Final

from tenure.drivers.sql.server.texts import Differ

COUNTED: Final = """
SELECT sum(ready), sum(later), sum(leased), sum(failed), sum(unreadable),
       (SELECT count(*) FROM {jobs} WHERE shelf = %(queue)s AND state = LEASED AND place <= %(now)s)
FROM {counters} WHERE queue = %(queue)s
"""
"""The queue's counters, and how many leases lapsed and were not reclaimed; next to none while workers claim."""

NEXT_PLACE: Final = """
SELECT place, since FROM {jobs} WHERE shelf = %(shelf)s AND state = %(state)s AND place > %(place)s
ORDER BY place, entry LIMIT 1
"""
"""The first job of the next priority of a line. One text for all of them was read to the end of the line by MariaDB."""

FAILED_PAGE: Final = """
SELECT id, incarnation, deliveries - free, place, failure, envelope FROM {jobs}
WHERE shelf = %(shelf)s AND state = FAILED ORDER BY place, entry LIMIT %(limit)s OFFSET %(offset)s
"""
"""Failed jobs, the longest ago first."""

FAILED_ONE: Final = """
SELECT id, incarnation, deliveries - free, place, failure, envelope FROM {jobs}
WHERE queue = %(queue)s AND id = %(id)s AND state = FAILED
"""
"""One failed job."""

JOBS_PAGE: Final = """
SELECT place, entry, id, priority, deliveries - free, crashes, since, envelope FROM (
    (SELECT * FROM {jobs} WHERE shelf = %(shelf)s AND state = %(state)s AND place = %(place)s AND entry > %(entry)s
     ORDER BY entry LIMIT %(limit)s)
    UNION ALL
    (SELECT * FROM {jobs} WHERE shelf = %(shelf)s AND state = %(state)s AND place > %(place)s
     ORDER BY place, entry LIMIT %(limit)s)
) AS page ORDER BY place, entry LIMIT %(limit)s
"""
"""The first jobs of a line behind a place: the rest of that place, and those behind it."""

HELD_PAGE: Final = """
SELECT place, entry, id, incarnation, token, deliveries, free, crashes, length, keep, composition, flags,
       CASE WHEN substr(token, 1, %(length)s) = %(prefix)s THEN input END,
       CASE WHEN substr(token, 1, %(length)s) = %(prefix)s THEN envelope END, fence FROM (
    (SELECT * FROM {jobs} WHERE shelf = %(shelf)s AND state = LEASED AND place = %(place)s AND entry > %(entry)s
     ORDER BY entry LIMIT %(limit)s)
    UNION ALL
    (SELECT * FROM {jobs} WHERE shelf = %(shelf)s AND state = LEASED AND place > %(place)s
     ORDER BY place, entry LIMIT %(limit)s)
) AS page ORDER BY place, entry LIMIT %(limit)s
"""
"""The first leases behind a place; of others than this holder's, without the envelope."""

UNREADABLE_PAGE: Final = """
SELECT number, id, reason, set_aside, octet_length(envelope) FROM {unreadable}
WHERE queue = %(queue)s AND number > %(after)s ORDER BY number LIMIT %(limit)s
"""
"""Records that were set aside, the longest ago first, without their bytes."""

UNREADABLE_BYTES: Final = "SELECT envelope FROM {unreadable} WHERE number = %(number)s AND queue = %(queue)s"
"""One record, byte for byte."""

DROP_UNREADABLE: Final = "DELETE FROM {unreadable} WHERE number = %(number)s AND queue = %(queue)s"
"""One record is gone for good."""

# -------------------------------------------------------------------------------------------- in callers' transactions

WHEREABOUTS: Final = Differ(
    postgresql="""
SELECT current_setting('transaction_isolation') = 'read committed', current_database(),
       CAST(pg_postmaster_start_time() AS text), CAST(CAST(to_regclass('{jobs}') AS oid) AS bigint)
""",
    mysql="""
SELECT true, DATABASE(), CONCAT_WS(' ', @@hostname, @@port, @@datadir),
       (SELECT CAST(create_time AS CHAR) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = '{jobs}')
""",
)
"""Whether each statement of the transaction finds queues as they are now, and in which database and of which server
the tables are that it sees: its last column is empty when it sees none, and nothing fails."""

LINE: Final = """
SELECT {now}, line, EXISTS (SELECT 1 FROM {endings} AS e WHERE e.queue = q.number)
FROM {queues} AS q WHERE number = %(number)s
"""
"""The time, one queue's line, and whether ends of it are kept."""

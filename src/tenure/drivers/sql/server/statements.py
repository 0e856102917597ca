"""Every statement that runs inside a transition, one a role. Values are bound, never spliced in.

A text is written once where the databases agree; where they do not, both forms stand side by side. ``{jobs}`` is a
table, ``{now}`` the database's moving clock in microseconds, ``{among:x}`` the test whether a value is one of the list
``x``; ``READY SUSPECT DELAYED LEASED FAILED`` are the numbers 0 to 4.
"""

from typing import Final

from tenure.drivers.sql.server.texts import Differ, Each, Insert

# -------------------------------------------------------------------------------------------------- the transaction

NUMBER: Final = Differ(
    postgresql="""
INSERT INTO {clients} AS c (client, number, seen) VALUES (%(client)s, %(call)s, {now})
ON CONFLICT (client) DO UPDATE SET number = excluded.number, seen = excluded.seen WHERE c.number < excluded.number
""",
    mysql="""
INSERT INTO {clients} (client, number, seen) VALUES (%(client)s, %(call)s, {now})
ON DUPLICATE KEY UPDATE
    seen = IF(number < VALUES(number), VALUES(seen), seen), number = GREATEST(number, VALUES(number))
""",
)
"""Record a call; no row is changed when it was recorded before. The first step of every writing transaction: whoever
repeats the call waits here for the end of the first try."""

FORGET_CLIENT: Final = "DELETE FROM {clients} WHERE client = %(client)s"
"""A connection is closed: no call of it will be repeated."""

OLD_CLIENTS: Final = "SELECT client FROM {clients} WHERE seen < {now} - %(age)s ORDER BY seen LIMIT %(step)s"
"""Connections that wrote nothing for long; they may be idle, and begin anew when they write again."""

DROP_CLIENTS: Final = "DELETE FROM {clients} WHERE client {among:clients} AND seen < {now} - %(age)s"
"""Their calls are forgotten."""

COUNT: Final = Differ(
    postgresql="""
INSERT INTO {counters} AS c (queue, slot, ready, later, leased, failed, unreadable)
VALUES (%(queue)s, %(slot)s, %(ready)s, %(later)s, %(leased)s, %(failed)s, %(unreadable)s)
ON CONFLICT (queue, slot) DO UPDATE
SET ready = c.ready + excluded.ready, later = c.later + excluded.later, leased = c.leased + excluded.leased,
    failed = c.failed + excluded.failed, unreadable = c.unreadable + excluded.unreadable
""",
    mysql="""
INSERT INTO {counters} (queue, slot, ready, later, leased, failed, unreadable)
VALUES (%(queue)s, %(slot)s, %(ready)s, %(later)s, %(leased)s, %(failed)s, %(unreadable)s)
ON DUPLICATE KEY UPDATE
    ready = ready + VALUES(ready), later = later + VALUES(later), leased = leased + VALUES(leased),
    failed = failed + VALUES(failed), unreadable = unreadable + VALUES(unreadable)
""",
)
"""Move a queue's counters by what a transition moved. The last step: whoever moves the same slot waits for the end."""

CLOCK: Final = "SELECT {now}"
"""What time it is."""

NEXT_NUMBER: Final = Differ(
    postgresql="SELECT nextval('{numbers}') FROM generate_series(1, %(blocks)s)",
    mysql="INSERT INTO {numbers} () VALUES ()",
)
"""Take a block of numbers."""

DROP_NUMBER: Final = "DELETE FROM {numbers} WHERE number = LAST_INSERT_ID()"
"""Where numbers come from a table, it is to stay empty."""

# ---------------------------------------------------------------------------------------------------------- queues

LOCK_QUEUES: Final = "SELECT pg_advisory_xact_lock_shared(k) FROM unnest(CAST(%(keys)s AS bigint[])) AS k"
"""Nobody clears these queues until the end (PostgreSQL, where a lock on their rows would write to them)."""

LOCK_QUEUES_ALONE: Final = "SELECT pg_advisory_xact_lock(k) FROM unnest(CAST(%(keys)s AS bigint[])) AS k"
"""Nobody else changes anything in these queues until the end."""

FIND_QUEUES: Final = """
SELECT {now}, name, number, line, (SELECT min(shelf) FROM {cleared} AS c WHERE c.queue = q.number),
       EXISTS (SELECT 1 FROM {paused} AS p WHERE p.namespace = q.namespace AND p.name = q.name),
       (SELECT kept_until FROM {endings} AS e WHERE e.queue = q.number ORDER BY kept_until LIMIT 1),
       (SELECT todo FROM {compositions} AS c WHERE c.home = q.number AND todo IS NOT NULL ORDER BY todo LIMIT 1)
FROM (SELECT 1 AS one) AS o LEFT JOIN {queues} AS q ON q.namespace = %(namespace)s AND q.name {among:names}
"""
"""The time, and some queues: their numbers, an abandoned line if they have one, whether they are paused, until when the
first of their kept ends is kept, and when something is to be done with the first of their compositions."""

SEE_QUEUES: Final = """
SELECT {now}, name, number, line, (SELECT min(shelf) FROM {cleared} AS c WHERE c.queue = q.number),
       EXISTS (SELECT 1 FROM {paused} AS p WHERE p.namespace = q.namespace AND p.name = q.name),
       (SELECT kept_until FROM {endings} AS e WHERE e.queue = q.number ORDER BY kept_until LIMIT 1),
       (SELECT todo FROM {compositions} AS c WHERE c.home = q.number AND todo IS NOT NULL ORDER BY todo LIMIT 1),
       EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.shelf = q.line AND j.state = READY),
       EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.shelf = q.line AND j.state = SUSPECT),
       (SELECT place FROM {jobs} AS j WHERE j.shelf = q.line AND j.state = DELAYED ORDER BY place LIMIT 1),
       (SELECT place FROM {jobs} AS j WHERE j.shelf = q.number AND j.state = LEASED ORDER BY place LIMIT 1),
       (SELECT place - length FROM {jobs} AS j WHERE j.shelf = q.number AND j.state = LEASED
        ORDER BY place DESC LIMIT 1)
FROM (SELECT 1 AS one) AS o LEFT JOIN {queues} AS q ON q.namespace = %(namespace)s AND q.name {among:names}
"""
"""The same, and what a claim would find in each: ready? suspects? the next due time, the next deadline, the start of
the lease that lapses last."""

ADD_QUEUE: Final = Insert(
    "queues",
    {"number": "bigint", "line": "bigint", "namespace": "text", "name": "text"},
    postgresql="ON CONFLICT DO NOTHING",
    mysql="ON DUPLICATE KEY UPDATE number = number",
)
"""A queue that was never pushed to before."""

LIST_QUEUES: Final = "SELECT name FROM {queues} WHERE namespace = %(namespace)s ORDER BY name"
"""The names of all queues of a namespace."""

# --------------------------------------------------------------------------------------------------------- pushing

PUSH: Final = Insert(
    "jobs",
    {
        "incarnation": "bigint",
        "queue": "bigint",
        "id": "text",
        "shelf": "bigint",
        "state": "smallint",
        "place": "bigint",
        "entry": "bigint",
        "since": "bigint",
        "priority": "smallint",
        "crash_limit": "bigint",
        "expires": "bigint",
        "keep": "bigint",
        "envelope": "bytea",
    },
    postgresql="ON CONFLICT (queue, id) DO NOTHING",
    mysql="ON DUPLICATE KEY UPDATE incarnation = incarnation",
)
"""New jobs. An id that exists changes nothing."""

PUSH_UNIQUE: Final = Insert(
    "jobs",
    {**PUSH.columns, "unique_key": "text", "locked": "text"},
    postgresql="ON CONFLICT DO NOTHING",
    mysql="ON DUPLICATE KEY UPDATE incarnation = incarnation",
)
"""New jobs, some of them unique. An id that exists changes nothing, nor does a text by which another is unique; while
that other is not committed, or is about to go, this waits for its end."""

ON_DISK: Final = Differ(
    postgresql="""
SELECT current_setting('fsync') = 'on', CASE current_setting('synchronous_commit')
       WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
""",
    mysql="SELECT @@innodb_flush_log_at_trx_commit = 1",
)
"""See to it that this transaction is on the disk when it is committed, where that can be; whether it is."""

FIND_MINE: Final = "SELECT incarnation FROM {jobs} WHERE incarnation {among:incarnations}"
"""Which of these jobs are there."""

FIND_CLEARED: Final = """
SELECT incarnation, composition, node, tells, flags FROM {jobs}
WHERE queue = %(queue)s AND id {among:ids} AND state IN (READY, SUSPECT, DELAYED) AND shelf <> %(line)s
ORDER BY id FOR UPDATE
"""
"""Jobs with these ids that waited in a line that was cleared: they are gone, and only their rows are left."""

# -------------------------------------------------------------------------------------------------------- claiming

FARTHEST: Final = """
SELECT incarnation FROM {jobs} WHERE shelf = %(shelf)s AND state = LEASED AND place > %(now)s + length
ORDER BY place DESC, entry DESC LIMIT %(step)s FOR UPDATE SKIP LOCKED
"""
"""The leases whose deadlines a clock that went back has put out of reach, the farthest first."""

SET_DEADLINES: Final = "UPDATE {jobs} SET place = %(now)s + length WHERE incarnation {among:incarnations}"
"""A lease lasts its own length from now: it is renewed, or pulled back."""

LAPSED: Final = """
SELECT incarnation, crash_limit, crashes + 1 FROM {jobs}
WHERE shelf = %(shelf)s AND state = LEASED AND place <= %(now)s
ORDER BY place, entry LIMIT %(step)s FOR UPDATE SKIP LOCKED
"""
"""Leases past their deadline, the longest ago first, this lapse counted as a crash."""

DUE: Final = """
SELECT incarnation, crash_limit, crashes FROM {jobs}
WHERE shelf = %(shelf)s AND state = DELAYED AND place <= %(now)s
ORDER BY place, entry LIMIT %(step)s FOR UPDATE SKIP LOCKED
"""
"""Delayed jobs whose time has come, the earliest first."""

ENTER: Final = Each(
    ("g_incarnation", "g_shelf", "g_state", "g_entry", "g_since", "g_crashes"),
    "shelf = g_shelf, state = g_state, place = -priority, entry = g_entry, since = g_since, "
    "crashes = crashes + g_crashes, token = NULL, length = NULL",
)
"""A due job, or one whose lease lapsed, enters its line at the tail."""

FIRST: Final = """
SELECT place, entry, incarnation, id, crash_limit, expires, deliveries, free, crashes, cancel_requested, since,
       envelope, keep, composition, node, flags, input, fence
FROM {jobs} WHERE shelf = %(shelf)s AND state = %(state)s
ORDER BY place, entry LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
"""The first jobs of the ready line, or of the suspects', that nobody else is about to take."""

STEP_ASIDE: Final = "UPDATE {jobs} SET state = SUSPECT WHERE incarnation {among:incarnations}"
"""Ready jobs that are suspects to this claim join the suspects, keeping their place."""

LEASE: Final = """
UPDATE {jobs}
SET shelf = queue, state = LEASED, place = %(deadline)s, token = %(token)s, length = %(length)s,
    deliveries = deliveries + 1, fence = GREATEST(fence + 1, %(now)s), progress = NULL
WHERE incarnation {among:incarnations}
"""
"""Leases begin, and count as deliveries. A fence is never below the clock, so that it also rises for an id that comes
again."""

# ------------------------------------------------------------------------------------------------- leases, by token

HELD: Final = """
SELECT incarnation, queue, id, token, cancel_requested, keep, composition, node, tells, flags FROM {jobs}
WHERE incarnation {among:incarnations} AND state = LEASED ORDER BY incarnation FOR UPDATE
"""
"""The current leases of some jobs: nobody else ends them until this transaction does."""

RELEASE: Final = Each(
    ("g_incarnation", "g_shelf", "g_state", "g_place", "g_entry", "g_since", "g_free", "g_crashed"),
    "shelf = g_shelf, state = g_state, place = coalesce(g_place, -priority), entry = g_entry, since = g_since, "
    "free = free + g_free, crashes = crashes + g_crashed, token = NULL, length = NULL",
)
"""Jobs wait again."""

FAIL: Final = """
UPDATE {jobs}
SET state = FAILED, place = %(now)s, entry = %(entry)s, token = NULL, length = NULL, failure = %(failure)s,
    locked = NULL, composition = NULL, node = NULL, tells = NULL, flags = 0
WHERE incarnation = %(incarnation)s
"""
"""A job goes to the failed store, with the reason. It keeps no other away, and belongs to no composition."""

SET_ASIDE: Final = """
INSERT INTO {unreadable} (number, queue, id, incarnation, set_aside, reason, envelope)
SELECT %(number)s, queue, id, incarnation, %(now)s, %(reason)s, envelope FROM {jobs}
WHERE incarnation = %(incarnation)s
"""
"""A record is copied, byte for byte, to the unreadable ones, under a number never used again."""

REPORT: Final = "UPDATE {jobs} SET progress = %(progress)s WHERE incarnation = %(incarnation)s AND keep > 0"
"""How far an attempt has come. The next lease begins without."""

REMOVE: Final = "DELETE FROM {jobs} WHERE incarnation {among:incarnations}"
"""Jobs are gone."""

# -------------------------------------------------------------------------------------------- what is kept of jobs

END: Final = Insert(
    "endings",
    {
        "queue": "bigint",
        "id": "text",
        "incarnation": "bigint",
        "state": "text",
        "ended": "bigint",
        "kept_until": "bigint",
        "result": "bytea",
        "failure": "bytea",
    },
    postgresql="""ON CONFLICT (queue, id) DO UPDATE
SET incarnation = excluded.incarnation, state = excluded.state, ended = excluded.ended,
    kept_until = excluded.kept_until, result = excluded.result, failure = excluded.failure""",
    mysql="""ON DUPLICATE KEY UPDATE
    incarnation = VALUES(incarnation), state = VALUES(state), ended = VALUES(ended),
    kept_until = VALUES(kept_until), result = VALUES(result), failure = VALUES(failure)""",
)
"""How jobs ended."""

DROP_ENDS: Final = "DELETE FROM {endings} WHERE queue = %(queue)s AND id {among:ids}"
"""These ids begin a new life, or the time of their ends is over."""

OLD_ENDS: Final = """
SELECT id FROM {endings} WHERE queue = %(queue)s AND kept_until <= %(now)s
ORDER BY kept_until LIMIT %(step)s FOR UPDATE SKIP LOCKED
"""
"""Ends whose time is over, and that nobody else is about to remove."""

FIND_ENDS: Final = """
SELECT id, state, incarnation, ended, result, failure FROM {endings}
WHERE queue = %(queue)s AND id {among:ids} AND kept_until > %(now)s
"""
"""How jobs ended, as far as that is still kept."""

FIND_END_STATES: Final = """
SELECT id, state FROM {endings} WHERE queue = %(queue)s AND id {among:ids} AND kept_until > %(now)s
"""
"""The same, without their results."""

FIND_PROGRESS: Final = """
SELECT id, progress FROM {jobs}
WHERE queue = %(queue)s AND id {among:ids} AND state = LEASED AND progress IS NOT NULL
"""
"""How far the current attempts of jobs have come."""

# ------------------------------------------------------------------------------------------------------- operating

LOCK_JOBS: Final = """
SELECT id, incarnation, state, shelf, keep, composition, node, tells, flags FROM {jobs}
WHERE queue = %(queue)s AND id {among:ids}
ORDER BY id FOR UPDATE
"""
"""Where the jobs with these ids are, and what they belong to; they stay there until this transaction ends."""

FIND_JOBS: Final = """
SELECT id, state, shelf, CASE WHEN state = FAILED THEN failure END FROM {jobs}
WHERE queue = %(queue)s AND id {among:ids}
"""
"""Where the jobs with these ids are, and why those failed that did."""

REQUEST_CANCELS: Final = "UPDATE {jobs} SET cancel_requested = 1 WHERE incarnation {among:incarnations}"
"""The holders of running jobs are asked to stop."""

WAITING: Final = "SELECT sum(ready), sum(later) FROM {counters} WHERE queue = %(queue)s"
"""How many jobs wait, exactly, while nobody else changes anything in the queue."""

NEW_LINE: Final = "UPDATE {queues} SET line = %(line)s WHERE number = %(queue)s"
"""The queue is cleared: what waits does so in a line that is not read any more."""

ABANDON: Final = "INSERT INTO {cleared} (queue, shelf) VALUES (%(queue)s, %(shelf)s)"
"""Remember the old line until its rows are swept."""

LEFTOVERS: Final = """
SELECT incarnation, composition, node, tells, flags FROM {jobs}
WHERE shelf = %(shelf)s AND state IN (READY, SUSPECT, DELAYED)
LIMIT %(step)s FOR UPDATE SKIP LOCKED
"""
"""Some rows of an abandoned line that nobody else is about to remove."""

ANY_LEFT: Final = """
SELECT 1 FROM {jobs} WHERE shelf = %(shelf)s AND state IN (READY, SUSPECT, DELAYED) LIMIT 1
"""
"""Whether there are any at all."""

SWEPT: Final = "DELETE FROM {cleared} WHERE queue = %(queue)s AND shelf = %(shelf)s"
"""An abandoned line has no rows any more."""

FIND_FAILED: Final = """
SELECT incarnation, queue, id, unique_key FROM {jobs} WHERE incarnation {among:incarnations} AND state = FAILED
ORDER BY incarnation FOR UPDATE
"""
"""The failed jobs of these incarnations, and by which texts they are unique."""

RETRY: Final = Each(
    ("g_incarnation", "g_new", "g_shelf", "g_since"),
    "incarnation = g_new, locked = unique_key, shelf = g_shelf, state = READY, place = -priority, entry = g_new, "
    "since = g_since, expires = CASE WHEN expires > g_since THEN expires END, deliveries = 0, free = 0, crashes = 0, "
    "cancel_requested = 0, failure = NULL",
)
"""Failed jobs become new ones. An expiry that has passed is dropped: it would only fail the job again."""

PRUNABLE: Final = """
SELECT incarnation FROM {jobs}
WHERE shelf = %(shelf)s AND state = FAILED AND place <= %(until)s
ORDER BY place, entry LIMIT %(step)s FOR UPDATE SKIP LOCKED
"""
"""Jobs that failed by a time, the longest ago first."""

# ------------------------------------------------------------------------------------------------- telling workers

PAUSE: Final = Insert(
    "paused",
    {"namespace": "text", "name": "text", "since": "bigint"},
    postgresql="ON CONFLICT DO NOTHING",
    mysql="ON DUPLICATE KEY UPDATE since = since",
)
"""Claims leave a queue's jobs where they are from now on."""

RESUME: Final = "DELETE FROM {paused} WHERE namespace = %(namespace)s AND name = %(name)s"
"""Claims take them again."""

FIND_PAUSED: Final = "SELECT name FROM {paused} WHERE namespace = %(namespace)s AND name {among:names}"
"""Which queues are paused, though nothing was ever pushed to them."""

SET_SETTING: Final = Insert(
    "settings",
    {"namespace": "text", "name": "text", "value": "text"},
    postgresql="ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value",
    mysql="ON DUPLICATE KEY UPDATE value = VALUES(value)",
)
"""Tell the workers of a namespace something."""

FIND_SETTING: Final = "SELECT value FROM {settings} WHERE namespace = %(namespace)s AND name = %(name)s"
"""What they were told."""

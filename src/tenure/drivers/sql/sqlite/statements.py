"""Every statement that runs inside a transition, one a role. Values are bound, never spliced in.

``READY SUSPECT DELAYED LEASED FAILED`` are the numbers 0 to 4 (``schema``); the texts name them so, and are completed
once, here.
"""

import re
from typing import Final

from tenure.drivers.sql.sqlite import schema

_STATES: Final = re.compile(r"\b(READY|SUSPECT|DELAYED|LEASED|FAILED)\b")


def _text(template: str) -> str:
    return _STATES.sub(lambda match: str(getattr(schema, match.group())), template)


# -------------------------------------------------------------------------------------------------------------- queues

LOCK: Final = "UPDATE tenure_queues SET number = number WHERE false"
"""Take the lock for writing, and write nothing."""

FIND_QUEUE: Final = """
SELECT number, line, fence, ready, delayed, leased, failed, unreadable,
       (SELECT shelf FROM tenure_cleared WHERE tenure_cleared.queue = q.number LIMIT 1),
       EXISTS (SELECT 1 FROM tenure_paused AS p WHERE p.namespace = q.namespace AND p.name = q.name),
       (SELECT min(until) FROM tenure_endings WHERE tenure_endings.queue = q.number),
       (SELECT min(todo) FROM tenure_compositions WHERE home = q.number)
FROM tenure_queues AS q WHERE namespace = ? AND name = ?
"""
"""One queue: its numbers, its counters, an abandoned line if it has one, whether it is paused, until when the first of
its kept ends is kept, and when something is to be done with the first of its compositions."""

ADD_QUEUE: Final = "INSERT INTO tenure_queues (number, line, namespace, name) VALUES (?, ?, ?, ?)"
"""A queue that was never pushed to before."""

LIST_QUEUES: Final = "SELECT name FROM tenure_queues WHERE namespace = ? ORDER BY name"
"""The names of all queues of a namespace."""

NEXT_NUMBERS: Final = "UPDATE tenure_sequence SET value = value + ? WHERE one = 1 RETURNING value"
"""Take numbers from the sequence; the answer is the last of them."""

COUNT: Final = """
UPDATE tenure_queues
SET ready = ready + ?, delayed = delayed + ?, leased = leased + ?, failed = failed + ?, unreadable = unreadable + ?
WHERE number = ?
"""
"""Move a queue's counters by what a transition moved."""

SET_FENCE: Final = "UPDATE tenure_queues SET fence = ? WHERE number = ?"
"""Remember the highest fence that was given out."""

# ------------------------------------------------------------------------------------------------------------- pushing

PUSH: Final = _text("""
INSERT INTO tenure_jobs (incarnation, queue, id, shelf, state, rank, entry, since, priority, crash_limit, expires,
                         envelope, keep, unique_key, locked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?1, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13)
ON CONFLICT (queue, id) DO UPDATE
SET incarnation = excluded.incarnation, shelf = excluded.shelf, state = excluded.state, rank = excluded.rank,
    entry = excluded.entry, since = excluded.since, priority = excluded.priority, crash_limit = excluded.crash_limit,
    expires = excluded.expires, envelope = excluded.envelope, keep = excluded.keep,
    unique_key = excluded.unique_key, locked = excluded.locked, input = NULL,
    deliveries = 0, free = 0, crashes = 0, cancel_requested = 0
WHERE tenure_jobs.shelf <> excluded.shelf AND tenure_jobs.state IN (READY, SUSPECT, DELAYED)
      AND tenure_jobs.composition IS NULL
""")
"""A new job. An id that exists changes nothing, unless it waited in a line that was cleared: then it is gone."""

FIND_LOCK: Final = "SELECT incarnation, id, state, shelf FROM tenure_jobs WHERE queue = ? AND locked = ?"
"""The job that is unique by this text, if one waits or runs; or only its row, in a line that was cleared."""

UNLOCK: Final = "UPDATE tenure_jobs SET locked = NULL WHERE incarnation = ?"
"""A job that is gone, of which only the row is left, keeps no other away."""

# ------------------------------------------------------------------------------------------------------------ claiming

SIGHT: Final = _text("""
SELECT EXISTS (SELECT 1 FROM tenure_jobs WHERE shelf = :line AND state = READY),
       EXISTS (SELECT 1 FROM tenure_jobs WHERE shelf = :line AND state = SUSPECT),
       (SELECT min(rank) FROM tenure_jobs WHERE shelf = :line AND state = DELAYED),
       (SELECT min(rank) FROM tenure_jobs WHERE shelf = :number AND state = LEASED),
       (SELECT rank - length FROM tenure_jobs WHERE shelf = :number AND state = LEASED
        ORDER BY rank DESC LIMIT 1)
""")
"""What a claim would find: ready? suspects? the next due time, the next deadline, the start of the farthest lease."""

FARTHEST: Final = _text("""
SELECT incarnation, rank, length FROM tenure_jobs WHERE shelf = :number AND state = LEASED
ORDER BY rank DESC, entry DESC LIMIT :step
""")
"""The leases with the farthest deadlines, to find those that a clock which went back has put out of reach."""

SET_DEADLINE: Final = "UPDATE tenure_jobs SET rank = ? WHERE incarnation = ?"
"""Pull one deadline back."""

LAPSED: Final = _text("""
SELECT incarnation, crash_limit, crashes + 1, keep FROM tenure_jobs
WHERE shelf = :number AND state = LEASED AND rank <= :now ORDER BY rank, entry LIMIT :step
""")
"""Leases past their deadline, the longest ago first, this lapse counted as a crash."""

RECOVER: Final = _text("""
UPDATE tenure_jobs
SET shelf = ?, state = ?, rank = -priority, entry = ?, since = ?, crashes = crashes + 1, token = NULL, length = NULL
WHERE incarnation = ?
""")
"""A lapsed lease ends: its job is ready again, or a suspect, with one more crash."""

DUE: Final = _text("""
SELECT incarnation, crash_limit, crashes FROM tenure_jobs
WHERE shelf = :line AND state = DELAYED AND rank <= :now ORDER BY rank, entry LIMIT :step
""")
"""Delayed jobs whose time has come, the earliest first."""

PROMOTE: Final = "UPDATE tenure_jobs SET state = ?, rank = -priority, entry = ?, since = ? WHERE incarnation = ?"
"""A due job enters its line at the tail."""

FIRST: Final = """
SELECT rank, entry, incarnation, id, crash_limit, expires, deliveries, free, crashes, cancel_requested, since, envelope,
       keep, composition, node, flags, input
FROM tenure_jobs WHERE shelf = ? AND state = ? ORDER BY rank, entry LIMIT ?
"""
"""The first jobs of the ready line, or of the suspects'."""

STEP_ASIDE: Final = _text("UPDATE tenure_jobs SET state = SUSPECT WHERE incarnation = ?")
"""A ready job that is a suspect to this claim joins the suspects, keeping its place."""

LEASE: Final = _text("""
UPDATE tenure_jobs
SET shelf = ?, state = LEASED, rank = ?, token = ?, length = ?, deliveries = deliveries + 1 WHERE incarnation = ?
""")
"""A lease begins, and counts as a delivery."""

# ------------------------------------------------------------------------------------------------- leases, by token

RENEW: Final = _text("""
UPDATE tenure_jobs SET rank = ? + length
WHERE incarnation = ? AND queue = ? AND id = ? AND token = ? AND state = LEASED
RETURNING cancel_requested
""")
"""A current lease is extended by its own length; never a new one made."""

FINISH: Final = _text("""
DELETE FROM tenure_jobs WHERE incarnation = ? AND queue = ? AND id = ? AND token = ? AND state = LEASED
""")
"""The job of a current lease is gone."""

RELEASE: Final = _text("""
UPDATE tenure_jobs
SET shelf = ?, state = ?, rank = coalesce(?, -priority), entry = ?, since = ?, free = free + ?, crashes = crashes + ?,
    token = NULL, length = NULL
WHERE incarnation = ? AND queue = ? AND id = ? AND token = ? AND state = LEASED AND NOT cancel_requested
""")
"""The job of a current lease waits again, unless somebody asked to cancel it."""

FAIL: Final = _text("""
UPDATE tenure_jobs
SET state = FAILED, rank = ?, entry = ?, token = NULL, length = NULL, locked = NULL, composition = NULL, node = NULL,
    tells = NULL, flags = 0
WHERE incarnation = ? AND queue = ? AND id = ? AND token = ? AND state = LEASED
""")
"""The job of a current lease goes to the failed store. It keeps no other away, and belongs to no composition."""

ADD_FAILURE: Final = """
INSERT INTO tenure_failures (incarnation, reason, type, message, traceback) VALUES (?, ?, ?, ?, ?)
"""
"""Why it failed."""

SET_ASIDE: Final = _text("""
INSERT INTO tenure_unreadable (number, queue, id, incarnation, set_aside, reason, envelope)
SELECT ?, queue, id, incarnation, ?, ?, envelope FROM tenure_jobs
WHERE incarnation = ? AND queue = ? AND id = ? AND token = ? AND state = LEASED
""")
"""The record of a current lease is copied, byte for byte, to the unreadable ones, under a number never used again."""

# ------------------------------------------------------------------------------------------------- what is kept of jobs

END: Final = """
INSERT INTO tenure_endings (queue, id, incarnation, state, ended, until, result, reason, type)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, id) DO UPDATE
SET incarnation = excluded.incarnation, state = excluded.state, ended = excluded.ended, until = excluded.until,
    result = excluded.result, reason = excluded.reason, type = excluded.type
"""
"""How a job ended."""

DROP_END: Final = "DELETE FROM tenure_endings WHERE queue = ? AND id = ?"
"""The id begins a new life: the end of the old one is not this one's."""

FORGET_ENDS: Final = """
DELETE FROM tenure_endings
WHERE rowid IN (SELECT rowid FROM tenure_endings WHERE queue = ? AND until <= ? ORDER BY until LIMIT ?)
"""
"""Forget ends whose time is over."""

FIND_END: Final = """
SELECT state, incarnation, ended, result, reason, type FROM tenure_endings WHERE queue = ? AND id = ? AND until > ?
"""
"""How a job ended, if that is still kept."""

FIND_END_STATE: Final = "SELECT state FROM tenure_endings WHERE queue = ? AND id = ? AND until > ?"
"""The same, without the result."""

REPORT: Final = _text("""
INSERT INTO tenure_progress (incarnation, fraction, note)
SELECT incarnation, ?, ? FROM tenure_jobs
WHERE incarnation = ? AND queue = ? AND id = ? AND token = ? AND state = LEASED AND keep > 0
ON CONFLICT (incarnation) DO UPDATE SET fraction = excluded.fraction, note = excluded.note
""")
"""How far the attempt of a current lease has come."""

DROP_PROGRESS: Final = "DELETE FROM tenure_progress WHERE incarnation = ?"
"""The lease has ended."""

FIND_PROGRESS: Final = """
SELECT fraction, note FROM tenure_jobs JOIN tenure_progress USING (incarnation) WHERE queue = ? AND id = ?
"""
"""How far the current attempt of a job has come."""

# ----------------------------------------------------------------------------------------------------------- operating

FIND_JOB: Final = """
SELECT incarnation, state, shelf, keep, composition, node, tells, flags FROM tenure_jobs WHERE queue = ? AND id = ?
"""
"""Where the job with this id is, and what it belongs to."""

FIND_REASON: Final = "SELECT reason FROM tenure_failures WHERE incarnation = ?"
"""Why a failed job failed."""

REMOVE: Final = "DELETE FROM tenure_jobs WHERE incarnation = ?"
"""A waiting job is cancelled."""

REQUEST_CANCEL: Final = _text("UPDATE tenure_jobs SET cancel_requested = 1 WHERE incarnation = ? AND state = LEASED")
"""The holder of a running job is asked to stop."""

NEW_LINE: Final = "UPDATE tenure_queues SET line = ?, ready = 0, delayed = 0 WHERE number = ?"
"""The queue is cleared: what waits does so in a line that is not read any more."""

ABANDON: Final = "INSERT INTO tenure_cleared (queue, shelf) VALUES (?, ?)"
"""Remember the old line until its rows are swept."""

SWEEP: Final = """
DELETE FROM tenure_jobs WHERE incarnation IN (SELECT incarnation FROM tenure_jobs WHERE shelf = ? LIMIT ?)
RETURNING composition, node, tells, flags
"""
"""Remove some rows of an abandoned line, and tell what they belonged to."""

SWEPT: Final = "DELETE FROM tenure_cleared WHERE queue = ? AND shelf = ?"
"""An abandoned line has no rows any more."""

# ------------------------------------------------------------------------------------------------------------- reading

COUNT_LAPSED: Final = _text("""
SELECT count(*) FROM tenure_jobs WHERE shelf = :number AND state = LEASED AND rank <= :now
""")
"""How many leases lapsed and were not reclaimed; as long as workers claim, that is next to none."""

OLDEST: Final = _text("""
WITH RECURSIVE
states (state) AS (VALUES (READY), (SUSPECT)),
ranks (state, rank) AS (
    SELECT state, (SELECT min(rank) FROM tenure_jobs AS jobs WHERE shelf = :line AND jobs.state = states.state)
    FROM states
    UNION ALL
    SELECT state, (SELECT min(rank) FROM tenure_jobs AS jobs
                   WHERE shelf = :line AND jobs.state = ranks.state AND jobs.rank > ranks.rank)
    FROM ranks WHERE rank IS NOT NULL
)
SELECT min((SELECT since FROM tenure_jobs AS jobs
            WHERE shelf = :line AND jobs.state = ranks.state AND jobs.rank = ranks.rank ORDER BY entry LIMIT 1))
FROM ranks WHERE rank IS NOT NULL
""")
"""When the oldest ready job became ready: the first of each priority is looked at, and none besides."""

FAILED_PAGE: Final = _text("""
SELECT id, incarnation, deliveries - free, rank, reason, type, message, traceback, envelope
FROM tenure_jobs JOIN tenure_failures USING (incarnation)
WHERE shelf = :number AND state = FAILED ORDER BY rank, entry LIMIT :limit OFFSET :offset
""")
"""Failed jobs, the longest ago first."""

FAILED_ONE: Final = _text("""
SELECT id, incarnation, deliveries - free, rank, reason, type, message, traceback, envelope
FROM tenure_jobs JOIN tenure_failures USING (incarnation)
WHERE queue = :number AND id = :id AND state = FAILED
""")
"""One failed job."""

FIND_TEXT: Final = "SELECT unique_key FROM tenure_jobs WHERE queue = ? AND id = ?"
"""By which text a job is unique, if it is."""

RETRY: Final = _text("""
UPDATE tenure_jobs
SET incarnation = ?1, locked = unique_key, shelf = ?2, state = READY, rank = -priority, entry = ?1, since = ?3,
    expires = CASE WHEN expires > ?3 THEN expires END, deliveries = 0, free = 0, crashes = 0, cancel_requested = 0
WHERE incarnation = ?4 AND queue = ?5 AND id = ?6 AND state = FAILED
""")
"""A failed job becomes a new one. An expiry that has passed is dropped: it would only fail the job again."""

FORGET: Final = _text("DELETE FROM tenure_jobs WHERE incarnation = ? AND queue = ? AND id = ? AND state = FAILED")
"""A failed job is gone."""

DROP_FAILURE: Final = "DELETE FROM tenure_failures WHERE incarnation = ?"
"""Its reason goes with it."""

LAST_NUMBER: Final = "SELECT value FROM tenure_sequence"
"""The number that was last taken from the sequence."""

PRUNABLE: Final = _text("""
SELECT incarnation FROM tenure_jobs
WHERE shelf = :number AND state = FAILED AND rank <= :until AND entry <= :last ORDER BY rank, entry LIMIT :step
""")
"""Jobs that failed by a time, the longest ago first, and none that failed after a number was taken."""

# ---------------------------------------------------------------------------------------------------------- listing

JOBS_PAGE: Final = """
SELECT rank, entry, id, priority, deliveries - free, crashes, since, envelope FROM tenure_jobs
WHERE shelf = :shelf AND state = :state AND (rank, entry) > (:rank, :entry) ORDER BY rank, entry LIMIT :limit
"""
"""The first jobs of a line behind a place."""

HELD_PAGE: Final = _text("""
SELECT rank, entry, id, incarnation, token, deliveries, free, crashes, length, keep, composition, flags,
       CASE WHEN substr(token, 1, length(:prefix)) = :prefix THEN input END,
       CASE WHEN substr(token, 1, length(:prefix)) = :prefix THEN envelope END
FROM tenure_jobs
WHERE shelf = :number AND state = LEASED AND (rank, entry) > (:rank, :entry) ORDER BY rank, entry LIMIT :limit
""")
"""The first leases behind a place; of others than this holder's, without the envelope."""

UNREADABLE_PAGE: Final = """
SELECT number, id, reason, set_aside, length(envelope) FROM tenure_unreadable
WHERE queue = ? AND number > ? ORDER BY number LIMIT ?
"""
"""Records that were set aside, the longest ago first, without their bytes."""

UNREADABLE_BYTES: Final = "SELECT envelope FROM tenure_unreadable WHERE number = ? AND queue = ?"
"""One record, byte for byte."""

DROP_UNREADABLE: Final = "DELETE FROM tenure_unreadable WHERE number = ? AND queue = ?"
"""One record is gone for good."""

# -------------------------------------------------------------------------------------------------- telling workers

PAUSE: Final = "INSERT INTO tenure_paused (namespace, name, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
"""Claims leave a queue's jobs where they are from now on."""

RESUME: Final = "DELETE FROM tenure_paused WHERE namespace = ? AND name = ?"
"""Claims take them again."""

FIND_PAUSED: Final = "SELECT 1 FROM tenure_paused WHERE namespace = ? AND name = ?"
"""Whether a queue is paused, though nothing was ever pushed to it."""

SET_SETTING: Final = """
INSERT INTO tenure_settings (namespace, name, value) VALUES (?, ?, ?)
ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value
"""
"""Tell the workers of a namespace something."""

FIND_SETTING: Final = "SELECT value FROM tenure_settings WHERE namespace = ? AND name = ?"
"""What they were told."""

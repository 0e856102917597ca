"""The tables of the SQLite file, and how a file comes to have them."""

import sqlite3
from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from tenure.errors import StoreError

READY: Final = 0
SUSPECT: Final = 1
DELAYED: Final = 2
LEASED: Final = 3
FAILED: Final = 4

FIRST: Final = (
    # One counter for everything that must be told apart or sorted by age: incarnations, places in a line, shelves.
    """
    CREATE TABLE tenure_sequence (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        value INTEGER NOT NULL
    ) STRICT
    """,
    "INSERT INTO tenure_sequence (one, value) VALUES (1, 0)",
    # The counters are kept by the transitions, in their own transactions: counting a million rows takes 50 ms.
    """
    CREATE TABLE tenure_queues (
        number INTEGER PRIMARY KEY,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        line INTEGER NOT NULL,
        fence INTEGER NOT NULL DEFAULT 0,
        ready INTEGER NOT NULL DEFAULT 0 CHECK (ready >= 0),
        delayed INTEGER NOT NULL DEFAULT 0 CHECK (delayed >= 0),
        leased INTEGER NOT NULL DEFAULT 0 CHECK (leased >= 0),
        failed INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
        unreadable INTEGER NOT NULL DEFAULT 0 CHECK (unreadable >= 0),
        UNIQUE (namespace, name)
    ) STRICT
    """,
    # ``shelf`` is the queue's line while the job waits, else the queue's number. A clear gives the queue a new line,
    # so that a million jobs are out of reach in one step; their rows are swept later, a hundred at a time.
    # ``rank`` is what the state is sorted by: the priority's negative, the due time, the deadline, the time it failed.
    # Times are microseconds since 1970.
    """
    CREATE TABLE tenure_jobs (
        incarnation INTEGER PRIMARY KEY,
        queue INTEGER NOT NULL,
        id TEXT NOT NULL,
        shelf INTEGER NOT NULL,
        state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
        rank INTEGER NOT NULL,
        entry INTEGER NOT NULL,
        since INTEGER NOT NULL,
        priority INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
        crash_limit INTEGER,
        expires INTEGER,
        deliveries INTEGER NOT NULL DEFAULT 0 CHECK (deliveries >= 0),
        free INTEGER NOT NULL DEFAULT 0 CHECK (free BETWEEN 0 AND deliveries),
        crashes INTEGER NOT NULL DEFAULT 0 CHECK (crashes BETWEEN 0 AND deliveries),
        cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
        token TEXT,
        length INTEGER,
        envelope BLOB NOT NULL,
        CHECK ((state = 3) = (token IS NOT NULL)),
        CHECK ((state = 3) = (length IS NOT NULL))
    ) STRICT
    """,
    "CREATE UNIQUE INDEX tenure_jobs_by_id ON tenure_jobs (queue, id)",
    "CREATE INDEX tenure_jobs_by_line ON tenure_jobs (shelf, state, rank, entry)",
    """
    CREATE TABLE tenure_failures (
        incarnation INTEGER PRIMARY KEY,
        reason TEXT NOT NULL,
        type TEXT NOT NULL,
        message TEXT NOT NULL,
        traceback TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE tenure_unreadable (
        number INTEGER PRIMARY KEY,
        queue INTEGER NOT NULL,
        id TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        set_aside INTEGER NOT NULL,
        reason TEXT NOT NULL,
        envelope BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX tenure_unreadable_by_queue ON tenure_unreadable (queue, number)",
    # The lines that a clear has abandoned and whose rows are not all gone yet.
    """
    CREATE TABLE tenure_cleared (
        queue INTEGER NOT NULL,
        shelf INTEGER NOT NULL,
        PRIMARY KEY (queue, shelf)
    ) STRICT, WITHOUT ROWID
    """,
)

SECOND: Final = (
    # By name, not by number: a queue may be paused before anything was pushed to it.
    """
    CREATE TABLE tenure_paused (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        since INTEGER NOT NULL,
        PRIMARY KEY (namespace, name)
    ) STRICT, WITHOUT ROWID
    """,
    # What operators told all workers of a namespace.
    """
    CREATE TABLE tenure_settings (
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (namespace, name)
    ) STRICT, WITHOUT ROWID
    """,
)

THIRD: Final = (
    # Microseconds for which the job's end is kept; 0: it is not.
    "ALTER TABLE tenure_jobs ADD COLUMN keep INTEGER NOT NULL DEFAULT 0 CHECK (keep >= 0)",
    # How jobs ended, until their time is over; then rows are swept, some with each call that writes.
    """
    CREATE TABLE tenure_endings (
        queue INTEGER NOT NULL,
        id TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled', 'expired')),
        ended INTEGER NOT NULL,
        until INTEGER NOT NULL,
        result BLOB,
        reason TEXT NOT NULL,
        type TEXT NOT NULL,
        PRIMARY KEY (queue, id)
    ) STRICT
    """,
    "CREATE INDEX tenure_endings_by_time ON tenure_endings (queue, until)",
    # How far the current attempt of a running job has come.
    """
    CREATE TABLE tenure_progress (
        incarnation INTEGER PRIMARY KEY,
        fraction REAL NOT NULL CHECK (fraction BETWEEN 0 AND 1),
        note TEXT NOT NULL
    ) STRICT
    """,
)

FOURTH: Final = (
    # Jobs of other connections, pushed in a transaction of this file, until the relay has moved them there. None in
    # ``due`` is at once, none in ``expires`` never; ``keep`` is a duration.
    """
    CREATE TABLE tenure_outbox (
        id INTEGER PRIMARY KEY,
        namespace TEXT NOT NULL,
        target TEXT NOT NULL,
        queue TEXT NOT NULL,
        job TEXT NOT NULL,
        priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
        durability INTEGER NOT NULL DEFAULT 1 CHECK (durability BETWEEN 1 AND 3),
        crash_limit INTEGER,
        due INTEGER,
        expires INTEGER,
        keep INTEGER NOT NULL DEFAULT 0 CHECK (keep >= 0),
        created INTEGER NOT NULL,
        envelope BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX tenure_outbox_by_queue ON tenure_outbox (namespace, target, queue, id)",
    # The last call of the relay to a queue of a connection: recorded before it is sent, so that a successor repeats it.
    # ``sent`` is a JSON list of the ids of rows of which no answer is known.
    """
    CREATE TABLE tenure_outbox_relay (
        namespace TEXT NOT NULL,
        target TEXT NOT NULL,
        queue TEXT NOT NULL,
        client TEXT NOT NULL,
        number INTEGER NOT NULL,
        sent BLOB,
        seen INTEGER NOT NULL,
        PRIMARY KEY (namespace, target, queue)
    ) STRICT, WITHOUT ROWID
    """,
)

RELAYED: Final = (
    "ALTER TABLE tenure_outbox ADD COLUMN unique_key TEXT",
    # The last call of each relay that pushes to this file: whoever repeats it changes nothing. It is kept for good.
    """
    CREATE TABLE tenure_clients (
        client TEXT PRIMARY KEY,
        number INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)

COMPOSED: Final = (
    # The text by which a job is unique, and the same while the job waits or runs: then no other has it in its queue.
    "ALTER TABLE tenure_jobs ADD COLUMN unique_key TEXT",
    "ALTER TABLE tenure_jobs ADD COLUMN locked TEXT",
    # Of the member of a composition: that one's number, its own, and that of the node that is told of its end.
    "ALTER TABLE tenure_jobs ADD COLUMN composition INTEGER",
    "ALTER TABLE tenure_jobs ADD COLUMN node INTEGER",
    "ALTER TABLE tenure_jobs ADD COLUMN tells INTEGER",
    "ALTER TABLE tenure_jobs ADD COLUMN flags INTEGER NOT NULL DEFAULT 0",
    # What the job before it returned.
    "ALTER TABLE tenure_jobs ADD COLUMN input BLOB",
    "CREATE UNIQUE INDEX tenure_jobs_by_lock ON tenure_jobs (queue, locked) WHERE locked IS NOT NULL",
    # ``unended`` counts the nodes that have not ended, ``due`` those that wait for nothing and are to be opened, ended
    # or made jobs of; ``turn`` is the last number that such a one was given. ``todo`` is when claims of the home have
    # something to do with it: now while nodes are due, else when it is to be forgotten. ``queues`` is a JSON list of
    # names: its home, and then those of its jobs.
    """
    CREATE TABLE tenure_compositions (
        number INTEGER PRIMARY KEY,
        home INTEGER NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('chain', 'batch', 'workflow')),
        name BLOB NOT NULL,
        retention INTEGER NOT NULL,
        queues BLOB NOT NULL,
        created INTEGER NOT NULL,
        started INTEGER NOT NULL DEFAULT 0 CHECK (started IN (0, 1)),
        cancelling INTEGER NOT NULL DEFAULT 0 CHECK (cancelling IN (0, 1)),
        total INTEGER NOT NULL DEFAULT 0,
        succeeded INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        cancelled INTEGER NOT NULL DEFAULT 0,
        unended INTEGER NOT NULL DEFAULT 0 CHECK (unended >= 0),
        due INTEGER NOT NULL DEFAULT 0 CHECK (due >= 0),
        turn INTEGER NOT NULL DEFAULT 0,
        finished INTEGER,
        over_at INTEGER,
        todo INTEGER,
        CHECK (succeeded >= 0 AND failed >= 0 AND cancelled >= 0 AND succeeded + failed + cancelled <= total)
    ) STRICT
    """,
    "CREATE UNIQUE INDEX tenure_compositions_by_id ON tenure_compositions (home, id)",
    "CREATE INDEX tenure_compositions_by_todo ON tenure_compositions (home, todo)",
    "CREATE INDEX tenure_compositions_by_end ON tenure_compositions (home, over_at)",
    # A row for each node that has not ended and is no job yet. ``runs`` is on which endings it runs, NULL for a gate;
    # ``tells`` is a JSON list; ``turn`` is NULL while the node waits, and the last that came is the first to be worked
    # off. ``delay``, ``expires_in`` and ``keep`` are durations.
    """
    CREATE TABLE tenure_nodes (
        composition INTEGER NOT NULL,
        node INTEGER NOT NULL,
        needs INTEGER NOT NULL CHECK (needs >= 0),
        bad INTEGER NOT NULL DEFAULT 0 CHECK (bad IN (0, 1)),
        turn INTEGER,
        runs TEXT CHECK (runs IN ('success', 'failure', 'any')),
        tells BLOB NOT NULL,
        flags INTEGER NOT NULL DEFAULT 0,
        queue TEXT,
        id TEXT,
        delay INTEGER,
        priority INTEGER,
        crash_limit INTEGER,
        expires_in INTEGER,
        keep INTEGER,
        unique_key TEXT,
        envelope BLOB,
        input BLOB
    ) STRICT
    """,
    "CREATE UNIQUE INDEX tenure_nodes_by_number ON tenure_nodes (composition, node)",
    "CREATE INDEX tenure_nodes_by_turn ON tenure_nodes (composition, turn) WHERE turn IS NOT NULL",
)

SCHEDULES: Final = (
    # ``cursor`` is the last slot that was decided, in milliseconds since 1970; ``last_job`` is '' when there was none.
    """
    CREATE TABLE tenure_schedules (
        queue INTEGER NOT NULL,
        name TEXT NOT NULL,
        cursor INTEGER NOT NULL,
        paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
        last_job TEXT NOT NULL DEFAULT '',
        definition BLOB NOT NULL,
        PRIMARY KEY (queue, name)
    ) STRICT
    """,
)

FIFTH: Final = (*RELAYED, *COMPOSED, *SCHEDULES)

VERSIONS: Final = (FIRST, SECOND, THIRD, FOURTH, FIFTH)
"""What each version of the schema adds to the one before. A version that was released is never changed again."""

VERSION: Final = len(VERSIONS)
"""What ``PRAGMA user_version`` of a file says that this code can use."""


def prepare(connection: sqlite3.Connection, patiently: Callable[[Callable[[], Any]], Any]) -> None:
    """Bring a file to this version of the schema, in one step; refuse a file that this code cannot use.

    A new file gets all versions' tables, one of an older version what it lacks; what it holds stays as it is. Many
    processes may do it at once: the first does, the others wait for it and find the tables there. ``patiently`` tries
    a step until the file is not locked.
    """
    if patiently(lambda: _version(connection)) == VERSION:
        return
    patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        version = _version(connection)
        ours = version == 0 or _has_tables(connection)
        if ours and 0 <= version < VERSION:
            for statement in chain.from_iterable(VERSIONS[version:]):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    if ours and 0 <= version <= VERSION:
        return
    if not ours:
        raise StoreError("the SQLite file belongs to another program; choose another path; nothing was written")
    raise StoreError(
        f"the SQLite file has schema version {version}, and this tenure knows versions up to {VERSION}: it was written "
        "by a newer tenure; upgrade this one; nothing was written"
    )


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _has_tables(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tenure_queues'")
    return found.fetchone() is not None

-- The tables of schema version 1, as that version made them. Never changed again: files like this exist.

CREATE TABLE tenure_sequence (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    value INTEGER NOT NULL
) STRICT;

INSERT INTO tenure_sequence (one, value) VALUES (1, 0);

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
) STRICT;

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
) STRICT;

CREATE UNIQUE INDEX tenure_jobs_by_id ON tenure_jobs (queue, id);

CREATE INDEX tenure_jobs_by_line ON tenure_jobs (shelf, state, rank, entry);

CREATE TABLE tenure_failures (
    incarnation INTEGER PRIMARY KEY,
    reason TEXT NOT NULL,
    type TEXT NOT NULL,
    message TEXT NOT NULL,
    traceback TEXT NOT NULL
) STRICT;

CREATE TABLE tenure_unreadable (
    number INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    set_aside INTEGER NOT NULL,
    reason TEXT NOT NULL,
    envelope BLOB NOT NULL
) STRICT;

CREATE INDEX tenure_unreadable_by_queue ON tenure_unreadable (queue, number);

CREATE TABLE tenure_cleared (
    queue INTEGER NOT NULL,
    shelf INTEGER NOT NULL,
    PRIMARY KEY (queue, shelf)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 1;

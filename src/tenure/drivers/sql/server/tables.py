"""The tables, as SQLAlchemy knows them: what migrations start from. No statement of the driver is made here."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Engine,
    Identity,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    UniqueConstraint,
    inspect,
)
from sqlalchemy import text as sql

from tenure.drivers.sql.server.columns import BYTES, OPTIONS, number, text
from tenure.drivers.sql.server.names import BLOCK, Names


def metadata(names: Names | None = None, *, dialect: str = "postgresql") -> MetaData:
    """Return all tables for one dialect, ``postgresql`` or ``mysql``.

    Times are microseconds since 1970. ``shelf`` is the queue's line while a job waits, else the queue's number: a
    clear gives the queue a new line, so that a million jobs are out of reach in one step, and their rows are swept
    later. ``place`` is what a state is sorted by: the priority's negative, the due time, the deadline, the time of the
    failure. In the outbox ``due`` and ``expires`` are times too, none is at once and never; ``keep`` is a duration;
    ``sent`` is a JSON list of the ids of rows that were sent, and of which no answer is known.
    """
    names = names or Names()
    prefix = names.prefix
    meta = MetaData(schema=names.schema)

    def table(name: str, *parts: Any, **more: Any) -> Table:
        return Table(f"{prefix}{name}", meta, *parts, **OPTIONS, **more)

    table(
        "queues",
        number("number", primary_key=True),
        Column("namespace", text(128), nullable=False),
        Column("name", text(128), nullable=False),
        number("line"),
        UniqueConstraint("namespace", "name", name=f"{prefix}queues_by_name"),
    )
    # A queue's counters, in some slots that are added up: transactions that move the same one wait for each other.
    table(
        "counters",
        number("queue"),
        Column("slot", SmallInteger, nullable=False, autoincrement=False),
        *(number(name) for name in ("ready", "later", "leased", "failed", "unreadable")),
        PrimaryKeyConstraint("queue", "slot", name=f"{prefix}counters_pkey"),
        postgresql_with={"fillfactor": 50},
    )
    table(
        "jobs",
        number("incarnation", primary_key=True),
        number("queue"),
        Column("id", text(64), nullable=False),
        number("shelf"),
        Column("state", SmallInteger, nullable=False),
        *(number(name) for name in ("place", "entry", "since")),
        Column("priority", SmallInteger, nullable=False),
        Column("crash_limit", BigInteger),
        Column("expires", BigInteger),
        *(number(name, server_default="0") for name in ("deliveries", "free", "crashes")),
        Column("cancel_requested", SmallInteger, nullable=False, server_default="0"),
        Column("token", text(64)),
        Column("length", BigInteger),
        number("fence", server_default="0"),
        # Microseconds for which the job's end is kept; 0: it is not.
        number("keep", server_default="0"),
        Column("envelope", BYTES, nullable=False),
        Column("progress", BYTES),
        Column("failure", BYTES),
        # The text by which the job is unique, and the same while it waits or runs: then no other has it in its queue.
        Column("unique_key", text(32)),
        Column("locked", text(32)),
        # Of the member of a composition: that one's number, its own, and that of the node that is told of its end.
        Column("composition", BigInteger),
        Column("node", BigInteger),
        Column("tells", BigInteger),
        Column("flags", SmallInteger, nullable=False, server_default="0"),
        # What the job before it returned.
        Column("input", BYTES),
        CheckConstraint("state BETWEEN 0 AND 4", name=f"{prefix}jobs_state"),
        CheckConstraint("(state = 3) = (token IS NOT NULL)", name=f"{prefix}jobs_held"),
        UniqueConstraint("queue", "id", name=f"{prefix}jobs_by_id"),
        Index(f"{prefix}jobs_by_line", "shelf", "state", "place", "entry"),
        # Of unique jobs alone, where that can be said.
        Index(f"{prefix}jobs_by_lock", "queue", "locked", unique=True, postgresql_where=sql("locked IS NOT NULL")),
    )
    # How jobs ended, until their time is over; then rows are swept, some with each call that writes.
    table(
        "endings",
        number("queue"),
        Column("id", text(64), nullable=False),
        number("incarnation"),
        Column("state", text(16), nullable=False),
        *(number(name) for name in ("ended", "kept_until")),
        Column("result", BYTES),
        Column("failure", BYTES),
        PrimaryKeyConstraint("queue", "id", name=f"{prefix}endings_pkey"),
        Index(f"{prefix}endings_by_time", "queue", "kept_until"),
    )
    table(
        "unreadable",
        number("number", primary_key=True),
        number("queue"),
        Column("id", text(64), nullable=False),
        number("incarnation"),
        number("set_aside"),
        Column("reason", BYTES, nullable=False),
        Column("envelope", BYTES, nullable=False),
        Index(f"{prefix}unreadable_by_queue", "queue", "number"),
    )
    # The lines that a clear has abandoned and whose rows are not all gone yet.
    table("cleared", number("queue"), number("shelf"), PrimaryKeyConstraint("queue", "shelf"))
    # Compositions, until some time after their end. ``unended`` counts nodes that have not ended, ``due`` those that
    # wait for nothing and are to be opened, ended or made jobs of; ``turn`` is the last number that such a one was
    # given. ``todo`` is when claims of the home have something to do with it: now while nodes are due, else when it
    # is to be forgotten. ``queues`` is a JSON list of names: its home, and then those of its jobs.
    table(
        "compositions",
        number("number", primary_key=True),
        number("home"),
        Column("id", text(64), nullable=False),
        Column("kind", text(16), nullable=False),
        Column("name", BYTES, nullable=False),
        number("retention"),
        Column("queues", BYTES, nullable=False),
        number("created"),
        Column("started", SmallInteger, nullable=False, server_default="0"),
        Column("cancelling", SmallInteger, nullable=False, server_default="0"),
        *(number(name, server_default="0") for name in ("total", "succeeded", "failed", "cancelled")),
        *(number(name, server_default="0") for name in ("unended", "due", "turn")),
        *(Column(name, BigInteger) for name in ("finished", "over_at", "todo")),
        UniqueConstraint("home", "id", name=f"{prefix}compositions_by_id"),
        Index(f"{prefix}compositions_by_todo", "home", "todo"),
        Index(f"{prefix}compositions_by_end", "home", "over_at"),
    )
    # Their nodes that have not ended and are no jobs yet. ``runs`` is on which endings a job runs, none for a gate;
    # ``tells`` is a JSON list; ``turn`` is none while the node waits, and the last that came is the first to be worked
    # off. ``delay``, ``expires_in`` and ``keep`` are durations.
    table(
        "nodes",
        # The composition's number and its own, as one text: of two columns a planner may use the first alone.
        Column("label", text(64), primary_key=True),
        number("composition"),
        number("node"),
        number("needs"),
        Column("bad", SmallInteger, nullable=False, server_default="0"),
        Column("turn", BigInteger),
        Column("runs", text(16)),
        Column("tells", BYTES, nullable=False),
        Column("flags", SmallInteger, nullable=False, server_default="0"),
        Column("queue", text(128)),
        Column("id", text(64)),
        Column("delay", BigInteger),
        Column("priority", SmallInteger),
        Column("crash_limit", BigInteger),
        Column("expires_in", BigInteger),
        Column("keep", BigInteger),
        Column("unique_key", text(32)),
        Column("envelope", BYTES),
        Column("input", BYTES),
        Index(f"{prefix}nodes_by_turn", "composition", "turn"),
    )
    # ``slot`` is the last one that was decided, in milliseconds since 1970; ``last_job`` is empty when there was none.
    table(
        "schedules",
        number("queue"),
        Column("name", text(255), nullable=False),
        number("slot"),
        Column("paused", SmallInteger, nullable=False, server_default="0"),
        Column("last_job", text(64), nullable=False, server_default=""),
        Column("definition", BYTES, nullable=False),
        PrimaryKeyConstraint("queue", "name", name=f"{prefix}schedules_pkey"),
    )
    # By name, not by number: a queue may be paused before anything was pushed to it.
    table(
        "paused",
        Column("namespace", text(128), nullable=False),
        Column("name", text(128), nullable=False),
        number("since"),
        PrimaryKeyConstraint("namespace", "name"),
    )
    table(
        "settings",
        Column("namespace", text(128), nullable=False),
        Column("name", text(64), nullable=False),
        Column("value", text(255), nullable=False),
        PrimaryKeyConstraint("namespace", "name"),
    )
    # The last call of each connection that was committed: what is asked when the reply to a COMMIT was lost.
    table(
        "clients",
        Column("client", text(64), primary_key=True),
        number("number"),
        number("seen"),
        Index(f"{prefix}clients_by_age", "seen"),
        postgresql_with={"fillfactor": 50},
    )
    # Jobs of other connections, pushed in a transaction of this database, until the relay has moved them there. Several
    # transactions commit in another order than that of their ids, so a relay deletes what it moved and keeps no mark.
    table(
        "outbox",
        Column("id", BigInteger, Identity(), primary_key=True),
        Column("namespace", text(128), nullable=False),
        Column("target", text(64), nullable=False),
        Column("queue", text(128), nullable=False),
        Column("job", text(64), nullable=False),
        Column("priority", SmallInteger, nullable=False, server_default="0"),
        Column("durability", SmallInteger, nullable=False, server_default="1"),
        Column("crash_limit", BigInteger),
        Column("due", BigInteger),
        Column("expires", BigInteger),
        number("keep", server_default="0"),
        Column("unique_key", text(32)),
        number("created"),
        Column("envelope", BYTES, nullable=False),
        Index(f"{prefix}outbox_by_queue", "namespace", "target", "queue", "id"),
    )
    # The last call of the relay to a queue of a connection: recorded before it is sent, so that a successor repeats it.
    table(
        "outbox_relay",
        Column("namespace", text(128), nullable=False),
        Column("target", text(64), nullable=False),
        Column("queue", text(128), nullable=False),
        Column("client", text(64), nullable=False),
        number("number"),
        Column("sent", BYTES),
        number("seen"),
        PrimaryKeyConstraint("namespace", "target", "queue"),
    )
    # What must be told apart or sorted by age: incarnations, places in a line, shelves.
    if dialect == "postgresql":
        Sequence(f"{prefix}numbers", start=BLOCK, increment=BLOCK, metadata=meta, schema=names.schema)
    else:
        table("numbers", Column("number", BigInteger, primary_key=True, autoincrement=True))
    return meta


def create_tables(engine: Engine, names: Names | None = None) -> None:
    """Make the tables that are not there yet, in one transaction where the database can."""
    metadata(names, dialect=_dialect(engine)).create_all(engine)


def drop_tables(engine: Engine, names: Names | None = None) -> None:
    """Remove all tables and what is in them."""
    metadata(names, dialect=_dialect(engine)).drop_all(engine)


def missing_tables(engine: Engine, names: Names | None = None) -> list[str]:
    """Return the names of the tables that are not there."""
    names = names or Names()
    there = set(inspect(engine).get_table_names(schema=names.schema))
    return sorted({table.name for table in metadata(names, dialect=_dialect(engine)).tables.values()} - there)


def _dialect(engine: Engine) -> str:
    return "postgresql" if engine.dialect.name == "postgresql" else "mysql"

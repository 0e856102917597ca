"""The first tables: queues, jobs, and the outbox."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    PrimaryKeyConstraint,
    SmallInteger,
    UniqueConstraint,
)
from sqlalchemy import text as sql

from tenure.drivers.sql.migrations.steps import create, index, names, on_postgresql, sequence
from tenure.drivers.sql.server.columns import BYTES, number, text

revision: str = "001"
down_revision: str | None = None


def upgrade() -> None:
    """Make them."""
    p = names().prefix
    create(
        "queues",
        number("number", primary_key=True),
        Column("namespace", text(128), nullable=False),
        Column("name", text(128), nullable=False),
        number("line"),
        UniqueConstraint("namespace", "name", name=f"{p}queues_by_name"),
    )
    create(
        "counters",
        number("queue"),
        Column("slot", SmallInteger, nullable=False, autoincrement=False),
        *(number(name) for name in ("ready", "later", "leased", "failed", "unreadable")),
        PrimaryKeyConstraint("queue", "slot", name=f"{p}counters_pkey"),
        postgresql_with={"fillfactor": 50},
    )
    create(
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
        number("keep", server_default="0"),
        Column("envelope", BYTES, nullable=False),
        Column("progress", BYTES),
        Column("failure", BYTES),
        Column("unique_key", text(32)),
        Column("locked", text(32)),
        Column("composition", BigInteger),
        Column("node", BigInteger),
        Column("tells", BigInteger),
        Column("flags", SmallInteger, nullable=False, server_default="0"),
        Column("input", BYTES),
        CheckConstraint("state BETWEEN 0 AND 4", name=f"{p}jobs_state"),
        CheckConstraint("(state = 3) = (token IS NOT NULL)", name=f"{p}jobs_held"),
        UniqueConstraint("queue", "id", name=f"{p}jobs_by_id"),
    )
    index("jobs_by_line", "jobs", "shelf", "state", "place", "entry")
    index("jobs_by_lock", "jobs", "queue", "locked", unique=True, postgresql_where=sql("locked IS NOT NULL"))
    create(
        "endings",
        number("queue"),
        Column("id", text(64), nullable=False),
        number("incarnation"),
        Column("state", text(16), nullable=False),
        *(number(name) for name in ("ended", "kept_until")),
        Column("result", BYTES),
        Column("failure", BYTES),
        PrimaryKeyConstraint("queue", "id", name=f"{p}endings_pkey"),
    )
    index("endings_by_time", "endings", "queue", "kept_until")
    create(
        "unreadable",
        number("number", primary_key=True),
        number("queue"),
        Column("id", text(64), nullable=False),
        number("incarnation"),
        number("set_aside"),
        Column("reason", BYTES, nullable=False),
        Column("envelope", BYTES, nullable=False),
    )
    index("unreadable_by_queue", "unreadable", "queue", "number")
    create("cleared", number("queue"), number("shelf"), PrimaryKeyConstraint("queue", "shelf"))
    create(
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
        UniqueConstraint("home", "id", name=f"{p}compositions_by_id"),
    )
    index("compositions_by_todo", "compositions", "home", "todo")
    index("compositions_by_end", "compositions", "home", "over_at")
    create(
        "nodes",
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
    )
    index("nodes_by_turn", "nodes", "composition", "turn")
    create(
        "schedules",
        number("queue"),
        Column("name", text(255), nullable=False),
        number("slot"),
        Column("paused", SmallInteger, nullable=False, server_default="0"),
        Column("last_job", text(64), nullable=False, server_default=""),
        Column("definition", BYTES, nullable=False),
        PrimaryKeyConstraint("queue", "name", name=f"{p}schedules_pkey"),
    )
    create(
        "paused",
        Column("namespace", text(128), nullable=False),
        Column("name", text(128), nullable=False),
        number("since"),
        PrimaryKeyConstraint("namespace", "name"),
    )
    create(
        "settings",
        Column("namespace", text(128), nullable=False),
        Column("name", text(64), nullable=False),
        Column("value", text(255), nullable=False),
        PrimaryKeyConstraint("namespace", "name"),
    )
    create(
        "clients",
        Column("client", text(64), primary_key=True),
        number("number"),
        number("seen"),
        postgresql_with={"fillfactor": 50},
    )
    index("clients_by_age", "clients", "seen")
    create(
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
    )
    index("outbox_by_queue", "outbox", "namespace", "target", "queue", "id")
    create(
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
    if on_postgresql():
        sequence("numbers", start=1000, increment=1000)
    else:
        create("numbers", Column("number", BigInteger, primary_key=True, autoincrement=True))

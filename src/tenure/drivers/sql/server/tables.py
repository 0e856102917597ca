"""The tables, as SQLAlchemy knows them: what migrations start from. No statement of the driver is made here."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Engine,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    inspect,
)
from sqlalchemy.dialects.mysql import LONGBLOB
from sqlalchemy.dialects.postgresql import BYTEA

from tenure.drivers.sql.server.names import BLOCK, Names

_BYTES: Final = LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb").with_variant(BYTEA(), "postgresql")


def _text(length: int) -> Any:
    """Return a type of plain text that is compared byte by byte: `a` is not `A`, and nothing is padded."""
    return (
        String(length)
        .with_variant(String(length, collation="C"), "postgresql")
        .with_variant(String(length, collation="utf8mb4_bin"), "mysql", "mariadb")
    )


def _number(name: str, **options: Any) -> Column[int]:
    return Column(name, BigInteger, nullable=False, autoincrement=False, **options)


def metadata(names: Names | None = None, *, dialect: str = "postgresql") -> MetaData:
    """Return all tables for one dialect, ``postgresql`` or ``mysql``.

    Times are microseconds since 1970. ``shelf`` is the queue's line while a job waits, else the queue's number: a
    clear gives the queue a new line, so that a million jobs are out of reach in one step, and their rows are swept
    later. ``place`` is what a state is sorted by: the priority's negative, the due time, the deadline, the time of the
    failure.
    """
    names = names or Names()
    prefix = names.prefix
    meta = MetaData(schema=names.schema)
    options: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
    options |= {key.replace("mysql", "mariadb"): value for key, value in options.items()}

    def table(name: str, *parts: Any, **more: Any) -> Table:
        return Table(f"{prefix}{name}", meta, *parts, **options, **more)

    table(
        "queues",
        _number("number", primary_key=True),
        Column("namespace", _text(128), nullable=False),
        Column("name", _text(128), nullable=False),
        _number("line"),
        UniqueConstraint("namespace", "name", name=f"{prefix}queues_by_name"),
    )
    # A queue's counters, in some slots that are added up: transactions that move the same one wait for each other.
    table(
        "counters",
        _number("queue"),
        Column("slot", SmallInteger, nullable=False, autoincrement=False),
        *(_number(name) for name in ("ready", "later", "leased", "failed", "unreadable")),
        PrimaryKeyConstraint("queue", "slot", name=f"{prefix}counters_pkey"),
        postgresql_with={"fillfactor": 50},
    )
    table(
        "jobs",
        _number("incarnation", primary_key=True),
        _number("queue"),
        Column("id", _text(64), nullable=False),
        _number("shelf"),
        Column("state", SmallInteger, nullable=False),
        *(_number(name) for name in ("place", "entry", "since")),
        Column("priority", SmallInteger, nullable=False),
        Column("crash_limit", BigInteger),
        Column("expires", BigInteger),
        *(_number(name, server_default="0") for name in ("deliveries", "free", "crashes")),
        Column("cancel_requested", SmallInteger, nullable=False, server_default="0"),
        Column("token", _text(64)),
        Column("length", BigInteger),
        _number("fence", server_default="0"),
        # Microseconds for which the job's end is kept; 0: it is not.
        _number("keep", server_default="0"),
        Column("envelope", _BYTES, nullable=False),
        Column("progress", _BYTES),
        Column("failure", _BYTES),
        CheckConstraint("state BETWEEN 0 AND 4", name=f"{prefix}jobs_state"),
        CheckConstraint("(state = 3) = (token IS NOT NULL)", name=f"{prefix}jobs_held"),
        UniqueConstraint("queue", "id", name=f"{prefix}jobs_by_id"),
        Index(f"{prefix}jobs_by_line", "shelf", "state", "place", "entry"),
    )
    # How jobs ended, until their time is over; then rows are swept, some with each call that writes.
    table(
        "endings",
        _number("queue"),
        Column("id", _text(64), nullable=False),
        _number("incarnation"),
        Column("state", _text(16), nullable=False),
        *(_number(name) for name in ("ended", "kept_until")),
        Column("result", _BYTES),
        Column("failure", _BYTES),
        PrimaryKeyConstraint("queue", "id", name=f"{prefix}endings_pkey"),
        Index(f"{prefix}endings_by_time", "queue", "kept_until"),
    )
    table(
        "unreadable",
        _number("number", primary_key=True),
        _number("queue"),
        Column("id", _text(64), nullable=False),
        _number("incarnation"),
        _number("set_aside"),
        Column("reason", _BYTES, nullable=False),
        Column("envelope", _BYTES, nullable=False),
        Index(f"{prefix}unreadable_by_queue", "queue", "number"),
    )
    # The lines that a clear has abandoned and whose rows are not all gone yet.
    table("cleared", _number("queue"), _number("shelf"), PrimaryKeyConstraint("queue", "shelf"))
    # By name, not by number: a queue may be paused before anything was pushed to it.
    table(
        "paused",
        Column("namespace", _text(128), nullable=False),
        Column("name", _text(128), nullable=False),
        _number("since"),
        PrimaryKeyConstraint("namespace", "name"),
    )
    table(
        "settings",
        Column("namespace", _text(128), nullable=False),
        Column("name", _text(64), nullable=False),
        Column("value", _text(255), nullable=False),
        PrimaryKeyConstraint("namespace", "name"),
    )
    # The last call of each connection that was committed: what is asked when the reply to a COMMIT was lost.
    table(
        "clients",
        Column("client", _text(64), primary_key=True),
        _number("number"),
        _number("seen"),
        Index(f"{prefix}clients_by_age", "seen"),
        postgresql_with={"fillfactor": 50},
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

"""The audit of queues in a database: a trigger writes down every change of a job, in the transaction that makes it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tenure.testing.history import Audit, Dump

READY, SUSPECT, DELAYED, LEASED, FAILED = range(5)
STATES = ("ready", "ready", "delayed", "leased", "failed")
Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Runs a statement of the test's own, and returns its rows."""

COLUMNS = (
    "queue",
    "id",
    "incarnation",
    "state",
    "{place}",
    "token",
    "deliveries",
    "free",
    "crashes",
    "cancel_requested",
)
"""What is noted of a row, before and after a change."""


def _values(row: str, place: str) -> str:
    return ", ".join(f"{row}.{column.format(place=place)}" for column in COLUMNS)


NOTHING = ", ".join("NULL" for _ in COLUMNS)
TABLE = """
CREATE TABLE proof_audit (
    number {serial},
    at bigint NOT NULL, what char(1) NOT NULL, fence bigint, shelf bigint, line bigint,
    {before}, {after}
)
"""


def _columns(prefix: str) -> str:
    kinds = {"id": "varchar(64)", "token": "varchar(64)"}
    names = [column.format(place="place") for column in COLUMNS]
    return ", ".join(f"{prefix}_{name} {kinds.get(name, 'bigint')}" for name in names)


def _table(serial: str) -> str:
    return TABLE.format(serial=serial, before=_columns("o"), after=_columns("n"))


SQLITE_NOW = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
INSERTED = (
    "INSERT INTO proof_audit (at, what, fence, shelf, line, "
    + ", ".join(f"{prefix}_{column.format(place='place')}" for prefix in "on" for column in COLUMNS)
    + ") VALUES "
)


def _line(row: str) -> str:
    return f"(SELECT line FROM tenure_queues WHERE number = {row}.queue)"


def sqlite_triggers() -> list[str]:
    """Return the statements that make a file tell."""
    old, new = _values("OLD", "rank"), _values("NEW", "rank")
    fence = "(SELECT fence FROM tenure_queues WHERE number = NEW.queue)"
    triggers = {
        "INSERT": f"({SQLITE_NOW}, 'i', NULL, NEW.shelf, {_line('NEW')}, {NOTHING}, {new})",
        "UPDATE": f"({SQLITE_NOW}, 'u', {fence}, NEW.shelf, {_line('NEW')}, {old}, {new})",
        "DELETE": f"({SQLITE_NOW}, 'd', NULL, OLD.shelf, {_line('OLD')}, {old}, {NOTHING})",
    }
    return [
        _table("INTEGER PRIMARY KEY"),
        *(
            f"CREATE TRIGGER proof_{event} AFTER {event} ON tenure_jobs BEGIN {INSERTED}{values}; END"
            for event, values in triggers.items()
        ),
        f"CREATE TRIGGER proof_clear AFTER UPDATE OF line ON tenure_queues BEGIN "
        f"INSERT INTO proof_audit (at, what, n_queue) VALUES ({SQLITE_NOW}, 'c', NEW.number); END",
    ]


def postgres_triggers() -> list[str]:
    """Return the statements that make a PostgreSQL tell."""
    now = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
    old, new = _values("OLD", "place"), _values("NEW", "place")
    body = f"""
CREATE FUNCTION proof_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF TG_TABLE_NAME = 'tenure_queues' THEN
    INSERT INTO proof_audit (at, what, n_queue) VALUES ({now}, 'c', NEW.number);
ELSIF TG_OP = 'INSERT' THEN
    {INSERTED}({now}, 'i', NULL, NEW.shelf, {_line("NEW")}, {NOTHING}, {new});
ELSIF TG_OP = 'UPDATE' THEN
    {INSERTED}({now}, 'u', NEW.fence, NEW.shelf, {_line("NEW")}, {old}, {new});
ELSE
    {INSERTED}({now}, 'd', NULL, OLD.shelf, {_line("OLD")}, {old}, {NOTHING});
END IF;
RETURN NULL;
END $$
"""
    return [
        _table("bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
        body,
        "CREATE TRIGGER proof_jobs AFTER INSERT OR UPDATE OR DELETE ON tenure_jobs "
        "FOR EACH ROW EXECUTE FUNCTION proof_note()",
        "CREATE TRIGGER proof_clear AFTER UPDATE OF line ON tenure_queues FOR EACH ROW EXECUTE FUNCTION proof_note()",
    ]


class Row(NamedTuple):
    """One job's row, before or after a change."""

    queue: int
    id: str
    incarnation: int
    state: int
    place: int
    token: str | None
    deliveries: int
    free: int
    crashes: int
    cancel_requested: int


class Change(NamedTuple):
    number: int
    at: int
    what: str
    fence: int | None
    swept: bool
    """The job waited in a line that was cleared: it was gone before."""
    old: Row | None
    new: Row | None


def audit(ask: Ask, namespace: str) -> list[Audit]:
    """Return the transitions of all queues of a namespace."""
    names = {number: name for number, name, _ in queues(ask, namespace)}
    found: list[Audit] = []
    width = len(COLUMNS)
    # Of a clear, only what changes the line of a queue that is there is told: the queue's own number stands for it.
    for number, at, what, fence, shelf, line, *rest in ask("SELECT * FROM proof_audit ORDER BY number"):
        before, after = rest[:width], rest[width:]
        if what == "c":
            if after[0] in names:
                found.append(Audit(number, at, "clear", names[after[0]]))
            continue
        old, new = (None if row[1] is None else Row(*row) for row in (before, after))
        swept = old is not None and old.state <= DELAYED and shelf != line
        row = new or old
        if row is not None and row.queue in names:
            change = Change(number, at, what, fence, swept, old, new)
            found += [Audit(number, at, told, names[row.queue], row.id, **more) for told, more in transitions(change)]
    return found


Told = Iterator[tuple[Any, dict[str, Any]]]


def transitions(change: Change) -> Told:
    """Yield what a change of a row was."""
    old, new = change.old, change.new
    if new is None:
        assert old is not None
        if old.state == LEASED:
            yield "ack", {"incarnation": old.incarnation, "token": old.token}
        elif old.state == FAILED:
            yield "forget", {"incarnation": old.incarnation}
        elif not change.swept:
            yield "cancel", {"incarnation": old.incarnation}
    elif old is None or (old.state <= DELAYED and old.incarnation != new.incarnation):
        yield "push", waiting(new)
    elif new.state == LEASED:
        yield from leased(change, old, new)
    elif old.state == LEASED:
        yield from left(change, old, new)
    elif old.state == FAILED and new.state <= DELAYED:
        yield "retry", waiting(new)
    elif old.state == DELAYED and new.state <= SUSPECT:
        yield "promote", {"incarnation": new.incarnation}


def waiting(row: Row) -> dict[str, Any]:
    return {"incarnation": row.incarnation, "until": row.place if row.state == DELAYED else None}


def leased(change: Change, old: Row, new: Row) -> Told:
    if old.state == LEASED and old.token == new.token:
        if new.cancel_requested and not old.cancel_requested:
            yield "request", {"incarnation": new.incarnation}
        if new.place != old.place:
            yield "renew", {"incarnation": new.incarnation, "token": new.token, "until": new.place}
        return
    counters = {"deliveries": new.deliveries, "free": new.free, "crashes": new.crashes}
    more = {"incarnation": new.incarnation, "token": new.token, "until": new.place, "fence": change.fence}
    yield "grant", {**more, **counters}


def left(change: Change, old: Row, new: Row) -> Told:
    more: dict[str, Any] = {"incarnation": old.incarnation, "token": old.token}
    if new.state == FAILED:
        yield "fail", more
    elif new.crashes > old.crashes:  # no process of these runs gives back what another one held
        yield "lapse", more
    else:
        yield "release", {**more, **waiting(new), "free": new.free, "crashes": new.crashes}


def queues(ask: Ask, namespace: str) -> list[tuple[int, str, int]]:
    rows = ask(f"SELECT number, name, line FROM tenure_queues WHERE namespace = '{namespace}'")
    return [(number, name, line) for number, name, line in rows]


ORPHANS: Mapping[str, Mapping[str, str]] = {
    "sqlite": {
        what: f"SELECT count(*) FROM {table} WHERE incarnation NOT IN (SELECT incarnation FROM tenure_jobs)"
        for what, table in (("a failure", "tenure_failures"), ("progress", "tenure_progress"))
    },
    "postgresql": {
        "a transaction": "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure' "
        "AND state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > interval '2 seconds'",
    },
}


def dump(ask: Ask, namespace: str, queue: str, kind: str, counts: Mapping[str, int]) -> Dump:
    """Look at a queue at rest."""
    found: dict[str, str] = {}
    slots: list[str] = []
    for number, name, line in queues(ask, namespace):
        if name == queue:
            rows = ask(f"SELECT id, state FROM tenure_jobs WHERE queue = {number} AND (state >= 3 OR shelf = {line})")
            found = {job_id: STATES[state] for job_id, state in rows}
            locked = f"SELECT locked, id FROM tenure_jobs WHERE queue = {number} AND locked IS NOT NULL"
            slots += [f"{text} by {job_id}" for text, job_id in ask(locked)]
            aside = ask(f"SELECT number, id FROM tenure_unreadable WHERE queue = {number}")
            found |= {f"{job_id}#{aside_number}": "unreadable" for aside_number, job_id in aside}
    leaked = [f"{what} of no job" for what, statement in ORPHANS[kind].items() if ask(statement)[0][0]]
    drained = not any(state in {"ready", "delayed", "leased"} for state in found.values())
    return Dump(queue, found, dict(counts), slots=slots, leaked=leaked, drained=drained)

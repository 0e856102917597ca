"""What a claim and a settlement read does not grow with the backlog: each goes by an index, however many jobs wait."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenure.drivers.sql.server import compositions, questions, statements, uniqueness
from tenure.drivers.sql.server.names import Names
from tenure.drivers.sql.server.tables import create_tables, drop_tables
from tenure.drivers.sql.server.texts import Statement, Texts
from tenure.queue import Ack, Queue
from tenure.testing.contract.steps import claim, done, job
from tests.databases.support import Place

Keep = Callable[[Queue], Queue]

NAMES = Names("plans_")
Q = "q"
LIMIT = 50
BASE = 10**9

FILL = {
    "postgresql": "SELECT {row} FROM generate_series(1, {count}) AS n",
    "mariadb": "SELECT {row} FROM (SELECT seq AS n FROM seq_1_to_{count}) AS numbers",
}
ROW = {
    # Ready jobs of two priorities, and as many delayed, leased and failed ones.
    "ready": "{base} + n, {queue}, concat('r', n), {line}, 0, -mod(n, 2), n, 0, mod(n, 2), {bytes}, 0, NULL, NULL",
    "delayed": "{base} + {count} + n, {queue}, concat('d', n), {line}, 2, 4e15 + n, n, 0, 0, {bytes}, 0, NULL, NULL",
    "leased": "{base} + 2 * {count} + n, {queue}, concat('l', n), {queue}, 3, 4e15 + n, n, 0, 0, {bytes}, 1, 't', 60",
    "failed": "{base} + 3 * {count} + n, {queue}, concat('f', n), {queue}, 4, n, n, 0, 0, {bytes}, 1, NULL, NULL",
}
COLUMNS = "incarnation, queue, id, shelf, state, place, entry, since, priority, envelope, deliveries, token, length"


@pytest.fixture
def backlog(place: Place, scale: int) -> Iterator[Place]:
    """Tables of their own that hold a large backlog, a tenth of it unless it is to take longer."""
    engine = place.database.engine()
    create_tables(engine, NAMES)
    try:
        yield place
    finally:
        drop_tables(engine, NAMES)


def fill(place: Place, count: int, *, states: tuple[str, ...] = ("ready", "delayed", "leased", "failed")) -> None:
    ((queue, line),) = place.ask("SELECT number, line FROM plans_queues WHERE namespace = :n", n=place.namespace)
    kind = "postgresql" if place.postgres else "mariadb"
    # Few bytes: what is to be seen is the index.
    text = "CAST('{}' AS bytea)" if place.postgres else "'{}'"
    with place.database.engine().begin() as connection:
        for state in states:
            row = ROW[state].format(queue=queue, line=line, count=count, base=BASE, bytes=text)
            connection.exec_driver_sql(f"INSERT INTO plans_jobs ({COLUMNS}) {FILL[kind].format(row=row, count=count)}")
        for table, columns, row in (
            ("compositions", OF_COMPOSITIONS, COMPOSITION),
            ("nodes", "label, composition, node, needs, tells, turn", NODE),
        ):
            texts = {"bytes": text, "names": text.replace("{}", '["q"]'), "nobody": text.replace("{}", "[]")}
            rows = FILL[kind].format(row=row.format(queue=queue, **texts), count=count)
            connection.exec_driver_sql(f"INSERT INTO plans_{table} ({columns}) {rows}")


OF_COMPOSITIONS = "number, home, id, kind, name, retention, queues, created, started, todo, over_at, due"
COMPOSITION = "n, {queue}, concat('c', n), 'batch', {bytes}, 0, {names}, 0, 1, n, n + mod(n, 2) * 4e15, mod(n, 50)"
"""Half of them are over, and with some there is something to be done."""
NODE = "concat('1.', n), 1, n, 1, {nobody}, CASE WHEN mod(n, 100) = 0 THEN n END"

IDS = [f"r{n}" for n in range(LIMIT)]
LOCKS = [f"{n:032x}" for n in range(LIMIT)]

READS: dict[str, tuple[Statement, dict[str, Any]]] = {
    "first": (statements.FIRST, {"shelf": "line", "state": 0, "limit": LIMIT}),
    "suspects": (statements.FIRST, {"shelf": "line", "state": 1, "limit": LIMIT}),
    "due": (statements.DUE, {"shelf": "line", "now": 10**15, "step": 100}),
    "lapsed": (statements.LAPSED, {"shelf": "number", "now": 10**15, "step": 100}),
    "held": (statements.HELD, {"incarnations": list(range(BASE + 1, BASE + LIMIT))}),
    "place": (questions.NEXT_PLACE, {"shelf": "line", "state": 0, "place": -1}),
    "prunable": (statements.PRUNABLE, {"shelf": "number", "until": 0, "step": 100}),
    "failed": (questions.FAILED_PAGE, {"shelf": "number", "limit": LIMIT, "offset": 0}),
    "page": (questions.JOBS_PAGE, {"shelf": "line", "state": 0, "place": -1, "entry": 3000, "limit": LIMIT}),
    "jobs": (statements.LOCK_JOBS, {"queue": "number", "ids": [f"r{n}" for n in range(LIMIT)]}),
    "cleared": (statements.FIND_CLEARED, {"queue": "number", "ids": [f"r{n}" for n in range(LIMIT)], "line": 1}),
    "leftovers": (statements.LEFTOVERS, {"shelf": -1, "step": 100}),
    "see": (statements.SEE_QUEUES, {"namespace": "namespace", "names": [Q]}),
    "holders": (uniqueness.FIND_HOLDERS, {"queue": "number", "ids": IDS, "locks": LOCKS}),
    "cleared holders": (uniqueness.FIND_CLEARED_HOLDERS, {"queue": "number", "locks": LOCKS, "line": 1}),
    "composition": (compositions.FIND, {"home": "number", "id": "c7"}),
    "compositions": (compositions.LOCK, {"numbers": list(range(1, LIMIT))}),
    "cancelling": (compositions.ARE_CANCELLING, {"numbers": list(range(1, LIMIT))}),
    "listed": (compositions.PAGE, {"home": "number", "after": "c3", "most": LIMIT}),
    "to do": (compositions.TO_DO, {"home": "number", "now": 10**15, "most": 10}),
    "over": (compositions.OVER, {"home": "number", "until": 10**15, "most": LIMIT}),
    "nodes": (compositions.FIND_NODES, {"labels": [f"1.{n}" for n in range(1, LIMIT)]}),
    "due nodes": (compositions.DUE, {"composition": 1, "most": LIMIT}),
    "forgettable": (compositions.FORGETTABLE, {"composition": 1, "most": LIMIT}),
}


def rows_read(plan: Any) -> int:
    """Return how many rows the parts of a plan that read a table touched, those that a filter dropped included."""
    read = 0
    if "Scan" in plan.get("Node Type", "") and "Relation Name" in plan:
        per_loop = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        read += int(per_loop * plan["Actual Loops"])
    return read + sum(rows_read(part) for part in plan.get("Plans", ()))


def explained(place: Place, texts: Texts, statement: Statement, values: dict[str, Any]) -> int:
    """Run a statement as the driver does, and return how many rows it read."""
    from tenure import databases  # noqa: PLC0415

    url = databases.of(place.database.url, "url")
    text = texts.of(statement)
    if place.postgres:
        from tenure.drivers.sql.postgresql.server import Postgres  # noqa: PLC0415

        postgres = Postgres(Postgres.parameters(url))
        connection = postgres.connect()
        try:
            connection.script([(step, {}) for step in postgres.begin])
            rows = connection.run(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", values).rows
            connection.script([("ROLLBACK", {})])
        finally:
            connection.close()
        plan = rows[0][0]
        return rows_read((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])
    from tenure.drivers.sql.mysql.server import Mysql  # noqa: PLC0415

    mysql = Mysql(Mysql.parameters(url)).connect()
    try:
        mysql.script([("START TRANSACTION", {}), ("FLUSH STATUS", {})])
        mysql.run(text, values)
        status = dict(mysql.run("SHOW SESSION STATUS LIKE 'Handler_read%%'", {}).rows)
        mysql.script([("ROLLBACK", {})])
    finally:
        mysql.close()
    return sum(int(count) for name, count in status.items() if name != "Handler_read_rnd_deleted")


@pytest.mark.parametrize("count", [20_000, pytest.param(250_000, marks=pytest.mark.torture)])
async def test_no_statement_reads_more_than_it_brings(backlog: Place, opened: Keep, count: int, scale: int) -> None:
    if count > 20_000 and scale == 1:
        pytest.skip("a million rows take their time: make torture")
    queue = opened(backlog.queue(names=NAMES))
    await queue.push([job(f"first{n}") for n in range(10)])
    await queue.aclose()
    if backlog.postgres:
        backlog.ask("ANALYZE plans_jobs")  # what the statistics say is of the time when ten jobs were there
    fill(backlog, count)
    ((number, line),) = backlog.ask("SELECT number, line FROM plans_queues WHERE namespace = :n", n=backlog.namespace)
    known = {"number": number, "line": line, "namespace": backlog.namespace}
    texts = Texts("postgresql" if backlog.postgres else "mysql", NAMES)
    for _ in range(2):
        for name, (statement, values) in READS.items():
            given = {key: known.get(value, value) if isinstance(value, str) else value for key, value in values.items()}
            read = explained(backlog, texts, statement, given)
            assert read <= 8 * LIMIT, f"{name} read {read} rows"
        if backlog.postgres:
            for table in ("jobs", "compositions", "nodes"):
                backlog.ask(f"ANALYZE plans_{table}")
    leases = await claim(queue, LIMIT)
    assert len(leases) == LIMIT
    await done(queue, *map(Ack, leases))

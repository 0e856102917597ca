"""Every statement goes by an index, however many jobs there are."""

import inspect
import re
import sqlite3
from collections.abc import Iterator

import pytest

from tenure.drivers.sql.sqlite import compositions, schema, statements

TEXTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": text
    for module in (statements, compositions)
    for name, text in vars(module).items()
    if name.isupper() and isinstance(text, str) and not name.startswith("_")
}
SMALL = {"tenure_queues", "tenure_sequence"}
"""Tables with a row a queue, or one row."""


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.prepare(connection, lambda step: step())
    yield connection
    connection.close()


def plan(connection: sqlite3.Connection, text: str) -> list[str]:
    named = dict.fromkeys(re.findall(r":(\w+)", text), 1)
    highest = max(map(int, re.findall(r"\?(\d+)", text)), default=0)
    values: object = named or (1,) * (highest or text.count("?"))
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TEXTS)
def test_a_statement_scans_no_table_and_sorts_nothing(connection: sqlite3.Connection, name: str) -> None:
    for step in plan(connection, TEXTS[name]):
        scanned = re.match(r"SCAN (?:tenure_\w+|jobs)\b", step)
        if name == "statements.LIST_QUEUES" or (scanned and scanned.group()[5:] in SMALL):
            continue
        assert not scanned, f"{name}: {step}"
        assert "TEMP B-TREE" not in step, f"{name}: {step}"


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("statements.FIRST", "tenure_jobs_by_line (shelf=? AND state=?)"),
        ("statements.DUE", "tenure_jobs_by_line (shelf=? AND state=? AND rank<?)"),
        ("statements.LAPSED", "tenure_jobs_by_line (shelf=? AND state=? AND rank<?)"),
        ("statements.FARTHEST", "tenure_jobs_by_line (shelf=? AND state=?)"),
        ("statements.FAILED_PAGE", "tenure_jobs_by_line (shelf=? AND state=?)"),
        ("statements.JOBS_PAGE", "tenure_jobs_by_line (shelf=? AND state=? AND (rank,entry)>(?,?))"),
        ("statements.HELD_PAGE", "tenure_jobs_by_line (shelf=? AND state=? AND (rank,entry)>(?,?))"),
        ("statements.PRUNABLE", "tenure_jobs_by_line (shelf=? AND state=? AND rank<?)"),
        ("statements.UNREADABLE_PAGE", "tenure_unreadable_by_queue (queue=? AND number>?)"),
        ("statements.UNREADABLE_BYTES", "INTEGER PRIMARY KEY"),
        ("statements.DROP_UNREADABLE", "INTEGER PRIMARY KEY"),
        ("statements.FIND_QUEUE", "SEARCH p USING PRIMARY KEY (namespace=? AND name=?)"),
        ("statements.FIND_PAUSED", "PRIMARY KEY (namespace=? AND name=?)"),
        ("statements.FIND_SETTING", "PRIMARY KEY (namespace=? AND name=?)"),
        ("statements.SWEEP", "tenure_jobs_by_line (shelf=?)"),
        ("statements.FIND_JOB", "tenure_jobs_by_id (queue=? AND id=?)"),
        ("statements.LEASE", "INTEGER PRIMARY KEY"),
        ("statements.FINISH", "INTEGER PRIMARY KEY"),
        ("statements.RENEW", "INTEGER PRIMARY KEY"),
        ("statements.RELEASE", "INTEGER PRIMARY KEY"),
        ("statements.FIND_LOCK", "tenure_jobs_by_lock (queue=? AND locked=?)"),
        ("statements.FIND_QUEUE", "tenure_compositions_by_todo (home=?)"),
        ("compositions.READ", "INTEGER PRIMARY KEY"),
        ("compositions.FIND", "tenure_compositions_by_id (home=? AND id=?)"),
        ("compositions.PAGE", "tenure_compositions_by_id (home=? AND id>?)"),
        ("compositions.TO_DO", "tenure_compositions_by_todo (home=? AND todo<?)"),
        ("compositions.OVER", "tenure_compositions_by_end (home=? AND over_at<?)"),
        ("compositions.FIND_NODE", "tenure_nodes_by_number (composition=? AND node=?)"),
        ("compositions.RELEASE", "tenure_nodes_by_number (composition=? AND node=?)"),
        ("compositions.DUE", "tenure_nodes_by_turn (composition=? AND turn>?)"),
        ("compositions.FORGET_NODES", "tenure_nodes_by_number (composition=?)"),
        ("compositions.FIND_MEMBERS", "tenure_jobs USING INTEGER PRIMARY KEY"),
    ],
)
def test_the_statements_of_every_claim_use_the_index_made_for_them(
    connection: sqlite3.Connection, name: str, index: str
) -> None:
    assert any(index in step for step in plan(connection, TEXTS[name])), plan(connection, TEXTS[name])


def test_every_statement_says_what_it_is_for() -> None:
    for module, name in (full.split(".") for full in TEXTS):
        source = inspect.getsource({"statements": statements, "compositions": compositions}[module])
        assert re.search(rf'^{name}: Final = .*?^"""[A-Z]', source, re.DOTALL | re.MULTILINE), name

"""Every statement goes by an index, however many jobs there are."""

import pathlib
import re
import sqlite3
from collections.abc import Iterator

import pytest

from tenure.drivers.sql.sqlite import schema, statements

TEXTS = {name: text for name, text in vars(statements).items() if name.isupper() and isinstance(text, str)}
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
        if name == "LIST_QUEUES" or (scanned and scanned.group()[5:] in SMALL):
            continue
        assert not scanned, f"{name}: {step}"
        assert "TEMP B-TREE" not in step, f"{name}: {step}"


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("FIRST", "tenure_jobs_by_line (shelf=? AND state=?)"),
        ("DUE", "tenure_jobs_by_line (shelf=? AND state=? AND rank<?)"),
        ("LAPSED", "tenure_jobs_by_line (shelf=? AND state=? AND rank<?)"),
        ("FARTHEST", "tenure_jobs_by_line (shelf=? AND state=?)"),
        ("FAILED_PAGE", "tenure_jobs_by_line (shelf=? AND state=?)"),
        ("JOBS_PAGE", "tenure_jobs_by_line (shelf=? AND state=? AND (rank,entry)>(?,?))"),
        ("HELD_PAGE", "tenure_jobs_by_line (shelf=? AND state=? AND (rank,entry)>(?,?))"),
        ("PRUNABLE", "tenure_jobs_by_line (shelf=? AND state=? AND rank<?)"),
        ("UNREADABLE_PAGE", "tenure_unreadable_by_queue (queue=? AND number>?)"),
        ("UNREADABLE_BYTES", "INTEGER PRIMARY KEY"),
        ("DROP_UNREADABLE", "INTEGER PRIMARY KEY"),
        ("FIND_QUEUE", "SEARCH p USING PRIMARY KEY (namespace=? AND name=?)"),
        ("FIND_PAUSED", "PRIMARY KEY (namespace=? AND name=?)"),
        ("FIND_SETTING", "PRIMARY KEY (namespace=? AND name=?)"),
        ("SWEEP", "tenure_jobs_by_line (shelf=?)"),
        ("FIND_JOB", "tenure_jobs_by_id (queue=? AND id=?)"),
        ("LEASE", "INTEGER PRIMARY KEY"),
        ("FINISH", "INTEGER PRIMARY KEY"),
        ("RENEW", "INTEGER PRIMARY KEY"),
        ("RELEASE", "INTEGER PRIMARY KEY"),
    ],
)
def test_the_statements_of_every_claim_use_the_index_made_for_them(
    connection: sqlite3.Connection, name: str, index: str
) -> None:
    assert any(index in step for step in plan(connection, TEXTS[name])), plan(connection, TEXTS[name])


def test_every_statement_says_what_it_is_for() -> None:
    source = pathlib.Path(statements.__file__).read_text()
    for name in TEXTS:
        assert re.search(rf'^{name}: Final = .*?^"""[A-Z]', source, re.DOTALL | re.MULTILINE), name

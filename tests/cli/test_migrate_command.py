"""`tenure migrate` where no server is needed: what it prints, refuses and leaves alone."""

import importlib.util
from typing import Any

import pytest

from tests.cli.conftest import Program

CANARY = "hunter2-canary"
NOWHERE = {
    "postgresql": f"postgresql://u:{CANARY}@127.0.0.1:1/shop",
    "mysql": f"mysql://u:{CANARY}@127.0.0.1:1/shop",
}


def test_a_sqlite_file_looks_after_itself(tenure: Program) -> None:
    for options in ((), ("--check",), ("--sql",)):
        done = tenure("migrate", *options)
        assert (done.returncode, done.stdout) == (0, "")
        assert "makes and upgrades its tables itself; nothing to do" in done.stderr


def test_a_store_without_tables_is_refused_with_what_to_do(tenure: Program) -> None:
    done = tenure("migrate", "--url", "redis://127.0.0.1:1")
    assert done.returncode == 2
    assert "'redis' driver does not support migrations" in done.stderr
    assert "--connection or --url" in done.stderr


@pytest.mark.parametrize("kind", NOWHERE)
def test_the_sql_is_printed_without_a_connection(tenure: Program, kind: str) -> None:
    done = tenure("migrate", "--sql", env={"TENURE_URL": f"{NOWHERE[kind]}?table_prefix=my_"})
    assert done.returncode == 0, done.stderr
    assert "CREATE TABLE IF NOT EXISTS my_jobs (" in done.stdout
    assert "INSERT INTO my_version (version_num) VALUES ('001')" in done.stdout
    assert "tenure_" not in done.stdout
    assert (done.stdout.startswith("BEGIN;"), "LONGBLOB" in done.stdout) == (kind == "postgresql", kind == "mysql")
    assert CANARY not in done.stdout


def test_a_named_connection_is_migrated(tenure: Program) -> None:
    env = {"TENURE_REPORTS_URL": f"{NOWHERE['postgresql']}?schema=reports"}
    done = tenure("migrate", "--sql", "--connection", "reports", env=env)
    assert "CREATE TABLE IF NOT EXISTS reports.tenure_jobs (" in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--sql", "--check"), 2, "exclude each other"),
        (("--from", "001"), 2, "--from goes with --sql"),
        (("--sql", "--from", "999"), 2, "no such version"),
        (("--check",), 4, "nothing listens there"),
        ((), 4, "nothing listens there"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    tenure: Program, options: tuple[str, ...], code: int, said: str
) -> None:
    done = tenure("migrate", *options, env={"TENURE_URL": NOWHERE["postgresql"]})
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert CANARY not in done.stderr


@pytest.mark.parametrize("prefix", ["Upper_", "a'b", "1a", "a;b", "x" * 33])
def test_a_prefix_that_is_no_plain_name_is_refused(tenure: Program, prefix: str) -> None:
    done = tenure("migrate", "--sql", env={"TENURE_URL": f"{NOWHERE['postgresql']}?table_prefix={prefix}"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "table_prefix" in done.stderr


@pytest.mark.parametrize(("kind", "extra"), [("postgresql", "postgres"), ("mysql", "mysql")])
def test_the_extra_that_is_missing_is_named(
    tenure: Program, monkeypatch: pytest.MonkeyPatch, kind: str, extra: str
) -> None:
    find: Any = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "alembic" else find(name, *more)
    )
    done = tenure("migrate", env={"TENURE_URL": NOWHERE[kind]})
    assert done.returncode == 2
    assert f"pip install 'tenure[{extra}]'" in done.stderr

"""The doctor finds what would break a promise, and changes nothing."""

from collections.abc import Callable

import pytest

from tenure.drivers.sql.server import findings
from tenure.drivers.sql.server.names import Names
from tenure.drivers.sql.server.tables import create_tables, drop_tables
from tenure.errors import ConnectionFailed
from tenure.operating import Diagnosis, Severity
from tenure.queue import Queue, feature
from tests.databases.support import Place, ask, driver

Keep = Callable[[Queue], Queue]


async def test_the_tests_own_server_is_told_not_to_be_durable(place: Place, opened: Keep) -> None:
    queue = place.queue()
    opened(queue)
    assert feature(queue, Diagnosis)
    found = await queue.diagnose(durability=2)
    assert [(one.check, one.severity) for one in found] == [("durability", Severity.SERIOUS)]


async def test_missing_tables_and_indexes_are_found(place: Place, opened: Keep) -> None:
    names = Names("sick_")
    queue = place.queue(names=names)
    opened(queue)
    assert ("tables", "run `tenure migrate`") in {(one.check, one.remedy) for one in await queue.diagnose()}
    engine = place.database.engine()
    create_tables(engine, names)
    try:
        assert "indexes" not in {one.check for one in await queue.diagnose()}
        drop = "DROP INDEX sick_jobs_by_line" + ("" if place.postgres else " ON sick_jobs")
        ask(engine, drop)
        assert "indexes" in {one.check for one in await queue.diagnose()}
    finally:
        drop_tables(engine, names)


async def test_a_transaction_that_never_ends_is_found(
    postgres_place: Place, opened: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.drivers.sql.postgresql.doctor.LONG", 0.0)
    queue = postgres_place.queue()
    opened(queue)
    with postgres_place.database.engine().begin() as connection:
        connection.exec_driver_sql("SELECT 1")
        assert "transaction" in {one.check for one in await queue.diagnose()}


def test_clocks_and_connections_are_judged() -> None:
    assert [one.check for one in findings.clocks(1000.0, 1010.0)] == ["clock"]
    assert list(findings.clocks(1000.0, 1001.0)) == []
    assert [one.check for one in findings.connections(95, 100)] == ["connections"]
    assert list(findings.connections(5, 100)) == []


async def test_a_server_that_does_not_answer_is_an_error(opened: Keep) -> None:
    queue = driver("postgresql://u:s3cret@127.0.0.1:1/db", "n")
    opened(queue)
    with pytest.raises(ConnectionFailed):
        await queue.diagnose()

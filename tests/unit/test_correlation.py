"""One id follows a request through its jobs, and to what they log."""

import asyncio
import json
import logging
from typing import Any

import pytest

from tenure import InvalidOption, Tenure, correlated, correlation_id, current
from tenure.cli.logs import JsonFormatter, TextFormatter
from tenure.config import Settings
from tenure.correlation import CorrelationFilter
from tenure.envelope import decode
from tests.worker.support import drain

logger = logging.getLogger("shop")
seen: list[tuple[str, str | None]] = []
apps: dict[str, Tenure] = {}


async def first(name: str) -> None:
    seen.append((name, correlation_id()))
    logger.info("first of %s", name)
    await apps["one"].push(apps["one"].call("second", [name]))


def second(name: str) -> None:
    seen.append((name, correlation_id()))
    logger.info("second of %s", name)


def where(name: str) -> None:
    seen.append((name, current().connection))


def failing() -> None:
    raise ValueError(correlation_id())


@pytest.fixture
def app(namespace: str) -> Tenure:
    seen.clear()
    made = apps["one"] = Tenure("memory://", namespace=namespace)
    made.job(name="first")(first)
    made.job(name="second")(second)
    made.job(name="failing", max_attempts=1)(failing)
    return made


# S19
async def test_the_id_travels_to_the_attempt_and_to_what_that_pushes(app: Tenure) -> None:
    with correlated("request-1") as given:
        assert given == correlation_id() == "request-1"
        await app.push(app.call("first", ["a"]))
    await app.push(app.call("first", ["b"]))
    assert correlation_id() is None
    while (await app.counts("default")).ready:
        await drain(app)
    assert sorted(seen, key=str) == [("a", "request-1")] * 2 + [("b", None)] * 2


async def test_bulk_pushes_blocking_ones_and_given_ones(app: Tenure) -> None:
    with correlated("request-2"):
        await app.push_many([app.call("second", ["a"]), app.call("second", ["b"])])
        await asyncio.to_thread(app.push_sync, app.call("second", ["c"]))
        await app.push(app.call("second", ["d"]), meta={"correlation_id": "mine", "tenant": 3})
    leases = (await app.queue().claim(["default"], limit=9, lease=60, wait=0)).leases
    metas = [decode(lease.envelope).meta for lease in leases]
    assert metas == [{"correlation_id": "request-2"}] * 3 + [{"correlation_id": "mine", "tenant": 3}]


def test_a_new_one_is_made_and_blocks_nest() -> None:
    with correlated() as outer:
        with correlated() as inner:
            assert outer != inner == correlation_id()
        assert correlation_id() == outer
    assert correlation_id() is None


@pytest.mark.parametrize("wrong", ["", "two words", "a\nb", "ü", "x" * 129])
def test_what_would_spoil_a_log_line_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidOption), correlated(wrong):
        pass


async def test_what_another_program_wrote_into_meta_is_no_id(app: Tenure) -> None:
    for wrong in ("two words", 7, None, ["a"]):
        await app.push(app.call("second", ["a"]), meta={"correlation_id": wrong})
    await drain(app)
    assert seen == [("a", None)] * 4


# S19
async def test_all_lines_about_an_attempt_have_it(app: Tenure, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.handler.addFilter(CorrelationFilter())
    try:
        with correlated("request-3"):
            await app.push(app.call("first", ["a"]))
            await app.push(app.call("failing"))
        while (await app.counts("default")).ready:
            await drain(app)
    finally:
        caplog.handler.filters.clear()
    about = [record for record in caplog.records if " of a" in record.getMessage() or "job " in record.getMessage()]
    lines = {record.getMessage().partition(" (")[2].partition(")")[0] for record in about}
    assert lines >= {"first", "second", "failing"}
    assert {getattr(record, "correlation_id", None) for record in about} == {"request-3"}
    assert len(about) == 2 + 6


def formatted(formatter: logging.Formatter, **more: Any) -> str:
    record = logging.makeLogRecord({"name": "shop", "levelname": "INFO", "msg": "done", **more})
    CorrelationFilter().filter(record)
    return formatter.format(record)


def test_lines_of_text_and_of_json_show_it() -> None:
    with correlated("request-4"):
        assert formatted(TextFormatter()).endswith("shop: done [request-4]")
        assert json.loads(formatted(JsonFormatter()))["correlation_id"] == "request-4"
    assert formatted(TextFormatter()).endswith("shop: done")
    assert "correlation_id" not in json.loads(formatted(JsonFormatter()))
    assert formatted(TextFormatter(), correlation_id="a\nb").endswith("[a\\nb]")


async def test_an_attempt_knows_its_connection(namespace: str) -> None:
    settings = Settings.from_environ({"TENURE_REPORTS_URL": "memory://"})
    app = Tenure("memory://", namespace=namespace, settings=settings)
    app.job(name="second")(where)
    seen.clear()
    for connection in ("reports", "default"):
        await app.push(app.call("second", ["a"]), connection=connection)
        await drain(app, connection=connection)
    assert seen == [("a", "reports"), ("a", "default")]
    await app.aclose()

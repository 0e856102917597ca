"""The worker's logs: a record is a line, whatever it holds."""

import json
import logging
import sys

import pytest

from tenure.cli.logs import JsonFormatter, TextFormatter


def record(message: str, *, error: bool = False, **extra: object) -> logging.LogRecord:
    info = None
    if error:
        try:
            int("first\n\x1b[2Jsecond")
        except ValueError:
            info = sys.exc_info()
    made = logging.getLogger("tenure.worker").makeRecord(
        "tenure.worker", logging.WARNING, "file.py", 1, message, (), info, extra=extra or None
    )
    made.created, made.msecs = 0.25, 250.0
    return made


def test_a_record_is_one_line_with_its_time_in_utc() -> None:
    shown = TextFormatter().format(record("forged\r\n1970 INFO fake \x1b[31m"))
    assert shown == "1970-01-01T00:00:00.250Z WARNING tenure.worker: forged\\r\\n1970 INFO fake \\x1b[31m"


def test_a_traceback_follows_on_indented_lines() -> None:
    first, *rest = TextFormatter().format(record("failed", error=True)).split("\n")
    assert first.endswith("failed")
    assert all(line.startswith("    ") and line.isprintable() for line in rest)
    assert "ValueError: invalid literal" in "".join(rest)


@pytest.mark.parametrize("error", [False, True])
def test_a_record_is_one_object_of_json_with_its_plain_fields(error: bool) -> None:
    line = JsonFormatter().format(record("a\nb", error=error, job_id="x", attempt=2, odd=object()))
    assert "\n" not in line
    assert line.isascii()
    fields = json.loads(line)
    assert {**fields, "traceback": ""} | {} == {
        "time": 0.25,
        "level": "warning",
        "logger": "tenure.worker",
        "message": "a\nb",
        "job_id": "x",
        "attempt": 2,
        "traceback": "",
    }
    assert ("ValueError" in fields.get("traceback", "")) == error


def test_stacks_asked_for_are_shown_line_by_line() -> None:
    made = record("stacks")
    made.stack_info = "Stack:\n  File a\n  File b"
    assert TextFormatter().format(made).split("\n")[1:] == ["    Stack:", "      File a", "      File b"]

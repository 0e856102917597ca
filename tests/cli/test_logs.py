"""The worker's logs: a record is a line, whatever it holds."""

import json
import logging
import os
import sys
from collections.abc import Iterator

import pytest

from tenure.cli.logs import Format, JsonFormatter, TextFormatter, set_up


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


def test_a_record_of_several_processes_has_the_number_of_its_own() -> None:
    shown = TextFormatter(processes=True).format(record("it ran"))
    assert shown == f"1970-01-01T00:00:00.250Z WARNING [{os.getpid()}] tenure.worker: it ran"
    assert json.loads(JsonFormatter(processes=True).format(record("it ran")))["process"] == os.getpid()


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


@pytest.fixture
def root() -> Iterator[None]:
    """Takes back what a set-up of the logs leaves behind."""
    root = logging.getLogger()
    handlers, level = root.handlers.copy(), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def shown(form: Format, **environ: str) -> list[str]:
    """Log and say something to a terminal, and return its lines."""
    reader, writer = os.openpty()
    with pytest.MonkeyPatch.context() as patched, os.fdopen(writer, "w") as stream:
        patched.setattr(sys, "stderr", stream)
        for name, value in {"TERM": "xterm", "NO_COLOR": "", **environ}.items():
            patched.setenv(name, value)
        say = set_up("warning", form)
        logging.getLogger("tenure.worker").warning("careful")
        logging.getLogger("tenure.worker").info("not at this level")
        say("started\x1b[2J")
        text = ""
        while text.count("\n") < 2:
            text += os.read(reader, 10_000).decode()
    os.close(reader)
    return text.splitlines()


@pytest.mark.usefixtures("root")
def test_a_terminal_gets_coloured_text() -> None:
    warned, said = shown("auto")
    assert warned.endswith("Z \x1b[33mWARNING\x1b[0m tenure.worker: careful")
    assert said == "tenure: started\\x1b[2J"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_declined(name: str, value: str) -> None:
    assert "\x1b" not in "".join(shown("text", **{name: value}))


@pytest.mark.usefixtures("root")
def test_json_is_json_on_a_terminal_too_when_asked_for() -> None:
    warned, said = map(json.loads, shown("json"))
    assert (warned["level"], warned["message"]) == ("warning", "careful")
    assert (said["logger"], said["level"], said["message"]) == ("tenure", "info", "started\x1b[2J")

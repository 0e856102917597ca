"""The worker command's logs: standard logging, set up here and nowhere else in tenure."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Final, Literal, TextIO

import click

from tenure.cli.output import inert, inert_lines, note
from tenure.correlation import META, CorrelationFilter

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
FORMATS: Final = ("auto", "text", "json")
Format = Literal["auto", "text", "json"]
"""``auto``: for people on a terminal, for programs elsewhere."""

_COLOURS: Final = {"DEBUG": "bright_black", "INFO": "green", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class TextFormatter(logging.Formatter):
    """One line a record, whatever its message holds; a traceback follows on lines of its own, indented.

    A correlation id stands at the end of the line, in brackets.
    """

    def __init__(self, *, coloured: bool = False, processes: bool = False) -> None:
        """``processes``: each line has the number of the process that wrote it."""
        super().__init__()
        self._coloured = coloured
        self._processes = processes

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        level = f"{record.levelname:<7}"
        if self._coloured:
            level = click.style(level, fg=_COLOURS.get(record.levelname))
        who = f"[{record.process}] {record.name}" if self._processes else record.name
        head = f"{when}.{int(record.msecs):03d}Z {level} {who}: {inert(record.getMessage())}"
        if hasattr(record, META):
            head += f" [{inert(str(getattr(record, META)))}]"
        return "\n    ".join([head, *_more(self, record)])


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the record's extra fields that are plain values."""

    def __init__(self, *, processes: bool = False) -> None:
        """``processes``: each object has the number of the process that wrote it."""
        super().__init__()
        self._processes = processes

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._processes:
            fields["process"] = record.process
        for name, value in vars(record).items():
            if name not in _STANDARD and isinstance(value, str | int | float | bool | None):
                fields.setdefault(name, value)
        if more := _more(self, record):
            fields["traceback"] = "\n".join(more)
        return json.dumps(fields)


def _more(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    texts = [formatter.formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        texts.append(record.stack_info)
    return [line for text in texts for line in inert_lines(text).split("\n")]


def set_up(level: str, form: Format, *, processes: bool = False) -> Callable[[str], None]:
    """Send all logs from this level on to standard error, and return what says a line there whatever the level is.

    ``processes``: several processes write there, and each line tells which.
    """
    handler = logging.StreamHandler(sys.stderr)
    in_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    text = TextFormatter(coloured=_takes_colours(sys.stderr), processes=processes)
    handler.addFilter(CorrelationFilter())
    handler.setFormatter(JsonFormatter(processes=processes) if in_json else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)

    def say(line: str) -> None:
        if in_json:
            handler.handle(logging.makeLogRecord({"name": "tenure", "levelname": "INFO", "msg": line}))
        else:
            note(f"tenure: {inert(line)}")

    return say


def _takes_colours(stream: TextIO) -> bool:
    # https://no-color.org: set to anything but nothing.
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

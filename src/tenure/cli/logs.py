"""The worker command's logs: standard logging, set up here and nowhere else in tenure."""

import json
import logging
import sys
import time
from typing import Final, Literal

from tenure.cli.output import inert, inert_lines

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
Format = Literal["text", "json"]

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class TextFormatter(logging.Formatter):
    """One line a record, whatever its message holds; a traceback follows on lines of its own, indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = f"{when}.{int(record.msecs):03d}Z {record.levelname:<7} {record.name}: {inert(record.getMessage())}"
        return "\n    ".join([head, *_more(self, record)])


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the record's extra fields that are plain values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
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


def set_up(level: str, form: Format) -> None:
    """Send all logs from this level on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)

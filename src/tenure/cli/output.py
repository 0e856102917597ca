"""What the commands print: data on standard output, everything else on standard error, all of it inert.

A job's name, a queue's, an error's type come from elsewhere and may hold what moves a terminal's cursor, changes its
title or turns text around. Nothing is shown that is not a printable character or escaped.
"""

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (bidirectional marks are among them), surrogate, private, unassigned; line and paragraph ends."""


def inert(text: object) -> str:
    """Return the text on one line with every character escaped that could do more than be seen."""
    line = str(text)
    if line.isascii() and line.isprintable():
        return line
    return "".join(_escaped(char) if unicodedata.category(char) in _HARMFUL else char for char in line)


def inert_lines(text: str) -> str:
    """Return the text with its line ends kept and everything else as ``inert`` leaves it."""
    return "\n".join(inert(line.expandtabs(4)) for line in text.split("\n"))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def as_json(value: Any) -> str:
    """Return JSON on one line in plain ASCII, so that it is as inert as the rest."""
    # json leaves DEL as it is: the one control character above the space.
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return aligned columns, numbers to the right; None is shown as ``-``."""
    listed = list(rows)
    texts = [[_cell(value) for value in row] for row in listed]
    widths = [max(map(len, column)) for column in zip(headers, *texts, strict=True)]
    numeric = [
        bool(listed) and all(value is None or isinstance(value, int | float) for value in column)
        for column in (zip(*listed, strict=True) if listed else [() for _ in headers])
    ]
    return "\n".join(_line(row, widths, numeric) for row in (list(headers), *texts))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else inert(value)


def _line(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    cells = [
        text.rjust(width) if right else text.ljust(width)
        for text, width, right in zip(row, widths, numeric, strict=True)
    ]
    return "  ".join(cells).rstrip()


def age(seconds: float | None) -> str | None:
    """Return a length of time for people, its two largest units: ``3m12s``, ``2d4h``; None stays None."""
    if seconds is None:
        return None
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f}s"
    rest = round(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        number, rest = divmod(rest, length)
        if number or parts:
            parts.append(f"{number}{unit}")
    return "".join(parts[:2])


def utc(seconds: float) -> str:
    """Return seconds since 1970 as a time in UTC, to the second; what is no time of this world is shown as it is."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return repr(seconds)


def say(line: str) -> None:
    """Print data."""
    _write(sys.stdout, line)


def hand_over(content: bytes) -> None:
    """Write bytes to standard output as they are; the caller has made sure that no terminal reads them."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def note(line: str) -> None:
    """Print what is not data."""
    _write(sys.stderr, line)


def _write(stream: TextIO, line: str) -> None:
    encoding = stream.encoding or "ascii"
    # What the terminal's encoding lacks is escaped too, rather than raised.
    stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()

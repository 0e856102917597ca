"""The tables of runs: a line a contender, a column a value, each a median and its range."""

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Found = dict[str, dict[str, dict[int, float]]]
"""Figures by contender, by column and by run."""


def machine() -> str:
    """Return what the figures were taken on, in a line."""
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()} {platform.system()}"


def table(rows: Sequence[Row]) -> str:
    """Return the table of a run of ``python -m benchmarks``, in Markdown.

    A contender that has a rival among the rows is told as a part of it too: the median of the ratios of paired runs.
    """
    found, rivals = _found(rows), {row["contender"]: row.get("rival", "") for row in rows}
    columns = list(dict.fromkeys(column for values in found.values() for column in values))
    lines = [
        [name, *(_cell(values.get(column), found.get(rivals[name], {}).get(column)) for column in columns)]
        for name, values in found.items()
    ]
    return markdown(["", *columns], lines)


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are figures."""
    rows = [head, ["---", *("---:" for _ in head[1:])], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def spread(values: Sequence[float]) -> str:
    """Return a median and, of several values, their range."""
    if not values:
        return "-"
    middle = number(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({number(min(values))} to {number(max(values))})"


def number(value: float) -> str:
    """Return three digits of a small number and all of the whole ones of a great one."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _found(rows: Sequence[Row]) -> Found:
    found: Found = {}
    for row in rows:
        values = found.setdefault(row["contender"], {})
        for unit, value in row.get("values", {}).items():
            values.setdefault(f"{row['measure']}, {unit}", {})[row["run"]] = value
    return found


def _cell(values: Mapping[int, float] | None, rivals: Mapping[int, float] | None) -> str:
    if not values:
        return "-"
    told = spread(list(values.values()))
    paired = [value / rivals[run] for run, value in values.items() if rivals and rivals.get(run)]
    return f"{told}, {number(statistics.median(paired))}x" if paired else told

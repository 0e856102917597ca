"""The table of a run: a line a contender, a column a value, each a median and its range."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table, in Markdown."""
    values: dict[str, dict[str, list[float]]] = {}
    columns: dict[str, None] = {}
    for row in rows:
        for unit, value in row["values"].items():
            column = f"{row['measure']}, {unit}"
            columns[column] = None
            values.setdefault(row["contender"], {}).setdefault(column, []).append(value)
    lines = [["", *columns], ["---", *("---:" for _ in columns)]]
    lines += [[name, *(_cell(found.get(column)) for column in columns)] for name, found in values.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(values: Sequence[float] | None) -> str:
    if not values:
        return "-"
    return f"{_number(statistics.median(values))} ({_number(min(values))} to {_number(max(values))})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

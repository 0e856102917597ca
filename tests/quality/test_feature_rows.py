"""Every row of docs/features.md is proven: at least one test names it, in a comment at its definition."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("tests", "src/tenure/testing/contract")
ROW = re.compile(r"^\| ([KSW]\d+) \|.*\|.*\.+ \|$")
MARK = re.compile(r"#\s*([KSW]\d+(?:,\s*[KSW]\d+)*)\s*$")
LATER: set[str] = set()
"""Rows that come with what they are of."""
PROMISED = {
    *(f"K{number}" for number in range(1, 20)),
    *(f"S{number}" for number in range(1, 21)),
    *(f"W{number}" for number in range(1, 15)),
} - LATER


def rows() -> list[str]:
    lines = (ROOT / "docs/features.md").read_text().splitlines()
    return [found[1] for line in lines if (found := ROW.match(line))]


def marks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each row that a test names, with the test's name.

    A mark stands alone in the line above the test, or at the end of a line of its signature.
    """
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            first = min(node.lineno, *(decorator.lineno for decorator in node.decorator_list), node.lineno)
            above = lines[first - 2 : first - 1] if first > 1 else []
            own = [line for line in above if line.lstrip().startswith("#")]
            for line in own + lines[node.lineno - 1 : node.body[0].lineno - 1]:
                if found := MARK.search(line):
                    yield from ((row, node.name) for row in re.split(r",\s*", found[1]))


def marked() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*.py")):
            for row, test in marks(path.read_text()):
                found.setdefault(row, set()).add(f"{path.relative_to(ROOT)}::{test}")
    return found


def test_the_page_has_every_row_once_and_in_order() -> None:
    found = rows()
    assert set(found) >= PROMISED
    assert found == sorted(set(found), key=lambda row: (row[0], int(row[1:])))


def test_every_row_is_named_by_a_test_and_no_test_names_another() -> None:
    named, documented = marked(), set(rows())
    assert documented - named.keys() == set(), "rows without a test"
    assert {row: tests for row, tests in named.items() if row not in documented} == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# K6\ndef test_a() -> None:\n    pass", [("K6", "test_a")]),
        ("# K6, S13\n@decorated\nasync def test_a() -> None:\n    pass", [("K6", "test_a"), ("S13", "test_a")]),
        ("def test_a() -> None:  # S8\n    pass", [("S8", "test_a")]),
        ("def test_a(\n    x: int,\n) -> None:  # S8\n    pass", [("S8", "test_a")]),
        ("# K6\n\ndef test_a() -> None:\n    pass", []),
        ("# K6\ndef helper() -> None:\n    pass", []),
        ("x = 1  # K6\ndef test_a() -> None:\n    pass", []),
        ("def test_a() -> None:\n    x = 1  # K6", []),
        ("# K6 is elsewhere\ndef test_a() -> None:\n    pass", []),
    ],
)
def test_a_mark_counts_at_a_test_and_nowhere_else(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(marks(text)) == expected

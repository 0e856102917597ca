"""Every row of docs/cases.md is proven by a test of its number, and no such test is without a row."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (OB-\d\d) \|.*\|.*\.+ \|$", re.MULTILINE)
NAME = re.compile(r"test_ob_(\d\d)_\w+")


def rows() -> list[str]:
    return ROW.findall((ROOT / "docs/cases.md").read_text())


def proven() -> set[str]:
    trees = [ast.parse(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py")]
    names = [
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {f"OB-{found[1]}" for name in names if (found := NAME.fullmatch(name))}


def test_every_case_has_a_row_in_order_and_every_row_a_test() -> None:
    assert rows() == sorted(set(rows()))
    assert set(rows()) == proven()

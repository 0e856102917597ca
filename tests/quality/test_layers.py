"""What import-linter cannot say: the core imports the standard library and msgspec, and nothing else."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tenure"
# `_typeshed` exists for the type checkers alone.
ALLOWED = sys.stdlib_module_names | {"_typeshed", "msgspec", "tenure"}


def core() -> list[Path]:
    """The files of the lowest layer."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    lowest: str = next(contract for contract in contracts if contract["id"] == "layers")["layers"][-1]
    names = [name.strip(" ()") for name in lowest.split(":")]
    return [
        file for name in names for file in (PACKAGE / f"{name}.py", *(PACKAGE / name).rglob("*.py")) if file.exists()
    ]


def strangers(text: str) -> set[str]:
    """The imported packages that the core may not import."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.partition(".")[0])
    return imported - ALLOWED


# W12
@pytest.mark.parametrize("file", core(), ids=lambda file: file.stem)
def test_the_core_imports_the_standard_library_and_msgspec_only(file: Path) -> None:
    assert not strangers(file.read_text())


def test_a_stranger_is_found() -> None:
    assert strangers("import os\nimport redis.asyncio\nfrom click import echo\nimport msgspec") == {"redis", "click"}

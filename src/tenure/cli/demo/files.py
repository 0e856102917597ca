"""The demo's material: the source files of the running Python's standard library."""

import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_SKIPPED: Final = frozenset({"__pycache__", "site-packages", "dist-packages"})

BROKEN: Final = {
    "unclosed.py": "total = (1 +\n",
    "no_colon.py": "def broken()\n    return 1\n",
    "bad_indent.py": "if True:\nprint('no')\n",
}
"""Files that no parser takes, for a standard library that was installed without its own."""


def library() -> Path:
    """Return the directory of the running Python's standard library."""
    return Path(sysconfig.get_path("stdlib"))


def sources(root: Path) -> Sequence[Path]:
    """Return every source file below the directory, sorted, installed packages left out."""
    return sorted(
        path for path in root.rglob("*.py") if path.is_file() and _SKIPPED.isdisjoint(path.relative_to(root).parts)
    )


def write_broken(directory: Path) -> Sequence[Path]:
    """Write the three broken files into the directory, and return them."""
    directory.mkdir()
    paths = [directory / name for name in BROKEN]
    for path in paths:
        path.write_text(BROKEN[path.name], "utf-8")
    return paths

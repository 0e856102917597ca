"""Every figure that the documentation has a place for was measured."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_MEASURED = "TBM"
"""What stands where a figure will be: ``make bench-all`` replaces it."""


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs").glob("benchmarks*")))
def test_no_figure_is_missing(name: str) -> None:
    text = (ROOT / "docs" / name).read_text()
    assert NOT_MEASURED not in text, f"docs/{name} has figures that were never measured: make bench-all"

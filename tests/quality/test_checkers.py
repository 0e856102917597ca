"""Linters, type checkers and the documentation's build accept the project; each is one test."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.absent import not_proven

ROOT = Path(__file__).parents[2]
CHECKERS = {
    "ruff-check": ("ruff", ["ruff", "check", "."]),
    "ruff-format": ("ruff", ["ruff", "format", "--check", "."]),
    "import-linter": ("importlinter", ["lint-imports"]),
    "mypy": ("mypy", ["mypy"]),
    "pyright": ("pyright", ["pyright"]),
    "verifytypes": ("pyright", ["pyright", "--verifytypes", "tenure", "--ignoreexternal"]),
}
# The checkers must look at this environment: they find it by the program named python on the PATH.
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        not_proven(package, "make test installs it")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("checker", CHECKERS)
def test_accepted_by(checker: str) -> None:
    package, command = CHECKERS[checker]
    needs(package)
    run(*command)


@pytest.mark.timeout(400)
def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    for package in ("sphinx", "furo", "myst_parser"):
        needs(package)
    run(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(tmp_path))
